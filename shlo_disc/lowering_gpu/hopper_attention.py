# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of f16 and bf16 on tensor cores of sm_90a, as FlashAttention-3 (Shah et al. 2024) has it.

A block has a warpgroup that brings queries, keys and values to shared memory by TMA, and two that have 64 rows of a
tile each. Keys and values of KEYS columns come through the ring of `hopper_ring`, keys first; queries have a stage of
their own. Scores are products of matrices in shared memory (`wgmma`). The sums that these leave are, rounded, the
fragments that it takes as weights from registers. The softmax is that of `tensor_softmax`; the sums of the weights are
products of the rounded weights by ones (`mma.sync`).

What is outside of the operands comes as zeros. The operands are described by tensor maps, which the runtime makes for
each launch from the words of the kernel that takes any operands (`hopper_launch`); launches that it cannot describe so
take that one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.element_types import Element, element_of
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu import hopper, nvgpu
from shlo_disc.lowering_gpu.attention_pieces import Pieces
from shlo_disc.lowering_gpu.attention_rows import AttentionTask, ScoreBody, Sides
from shlo_disc.lowering_gpu.block_loops import either, when
from shlo_disc.lowering_gpu.few_queries import FEW, are_few
from shlo_disc.lowering_gpu.grid import thread
from shlo_disc.lowering_gpu.hopper import BOX, BOX_BYTES, FACTORS, WARPGROUP, i32, narrowed
from shlo_disc.lowering_gpu.hopper_attention_rows import HALVES, KEYS, ROWS, Memory, WarpgroupRows
from shlo_disc.lowering_gpu.hopper_launch import BY_MAPS, MapsOfWords, map_of_operand, name_by_maps
from shlo_disc.lowering_gpu.hopper_product import ARCHITECTURE, BLOCK_THREADS, MOST_BATCH_AXES, REGISTERS, index_in_map
from shlo_disc.lowering_gpu.hopper_ring import CONSUMERS, Stage, make_barriers_of
from shlo_disc.lowering_gpu.hopper_sums import HandOver, ResultRows
from shlo_disc.lowering_gpu.index_math import divided, parts, plus, times
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.lowering_gpu.product_form import Matrix, ProductForm, indices_of
from shlo_disc.lowering_gpu.shuffles import from_lane
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, scf
from shlo_disc.shape_dialect.symbolic.facts import Relation

Values = list[ir.Value]


def takes_attention_maps(frame: GpuFrame, task: AttentionTask, architecture: str) -> bool:
    """Tells whether there is a kernel for an attention, whose other kernel is `frame`."""
    p, result = task.problem, element_of(frame.outputs[0].type)
    steps = (p.query_depth, p.key_depth, p.value_width, p.result_width)
    return (
        architecture == ARCHITECTURE
        and Element(p.element).is_half
        and result.name in (p.element, "f32")
        and len(p.batch) <= MOST_BATCH_AXES
        and all(step.constant == 1 for step in steps)
        and are_few(frame, task) is not True
    )


def build_hopper_attention(device: gpu.GPUModuleOp, other: GpuFrame) -> None:
    """The kernel at the end of a module that does what `other` does, for more than FEW rows. It is told the maps of
    query, key and value, by value, then what that one is told."""
    nvgpu.load(device.context)
    task = AttentionTask.of(other.fusion)
    frame = GpuFrame(
        other.fusion, other.facts, deterministic=other.deterministic, threads=BLOCK_THREADS, maps=len(Sides.OPERANDS)
    )
    frame.open(device, name_by_maps(other.function.name.value))
    with ir.InsertionPoint(frame.entry):
        for size in other.sizes:
            frame.size_of(size)
        kernel = HopperAttention(frame, task)
        kernel.write()
    frame.close()
    if frame.sizes != other.sizes:
        raise CompilerError(f"kernels: @{frame.function.name.value} is told other sizes than the one by any operands")
    frame.function.attributes[BY_MAPS] = _launch_of(frame, task, kernel.memory.bytes)


def _launch_of(frame: GpuFrame, task: AttentionTask, shared_bytes: int) -> ir.Attribute:
    p = task.problem
    batches = zip(*((axis.query, axis.key, axis.value) for axis in p.batch), strict=True)
    query, key, value = batches if p.batch else [()] * len(Sides.OPERANDS)
    sizes = [axis.size for axis in p.batch]
    is_known = frame.facts.prove(Relation.le(p.rows.size, FEW)) is False
    return MapsOfWords(
        threads=BLOCK_THREADS,
        shared_bytes=shared_bytes,
        element_bytes=FACTORS[p.element].bytes,
        box=(BOX, FACTORS[p.element].of_row),
        least_rows=0 if is_known else FEW + 1,
        is_persistent=p.causal is None,
        operands=[
            map_of_operand(frame, p.query, (p.depth, p.rows.size, *sizes[::-1]), (p.rows.query, *query[::-1])),
            map_of_operand(frame, p.key, (p.depth, p.columns, *sizes[::-1]), (p.key_column, *key[::-1])),
            map_of_operand(frame, p.value, (p.width, p.columns, *sizes[::-1]), (p.value_column, *value[::-1])),
        ],
    ).attribute


