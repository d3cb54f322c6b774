# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of f16, bf16 or 8-bit integer matrices on tensor cores of sm_90a, for sizes that are told at run time.

A block has a warpgroup whose first thread brings slices of both sides to shared memory by TMA, up to STAGES ahead, and
two warpgroups that multiply them (`wgmma`) and write the sums: the warp-specialised scheme of NVIDIA's CUTLASS. Each
stage has two barriers: `full` ends a phase when all bytes of a slice are there, `empty` when all warps that multiply
have read them. A block works on tile after tile; slices of the next one are on their way while sums are written.

What is outside of the operands comes as zeros, and is not written. The operands are described by tensor maps, which
the runtime makes for each launch (`runtime/native/cuda/tensor_map.cpp` has the conditions); products that it cannot
describe so take the kernel that the form has besides. What becomes of the sums is in `hopper_sums`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu import hopper, nvgpu
from shlo_disc.lowering_gpu.block_loops import either, when
from shlo_disc.lowering_gpu.grid import WARP, thread
from shlo_disc.lowering_gpu.hopper import BOX, BOX_BYTES, FACTORS, WARPGROUP, i32, map_type, narrowed
from shlo_disc.lowering_gpu.hopper_launch import BY_MAPS, name_by_maps
from shlo_disc.lowering_gpu.hopper_ring import (
    CONSUMERS,
    LARGE,
    MEDIUM,
    SHARED_BYTES,
    SMALL,
    Place,
    Ring,
    Stage,
    Tile,
)
from shlo_disc.lowering_gpu.hopper_sums import EIGHT, HandOver, ResultRows
from shlo_disc.lowering_gpu.index_math import below, divided, parts, plus, times
from shlo_disc.lowering_gpu.kernel import pointer_type
from shlo_disc.lowering_gpu.product_epilogue import Epilogue, EpilogueFrame
from shlo_disc.lowering_gpu.product_form import ProductForm, Told, indices_of
from shlo_disc.lowering_gpu.tensor_product import PROCESSORS
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, scf

ARCHITECTURE = "sm_90a"

BLOCK_THREADS = (1 + CONSUMERS) * WARPGROUP

REGISTERS = (40, 232)
"""Registers of a thread that loads slices, and of one that multiplies: together no more than a multiprocessor has."""

MOST_BATCH_AXES = 3
"""A tensor map has five axes."""

Sides = tuple[ir.Value, ir.Value]


def takes_maps(form: ProductForm, architecture: str) -> bool:
    """Tells whether there is a kernel for products of a form."""
    factors = FACTORS.get(form.element.name)
    if architecture != ARCHITECTURE or factors is None or form.batch > MOST_BATCH_AXES or form.narrow is not None:
        return False
    return factors.takes_columns or (form.lhs, form.rhs) == ("mk", "nk")


def build_hopper_product(device: gpu.GPUModuleOp, form: ProductForm) -> gpu.GPUFuncOp:
    """The kernel at the end of a module. It is told the maps of the two sides, by value, then what that of
    `product_kernel` is told."""
    _load(device.context)
    pointers = [pointer_type(e.memory()) for e in (form.element, form.element, form.result, *form.memory)]
    numbers = [ir.IndexType.get()] * form.numbers
    with ir.InsertionPoint(device.regions[0].blocks[0]):
        type_ = ir.FunctionType.get([*[map_type()] * 2, *pointers, *numbers], [])
        function = gpu.GPUFuncOp(type_, name_by_maps(form.name), kernel=True, known_block_size=[BLOCK_THREADS, 1, 1])
    function.attributes[BY_MAPS] = _launch_of(form)
    entry = function.add_entry_block()
    with ir.InsertionPoint(entry):
        lhs_map, rhs_map, *told = entry.arguments
        HopperKernel(function, told, (lhs_map, rhs_map), form).write()
        gpu.ReturnOp([])
    return function


def build_fused_hopper_product(device: gpu.GPUModuleOp, other: EpilogueFrame) -> EpilogueFrame:
    """The kernel at the end of a module that does what another one of a product and what follows it does, and is told
    the maps of the two sides, by value, then what that one is told."""
    _load(device.context)
    form = other.form
    frame = EpilogueFrame(
        other.fusion, other.facts, deterministic=other.deterministic, form=form, threads=BLOCK_THREADS, maps=2
    )
    frame.open(device, name_by_maps(other.function.name.value))
    frame.function.attributes[BY_MAPS] = _launch_of(form)
    with ir.InsertionPoint(frame.entry):
        for size in other.sizes:
            frame.size_of(size)
        lhs_map, rhs_map = frame.told_maps
        HopperKernel(frame.function, frame.told, (lhs_map, rhs_map), form, frame).write()
    frame.close()
    if frame.sizes != other.sizes:
        raise CompilerError(f"kernels: @{frame.function.name.value} is told other sizes than the one by any sides")
    return frame


