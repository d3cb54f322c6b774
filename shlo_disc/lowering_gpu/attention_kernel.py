# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention as one kernel: scores, their softmax and what it weighs, block of rows by block of rows.

A block of threads takes a tile of rows of one matrix and goes over the keys piece by piece, with the softmax done as
they come (`attention_rows`); the scores of a piece never leave it (FlashAttention-2, Dao 2023). Elements of f16 and
bf16 are multiplied by tensor cores (`tensor_attention`), and those of f32 where TF32 is allowed (`tf32_attention`). Few
rows are no tile, and have kernels, or bodies of kernels, of their own (`few_queries`). Else, for f32:

Threads stand in a square of 16 x 16, and each has SIDE x SIDE scores of a piece, as in `product_kernel`. Weights go
through the memory of the block, columns first; a thread then adds up SIDE rows of every 16th element of the result.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

from shlo_disc.lowering.element_types import Element, constant_like
from shlo_disc.lowering.index_rules.folds import multiply_add, zero_of
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu import nvgpu
from shlo_disc.lowering_gpu.attention_pieces import VOTES, Pieces
from shlo_disc.lowering_gpu.attention_rows import AttentionTask, Room, RowState, RowStep, ScoreBody, Sides, over_total
from shlo_disc.lowering_gpu.block_loops import counted, each_item, when
from shlo_disc.lowering_gpu.few_queries import FEW, FewQueries, are_few
from shlo_disc.lowering_gpu.grid import each_block, thread
from shlo_disc.lowering_gpu.index_math import below, divided, parts, plus, times
from shlo_disc.lowering_gpu.kernel import GpuFrame, shared_array
from shlo_disc.lowering_gpu.parts import parts_of
from shlo_disc.lowering_gpu.product_form import ProductForm, indices_of
from shlo_disc.lowering_gpu.product_side import DEPTH, PITCH, SIDE, TILE, Side
from shlo_disc.lowering_gpu.tensor_attention import ROWS, TensorAttention
from shlo_disc.lowering_gpu.tf32_attention import Tf32Attention
from shlo_disc.shape_dialect.dialect.types import product
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref, scf
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.shape_dialect.symbolic.facts import Relation

Values = list[ir.Value]

ACROSS = TILE // SIDE
"""Threads side by side along the rows, and along the columns, of a tile."""


def build_attention(frame: GpuFrame) -> tuple[Expr, Expr]:
    """Emits the body of a kernel; returns how many blocks have work, and the cost of what one does."""
    task = AttentionTask.of(frame.fusion)
    nvgpu.load(frame.function.context)
    frame.shared = VOTES + 1
    rows, matrices = task.problem.rows.size, product(axis.size for axis in task.problem.batch)
    few, few_blocks = are_few(frame, task), matrices * parts_of(frame)
    if few is True:
        FewQueries(frame, task).write()
        return few_blocks, task.problem.columns * rows * (task.depth + task.width)
    tile = tile_of(task)
    tiles, cost = matrices * ceildiv(rows, tile), task.problem.columns * tile * (task.depth + task.width)
    if few is False:
        _write_tiles(frame, task)
        return tiles, cost
    frame.guard("keys in parts", "rows in tiles", Relation.le(rows, FEW))
    choice = scf.IfOp(below(index_constant(FEW), frame.size_of(rows)), [], has_else=True)
    for block, write in ((choice.then_block, _write_tiles), (choice.else_block, lambda *a: FewQueries(*a).write())):
        with ir.InsertionPoint(block):
            write(frame, task)
            scf.yield_([])
    return Expr.maximum(tiles, few_blocks), cost


def tile_of(task: AttentionTask) -> int:
    """The rows of a tile."""
    return ROWS if Element(task.problem.element).is_half or Tf32Attention.is_for(task) else TILE


def _write_tiles(frame: GpuFrame, task: AttentionTask) -> None:
    is_half, is_tf32 = Element(task.problem.element).is_half, Tf32Attention.is_for(task)
    kind = TensorAttention if is_half else Tf32Attention if is_tf32 else _PlainAttention
    kind(frame, task).write()