class HopperAttention:
    """The body of a kernel, at the insertion point."""

    def __init__(self, frame: GpuFrame, task: AttentionTask):
        self.maps, self.sides = frame.told_maps, Sides.of(frame, task)
        self.body = ScoreBody(frame, task, self.sides)
        element = Element(task.problem.element)
        self.task, self.is_causal = task, task.problem.causal is not None
        self.memory = Memory(task.depth, task.width)
        self.queries, self.ring = self.memory.rings(hopper.shared_base())
        rounded = element_of(frame.outputs[0].type).name == element.name
        form = ProductForm(element, "mk", "nk", len(task.problem.batch), rounded)
        self.hand_over = HandOver(frame.function, form, ResultRows(self.sides.result, form))
        self.pieces = Pieces(frame, self.body, KEYS, lambda carried: carried[:HALVES], hopper.any_in_block)

    def write(self) -> None:
        """All tiles, by threads that have two parts."""
        make_barriers_of([self.queries, self.ring])
        _, group = divided(thread(), WARPGROUP)
        group = arith.index_castui(ir.IndexType.get(), from_lane(narrowed(group), index_constant(0)))

        def bring() -> None:
            hopper.set_registers(REGISTERS[0], more=False)
            self._each_tile(self._bring)

        def attend() -> None:
            hopper.set_registers(REGISTERS[1], more=True)
            rings = self.queries, self.ring
            consumer = arith.subi(group, index_constant(1))
            rows = WarpgroupRows(self.task, self.body, self.pieces, self.memory, rings, self.hand_over, consumer)
            rows.turns.open()
            self._each_tile(rows.tile)
            rows.turns.close()

        either(arith.cmpi(arith.CmpIPredicate.eq, group, index_constant(0)), bring, attend)

    def _each_tile(self, work: Callable[[Values, ir.Value, ir.Value, ir.Value], ir.Value]) -> None:
        """`work(matrix, first row, tiles before it, stages before it)` for the block's tiles; it gives the number of
        stages until its end. Under a causal mask later rows take longer, and come first."""
        tiles = [*self.sides.batch, parts(self.sides.rows, ROWS)]
        block, blocks = gpu.block_id(gpu.Dimension.x), gpu.grid_dim(gpu.Dimension.x)
        loop = scf.ForOp(block, functools.reduce(arith.muli, tiles), blocks, [i32(0), i32(0)])
        with ir.InsertionPoint(loop.body):
            *matrix, tile = indices_of(loop.induction_variable, tiles)
            if self.is_causal:
                tile = arith.subi(arith.subi(tiles[-1], index_constant(1)), tile)
            done, number = loop.inner_iter_args
            number = work(matrix, times(tile, ROWS), done, number)
            scf.yield_([arith.addi(done, i32(1)), number])

    # ---- a warpgroup brings queries, keys and values ----------------------------------------------------------------

    def _bring(self, matrix: Values, first: ir.Value, done: ir.Value, number: ir.Value) -> ir.Value:
        """All threads of the warpgroup vote; the first one does the rest."""
        query, key, value = self.maps
        sides, boxes = self.sides, self.memory
        is_first = arith.cmpi(arith.CmpIPredicate.eq, thread(), index_constant(0))

        def queries() -> None:
            stage = self.queries.stage(done)
            places = [(BOX * slab, BOX * part) for slab in range(boxes.depth_boxes) for part in range(CONSUMERS)]
            self._bring_boxes(stage, query, sides.query, matrix, first, places)

        def piece(column: ir.Value, carried: Values) -> Values:
            (number,) = carried
            rows = range(0, KEYS, BOX)

            def both() -> None:
                places = [(BOX * slab, row) for slab in range(boxes.depth_boxes) for row in rows]
                self._bring_boxes(self.ring.stage(number), key, sides.key, matrix, column, places)
                places = [(BOX * slab, row) for row in rows for slab in range(boxes.width_boxes)]
                stage = self.ring.stage(arith.addi(number, i32(1)))
                self._bring_boxes(stage, value, sides.value, matrix, column, places)

            when(is_first, both)
            return [arith.addi(number, i32(2))]

        when(is_first, queries)
        return self.pieces.bring(first, ROWS, [number], piece)[0]

    def _bring_boxes(
        self,
        stage: Stage,
        tensor_map: ir.Value,
        side: Matrix,
        matrix: Values,
        first: ir.Value,
        places: Sequence[tuple[int, int]],
    ) -> None:
        """Boxes of a matrix, one behind the other, once the stage has been read. places: the element and the row, from
        `first` on, that each begins with."""
        hopper.wait_for(stage.empty, arith.xori(stage.parity, i32(1)))
        hopper.expect_bytes(stage.full, len(places) * BOX_BYTES)
        steps = zip(matrix, side.strides, strict=False)
        batch = [narrowed(index_in_map(step, index)) for index, step in steps][::-1]
        for number, (element, row) in enumerate(places):
            target = arith.addi(stage.start, i32(number * BOX_BYTES))
            at = [i32(element), narrowed(plus(first, row)), *batch]
            hopper.copy_box(target, tensor_map, at, stage.full)