def _load(context: ir.Context) -> None:
    nvgpu.load(context)
    context.get_dialect_descriptor("llvm")


def _launch_of(form: ProductForm) -> ir.Attribute:
    i64 = ir.IntegerType.get_signless(64)
    factors = FACTORS[form.element.name]
    numbers = {"threads": BLOCK_THREADS, "shared_bytes": SHARED_BYTES, "element_bytes": factors.bytes}
    numbers |= {"box_rows": BOX, "box_columns": factors.of_row}
    insides = {"lhs_depth_inside": int(form.lhs == "mk"), "rhs_depth_inside": int(form.rhs == "nk")}
    return ir.DictAttr.get({name: ir.IntegerAttr.get(i64, n) for name, n in {**numbers, **insides}.items()})


class HopperKernel:
    """The body of a kernel, at the insertion point."""

    def __init__(
        self,
        function: gpu.GPUFuncOp,
        arguments: Sequence[ir.Value],
        maps: Sides,
        form: ProductForm,
        frame: EpilogueFrame | None = None,
    ):
        self.maps, self.factors = maps, FACTORS[form.element.name]
        told = Told.of(arguments, form)
        self.batch_steps = [side.strides[: form.batch] for side in (told.lhs, told.rhs)]
        *self.batch, self.m, self.n = told.result.sizes
        taker = ResultRows(told.result, form) if frame is None else Epilogue(frame, told.result, EIGHT)
        self.hand_over = HandOver(function, form, taker)
        self.insides = (form.lhs == "mk", form.rhs == "nk")
        self.steps = parts(told.lhs.sizes[-1], self.factors.of_row)
        self.ring = Ring(hopper.shared_base())

    def write(self) -> None:
        """All tiles of the result, by threads that have two parts."""
        self.ring.make_barriers()
        _, group = divided(thread(), WARPGROUP)
        brings = arith.cmpi(arith.CmpIPredicate.eq, group, index_constant(0))

        def bring() -> None:
            hopper.set_registers(REGISTERS[0], more=False)
            first = arith.cmpi(arith.CmpIPredicate.eq, thread(), index_constant(0))
            when(first, lambda: self._with_tile(self._bring))

        def multiply() -> None:
            hopper.set_registers(REGISTERS[1], more=True)
            consumer = arith.subi(group, index_constant(1))
            self._with_tile(lambda tile: self._multiply(tile, consumer))

        either(brings, bring, multiply)

    # ---- choices ----------------------------------------------------------------------------------------------------

    def _with_tile(self, work: Callable[[Tile], None]) -> None:
        """The work with the largest tiles of which there are enough."""

        def from_(tiles: Sequence[Tile]) -> None:
            if len(tiles) == 1:
                work(tiles[0])
                return
            count = functools.reduce(arith.muli, self._tiles(tiles[0]))
            enough = arith.cmpi(arith.CmpIPredicate.uge, count, index_constant(PROCESSORS))
            either(enough, lambda: work(tiles[0]), lambda: from_(tiles[1:]))

        from_((LARGE, MEDIUM, SMALL))

    def _tiles(self, tile: Tile) -> list[ir.Value]:
        """The number of tiles: of each batch axis, along m, along n."""
        return [*self.batch, parts(self.m, tile.m), parts(self.n, tile.n)]

    def _each_tile(self, tile: Tile, work: Callable[[Place, ir.Value], ir.Value]) -> None:
        """`work(place, slices before it)` for the block's tiles; it gives the number of slices until its end."""
        tiles = self._tiles(tile)
        total = functools.reduce(arith.muli, tiles)
        block, blocks = gpu.block_id(gpu.Dimension.x), gpu.grid_dim(gpu.Dimension.x)
        loop = scf.ForOp(block, total, blocks, [i32(0)])
        with ir.InsertionPoint(loop.body):
            *batch, row, column = indices_of(loop.induction_variable, tiles)
            place = Place(batch, times(row, tile.m), times(column, tile.n))
            scf.yield_([work(place, loop.inner_iter_args[0])])

    # ---- one thread brings slices -----------------------------------------------------------------------------------

    def _bring(self, tile: Tile) -> None:
        def slices(place: Place, before: ir.Value) -> ir.Value:
            loop = scf.ForOp(index_constant(0), self.steps, index_constant(1), [before])
            with ir.InsertionPoint(loop.body):
                number = loop.inner_iter_args[0]
                depth = times(loop.induction_variable, self.factors.of_row)
                self._bring_slice(tile, place, depth, self.ring.stage(number))
                scf.yield_([arith.addi(number, i32(1))])
            return loop.results[0]

        self._each_tile(tile, slices)

    def _bring_slice(self, tile: Tile, place: Place, depth: ir.Value, stage: Stage) -> None:
        """Once the stage's last slice has been read."""
        hopper.wait_for(stage.empty, arith.xori(stage.parity, i32(1)))
        hopper.expect_bytes(stage.full, tile.slice_bytes)
        target, sides = stage.start, ((place.row, tile.m), (place.column, tile.n))
        for tensor_map, inside, steps, (first, size) in zip(
            self.maps, self.insides, self.batch_steps, sides, strict=True
        ):
            batch = [narrowed(index_in_map(step, index)) for index, step in zip(place.batch, steps, strict=True)][::-1]
            for offset in range(0, size, BOX):
                pair = [narrowed(depth), narrowed(plus(first, offset))]
                hopper.copy_box(target, tensor_map, [*(pair if inside else pair[::-1]), *batch], stage.full)
                target = arith.addi(target, i32(BOX_BYTES))

    # ---- warpgroups multiply ----------------------------------------------------------------------------------------

    def _multiply(self, tile: Tile, consumer: ir.Value) -> None:
        """One warpgroup's part of the block's tiles."""

        def one(place: Place, before: ir.Value) -> ir.Value:
            sums, after = self._sums(tile, consumer, before)
            across, down = (0, hopper.M) if tile.columns == tile.n else (tile.columns, 0)
            part = Place(
                place.batch,
                arith.addi(place.row, times(consumer, down)),
                arith.addi(place.column, times(consumer, across)),
            )
            self.hand_over.write(sums, tile.columns, part)
            return after

        self._each_tile(tile, one)

    def _sums(self, tile: Tile, consumer: ir.Value, before: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Those of all slices, and the number of slices until then. The products of a slice go on while those of the
        next one are begun."""
        zeros = hopper.zeros(tile.columns, self.factors)
        loop = scf.ForOp(index_constant(0), self.steps, index_constant(1), [before, zeros])
        with ir.InsertionPoint(loop.body):
            number, sums = loop.inner_iter_args
            stage = self.ring.stage(number)
            hopper.wait_for(stage.full, stage.parity)
            hopper.fence()
            sums = self._products(tile, consumer, stage, sums)
            hopper.close_products()
            hopper.wait_for_products(1)
            self._leave(below(index_constant(0), loop.induction_variable), number)
            scf.yield_([arith.addi(number, i32(1)), sums])
        hopper.wait_for_products(0)
        self._leave(below(index_constant(0), self.steps), loop.results[0])
        return loop.results[1], loop.results[0]

    def _leave(self, condition: ir.Value, number: ir.Value) -> None:
        """The slice before slice `number` has been read by this warp, if there is one."""
        lane, _ = divided(thread(), WARP)
        once = arith.andi(condition, arith.cmpi(arith.CmpIPredicate.eq, lane, index_constant(0)))
        when(once, lambda: hopper.arrive(self.ring.stage(arith.subi(number, i32(1))).empty))

    def _products(self, tile: Tile, consumer: ir.Value, stage: Stage, sums: ir.Value) -> ir.Value:
        starts = [stage.start, arith.addi(stage.start, i32(tile.m // BOX * BOX_BYTES))]
        # Of 128 rows, a warpgroup has a box of the left side; else, a part of the right side's boxes.
        side, boxes = (0, 1) if tile.columns == tile.n else (1, tile.columns // BOX)
        starts[side] = arith.addi(starts[side], arith.muli(narrowed(consumer), i32(boxes * BOX_BYTES)))
        for step in range(hopper.ROW_BYTES // hopper.K_BYTES):
            a, b = (
                hopper.matrix(arith.addi(start, i32(step * hopper.depth_step(inside))), inside)
                for start, inside in zip(starts, self.insides, strict=True)
            )
            sums = hopper.multiply_add(sums, a, b, tile.columns, self.factors, self.insides)
        return sums


def index_in_map(step: ir.Value, index: ir.Value) -> ir.Value:
    """The index along an axis, of whose matrices a map has one where there is no step from one to the next."""
    none = arith.cmpi(arith.CmpIPredicate.eq, step, index_constant(0))
    return arith.select(none, index_constant(0), index)