class _PlainAttention:
    """The body of a kernel of f32, at the insertion point."""

    def __init__(self, frame: GpuFrame, task: AttentionTask):
        self.sides = Sides.of(frame, task)
        self.body = ScoreBody(frame, task, self.sides)
        self.room = Room.of(self.sides.columns)
        problem, self.width = task.problem, task.width
        form = ProductForm(Element(problem.element), "mk", "nk", len(problem.batch))
        self.sums = form.sums
        register = form.sums.register()
        self.pieces = [
            Side(shared_array(frame.function, i, Side.elements(form), register), 0, matrix, form, depth.constant == 1)
            for i, (matrix, depth) in enumerate(
                ((self.sides.query, problem.query_depth), (self.sides.key, problem.key_depth))
            )
        ]
        self.across = -(-self.width // ACROSS)
        blocks = 2 if self.across <= SIDE else 1  # a multiprocessor has registers for
        word = ir.IntegerType.get_signless(32)
        frame.function.attributes["nvvm.minctasm"] = ir.IntegerAttr.get(word, blocks)
        self.weights = shared_array(frame.function, 2, TILE * PITCH, self.sums.register())
        self.values = shared_array(frame.function, 3, DEPTH * self.across * ACROSS, self.sums.register())
        self.column, self.row = divided(thread(), ACROSS)
        self.columns = Pieces(frame, self.body, TILE, lambda carried: [s.peak for s in _states(carried)])

    def write(self) -> None:
        """All tiles, one block a tile at a time."""
        counts = [*self.sides.batch, parts(self.sides.rows, TILE)]
        each_block(functools.reduce(arith.muli, counts), lambda item: self._tile(indices_of(item, counts)))

    def _tile(self, place: Values) -> None:
        """A tile of rows of a matrix."""
        *matrix, tile = place
        self.matrix, first = matrix, times(tile, TILE)
        self.pieces[0].open(matrix, first)
        own = arith.addi(first, times(self.row, SIDE))
        self.rows = [plus(own, i) for i in range(SIDE)]
        self.places = [self.body.place(matrix, row) for row in self.rows]
        states = [v for _ in range(SIDE) for v in (RowState.start().peak, RowState.start().total)]
        start = [*states, *(zero_of(self.sums) for _ in range(SIDE * self.across))]
        found = self.columns.over(first, TILE, start, self._piece, splits=False)
        self._store(_states(found), found[2 * SIDE :])

    def _piece(self, first: ir.Value, carried: Values, is_whole: bool) -> Values:
        """The columns from `first` on."""
        self.pieces[1].open(self.matrix, first)
        scores = self._scores()
        column = self.body.columns(first, times(self.column, SIDE), TILE, is_whole)
        columns = [column(i) for i in range(SIDE)]
        states, sums = _states(carried), list[ir.Value]()
        before = carried[2 * SIDE :]
        for i, (place, state) in enumerate(zip(self.places, states, strict=True)):
            x = [self.body.at(place, column, score) for column, score in zip(columns, scores[i * SIDE :], strict=False)]
            step = RowStep.of(x, state, ACROSS, self.room)
            states[i] = step.state
            sums += [arith.mulf(total, step.factor) for total in before[i * self.across : (i + 1) * self.across]]
            for j, weight in enumerate(step.weights):
                slot = plus(times(self.column, SIDE * PITCH), j * PITCH + i)
                memref.store(weight, self.weights, [arith.addi(slot, times(self.row, SIDE))])
        weighed = counted(
            index_constant(0), index_constant(TILE), index_constant(DEPTH), sums, functools.partial(self._weigh, first)
        )
        return [*(v for state in states for v in (state.peak, state.total)), *weighed]

    def _scores(self) -> Values:
        """This thread's scores, row by row."""
        zeros = [zero_of(self.sums)] * SIDE**2

        def add(step: ir.Value, sums: Values) -> Values:
            found = [side.load(step) for side in self.pieces]
            gpu.barrier()  # behind it, nobody reads the pieces of the step before
            for side, values in zip(self.pieces, found, strict=True):
                side.keep(values)
            gpu.barrier()
            for depth in range(DEPTH):
                left, right = (
                    side.factors(depth, times(at, SIDE))
                    for side, at in zip(self.pieces, (self.row, self.column), strict=True)
                )
                pairs = zip(itertools.product(left, right), sums, strict=True)
                sums = [multiply_add(a, b, total, self.sums) for (a, b), total in pairs]
            return sums

        return counted(index_constant(0), self.pieces[0].depth, index_constant(DEPTH), zeros, add)

    # ---- values -----------------------------------------------------------------------------------------------------

    def _weigh(self, first: ir.Value, step: ir.Value, sums: Values) -> Values:
        """Add DEPTH values from `first + step` on, times their weights."""
        gpu.barrier()  # behind it, weights are there, and nobody reads the values of the step before
        each_item(index_constant(DEPTH * self.across * ACROSS), functools.partial(self._bring, arith.addi(first, step)))
        gpu.barrier()
        for depth in range(DEPTH):
            slot = arith.addi(times(plus(step, depth), PITCH), times(self.row, SIDE))
            left = [memref.load(self.weights, [plus(slot, i)]) for i in range(SIDE)]
            own = plus(self.column, depth * self.across * ACROSS)
            right = [memref.load(self.values, [plus(own, j * ACROSS)]) for j in range(self.across)]
            pairs = zip(itertools.product(left, right), sums, strict=True)
            sums = [multiply_add(a, b, total, self.sums) for (a, b), total in pairs]
        return sums

    def _bring(self, first: ir.Value, item: ir.Value) -> None:
        """An element of the values from `first` on, 0 where there is none: a weight of 0 is not to meet NaN there."""
        value, columns = self.sides.value, self.sides.columns
        at, row = divided(item, self.across * ACROSS)
        row = arith.addi(first, row)
        inside = arith.minui(row, arith.subi(columns, index_constant(1)))
        inner = arith.minui(at, index_constant(self.width - 1))
        found = memref.load(value.memory, [value.place((*self.matrix, inside, inner))])
        is_there = arith.andi(below(row, columns), below(at, index_constant(self.width)))
        memref.store(arith.select(is_there, found, constant_like(found, 0)), self.values, [item])

    def _store(self, states: Sequence[RowState], sums: Values) -> None:
        """Write what the result has of this thread's sums."""
        result = self.sides.result
        for i, (row, state) in enumerate(zip(self.rows, states, strict=True)):
            inverse = over_total(state.total, self.body)
            for j in range(self.across):
                at = plus(self.column, j * ACROSS)
                value = arith.mulf(sums[i * self.across + j], inverse)
                inside = arith.andi(below(row, self.sides.rows), below(at, index_constant(self.width)))
                place = result.place((*self.matrix, row, at))
                when(inside, functools.partial(memref.store, value, result.memory, [place]))


def _states(carried: Values) -> list[RowState]:
    """Those of a thread's rows, as a loop carries them."""
    return [RowState(*carried[i : i + 2]) for i in range(0, 2 * SIDE, 2)]
