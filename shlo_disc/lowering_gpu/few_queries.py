# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of few queries, as in decoding: a block goes over a part of the keys, for all rows of a matrix.

Neighbouring lanes have a row's query between them, a piece of 16 bytes each, in registers; they form a group, which
takes a key at a time, and then its value, by pieces of the same kind. So a key's scores, weights and value stay in one
group, and each group has a softmax of its own (`attention_rows`). In the end these are combined: by shuffles in a warp,
in shared memory between warps, and in scratch memory between blocks (`parts`), each time in one order. The last block
divides. Heads that share keys are rows of one matrix, so that a key is read once for several of them.

Sums, weights and what is added up are f32, whatever the elements are, and weights are not rounded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shlo_disc.lowering.element_types import Element, element_of
from shlo_disc.lowering.elements import splat_constant
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu import device_math
from shlo_disc.lowering_gpu.attention_rows import (
    AttentionTask,
    Column,
    Room,
    RowState,
    RowStep,
    ScoreBody,
    Sides,
    across,
    number_or_zero,
    over_total,
)
from shlo_disc.lowering_gpu.block_loops import ceil_div, counted, when
from shlo_disc.lowering_gpu.grid import THREADS, WARP, thread
from shlo_disc.lowering_gpu.index_math import below, divided, plus, times
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.lowering_gpu.parts import Parts
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.lowering_gpu.product_form import Matrix, indices_of
from shlo_disc.lowering_gpu.shared_tile import chunk_of, is_aligned
from shlo_disc.lowering_gpu.shuffles import from_lane_across
from shlo_disc.shape_dialect.dialect.types import bytes_of, product
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, math, memref, scf, vector
from shlo_disc.shape_dialect.symbolic.facts import Relation

Values = list[ir.Value]

FEW = GPU_POLICY.few_queries
"""Rows of a matrix up to which it is done this way."""

AHEAD = 4
"""Keys of a group that are read before the first of them is used."""

MOST, SOME = 8, 4
"""Rows that a key is read once for, at most, and where there are more."""

NARROW = 4
"""Elements of a piece for more than SOME rows, which leave fewer registers for each."""


@dataclass(frozen=True)
class Row:
    """The state of a row: its softmax so far, and what its weights weigh, a vector of f32."""

    state: RowState
    sums: ir.Value

    @property
    def values(self) -> Values:
        """The values that a loop carries."""
        return [self.state.peak, self.state.total, self.sums]

    @staticmethod
    def of(values: Sequence[ir.Value]) -> list[Row]:
        """Rows that a loop carries."""
        return [Row(RowState(*values[i : i + 2]), values[i + 2]) for i in range(0, len(values), 3)]

    def with_other(self, other: Row) -> Row:
        """The same row of other keys besides."""
        peak = arith.maximumf(self.state.peak, other.state.peak)
        mine, theirs = (device_math.exp(arith.subf(r.state.peak, number_or_zero(peak))) for r in (self, other))
        total = math.fma(self.state.total, mine, arith.mulf(other.state.total, theirs))
        if isinstance(self.sums.type, ir.VectorType):
            mine, theirs = (vector.broadcast(self.sums.type, factor) for factor in (mine, theirs))
        return Row(RowState(peak, total), math.fma(self.sums, mine, arith.mulf(other.sums, theirs)))


Use = Callable[[ir.Value, ir.Value, Row], None]
"""Takes a row of a matrix and a column, with the row's state and its sum in this column."""


class FewQueries:
    """The body of a kernel, at the insertion point."""

    def __init__(self, frame: GpuFrame, task: AttentionTask):
        self.frame, self.sides = frame, Sides.of(frame, task)
        self.body = ScoreBody(frame, task, self.sides)
        self.parts, self.problem = Parts(frame), task.problem
        self.depth, self.width = task.depth, task.width
        self.element, self.result = Element(task.problem.element), element_of(frame.outputs[0].type).memory()
        self.exp = _exp2_of if self.element.is_half else device_math.exp
        self.room = Room.of(self.sides.columns)
        self.count = rows_together(frame, task)
        whole = chunk_of(self.element.memory())
        self.piece = min(whole, NARROW) if self.count > SOME or are_few(frame, task) is None else whole
        pieces = -(-max(self.depth, self.width) // self.piece)
        self.lanes = 1 << (pieces - 1).bit_length()
        lane, self.group = divided(thread(), self.lanes)
        self.own = times(lane, self.piece)
        self.zero = splat_constant(ir.VectorType.get([self.piece], ir.F32Type.get()))
        self.pitch = self.width + 2
        self.shared = frame.shared_memory(THREADS // WARP * self.pitch, ir.F32Type.get())
        problem, sides = task.problem, self.sides
        operands = ((problem.query, sides.query), (problem.key, sides.key), (problem.value, sides.value))
        self.are_aligned = functools.reduce(
            arith.andi, (is_aligned(frame.entry.arguments[o.number], o.start, matrix.strides) for o, matrix in operands)
        )

    def write(self) -> None:
        """All matrices, a part of the keys of one at a time."""
        self.parts.guard(self.problem.columns, GPU_POLICY.part_keys, product(axis.size for axis in self.problem.batch))
        matrices = functools.reduce(arith.muli, self.sides.batch, index_constant(1))
        self.parts.each(matrices, self._item)

    def _item(self, item: ir.Value) -> None:
        """The block's part of the keys of a matrix, and the results if it is the last one to have its part."""
        batch = self.sides.batch
        self.matrix, self.first = indices_of(item, batch) if batch else [], arith.muli(item, self.sides.rows)
        begin, count = self.parts.share(self.problem.columns)
        is_split = self.parts.is_split

        def leave_or_store(row: ir.Value, column: ir.Value, found: Row) -> None:
            if is_split is None:
                self._store(row, column, found)
                return
            choice = scf.IfOp(is_split, [], has_else=True)
            for block, use in ((choice.then_block, self._leave), (choice.else_block, self._store)):
                with ir.InsertionPoint(block):
                    use(row, column, found)
                    scf.yield_([])

        self._each_rows(lambda row: self._walk(row, begin, count), leave_or_store)
        if is_split is not None:
            when(is_split, lambda: when(self.parts.is_last(), lambda: self._each_rows(self._gather, self._store)))

    def _each_rows(self, found: Callable[[ir.Value], list[Row]], use: Use) -> None:
        """`use` what is `found` of all rows of the matrix, so many from one on at a time."""

        def some(first: ir.Value, _: Values) -> Values:
            self._of_block(first, found(first), use)
            return []

        counted(index_constant(0), self.sides.rows, index_constant(self.count), [], some)

    # ---- keys -------------------------------------------------------------------------------------------------------

    def _walk(self, first: ir.Value, begin: ir.Value, count: ir.Value) -> list[Row]:
        """The results for rows from `first` on and this group's keys, of the block's `count` keys from `begin` on."""
        last = plus(self.sides.rows, -1)
        rows = [arith.minui(plus(first, i), last) for i in range(self.count)]
        queries = [self._wide(v) for v in self._pieces([(self.sides.query, row, self.depth) for row in rows])]
        places = [self.body.place(self.matrix, row) for row in rows]
        groups = THREADS // self.lanes
        start = [v for _ in rows for v in Row(RowState.start(), self.zero).values]

        def some(place: ir.Value, carried: Values) -> Values:
            numbers = [arith.addi(place, plus(self.group, i * groups)) for i in range(AHEAD)]
            are_there = [below(number, count) for number in numbers]
            keys = [arith.addi(begin, arith.minui(number, plus(count, -1))) for number in numbers]
            sides = ((self.sides.key, self.depth), (self.sides.value, self.width))
            read = self._pieces([(side, key, size) for side, size in sides for key in keys])
            columns = [Column(key, is_there) for key, is_there in zip(keys, are_there, strict=True)]
            left = [self._wide(v) for v in read[:AHEAD]]
            # A weight of 0 is not to meet NaN where there is no key.
            right = [
                arith.select(c.is_there, self._wide(v), self.zero) for c, v in zip(columns, read[AHEAD:], strict=True)
            ]
            found = Row.of(carried)
            return [
                v
                for query, row_place, row in zip(queries, places, found, strict=True)
                for v in self._step(row, [self._score(query, k) for k in left], row_place, columns, right).values
            ]

        return Row.of(counted(index_constant(0), count, index_constant(groups * AHEAD), start, some))

    def _step(
        self, row: Row, scores: Values, place: Sequence[ir.Value], columns: Sequence[Column], values: Values
    ) -> Row:
        """A row with some more keys."""
        x = [self.body.at(place, column, score) for column, score in zip(columns, scores, strict=True)]
        step = RowStep.of(x, row.state, 1, self.room, self.exp)
        sums = arith.mulf(row.sums, vector.broadcast(row.sums.type, step.factor))
        for weight, value in zip(step.weights, values, strict=True):
            sums = math.fma(vector.broadcast(sums.type, weight), value, sums)
        return Row(step.state, sums)

    def _score(self, query: ir.Value, key: ir.Value) -> ir.Value:
        """The product of a group's query and key, in all of its lanes."""
        (a, b), *rest = [[vector.extract(v, [], [i]) for v in (query, key)] for i in range(self.piece)]
        total = arith.mulf(a, b)
        for a, b in rest:
            total = math.fma(a, b, total)
        return across(total, self.lanes, arith.addf)

    # ---- memory -----------------------------------------------------------------------------------------------------

    def _pieces(self, rows: Sequence[tuple[Matrix, ir.Value, int]]) -> Values:
        """This lane's piece of some rows of matrices, of so many elements; 0 behind the last of them."""
        type_ = ir.VectorType.get([self.piece], self.element.memory())
        begins = [arith.addi(self._start(m), arith.muli(row, m.strides[-2])) for m, row, _ in rows]

        def together() -> Values:
            return [
                vector.load(
                    type_,
                    matrix.memory,
                    [arith.addi(begin, self._inside(size, self.piece))],
                    alignment=self.piece * bytes_of(self.element.memory()),
                )
                for begin, (matrix, _, size) in zip(begins, rows, strict=True)
            ]

        def apart() -> Values:
            return [
                vector.from_elements(type_, [self._element(matrix, begin, i, size) for i in range(self.piece)])
                for begin, (matrix, _, size) in zip(begins, rows, strict=True)
            ]

        if any(size % self.piece for *_, size in rows):
            return apart()
        choice = scf.IfOp(self.are_aligned, [type_] * len(rows), has_else=True)
        for block, read in ((choice.then_block, together), (choice.else_block, apart)):
            with ir.InsertionPoint(block):
                scf.yield_(read())
        zero = splat_constant(type_)
        return [
            v if size == self.lanes * self.piece else arith.select(below(self.own, index_constant(size)), v, zero)
            for v, (*_, size) in zip(choice.results, rows, strict=True)
        ]

    def _start(self, matrix: Matrix) -> ir.Value:
        return matrix.place(self.matrix) if self.matrix else index_constant(0)

    def _inside(self, size: int, count: int) -> ir.Value:
        """The first of `count` elements of this lane, or of the row's last ones."""
        return self.own if size >= self.lanes * self.piece else arith.minui(self.own, index_constant(size - count))

    def _element(self, matrix: Matrix, begin: ir.Value, number: int, size: int) -> ir.Value:
        at = plus(self.own, number)
        place = arith.muli(arith.minui(at, index_constant(size - 1)), matrix.strides[-1])
        found = memref.load(matrix.memory, [arith.addi(begin, place)])
        return arith.select(below(at, index_constant(size)), found, arith.constant(found.type, 0.0))

    def _wide(self, piece: ir.Value) -> ir.Value:
        return piece if piece.type == self.zero.type else arith.extf(self.zero.type, piece)

    # ---- groups, and blocks -----------------------------------------------------------------------------------------

    def _of_block(self, first: ir.Value, rows: list[Row], use: Use) -> None:
        """`use` each row from `first` on, which exists, with what all groups of the block have found of it."""
        offset = self.lanes
        while offset < WARP:
            rows = [row.with_other(_from_lane_across(row, offset, self.piece)) for row in rows]
            offset *= 2
        lane, warp = divided(thread(), WARP)
        at = times(warp, self.pitch)
        for number, row in enumerate(rows):
            place = plus(first, number)
            self._keep(row, lane, at)
            gpu.barrier()
            is_there = arith.andi(below(thread(), index_constant(self.width)), below(place, self.sides.rows))
            when(is_there, functools.partial(self._use, use, place))
            gpu.barrier()  # behind it, nobody reads what the warps have left

    def _use(self, use: Use, place: ir.Value) -> None:
        use(place, thread(), self._of_warps())

    def _keep(self, row: Row, lane: ir.Value, at: ir.Value) -> None:
        """Leave what a warp has found, whose lanes all know it, for those of other warps."""
        for i in range(self.piece):
            column = plus(self.own, i)
            is_there = arith.andi(below(lane, index_constant(self.lanes)), below(column, index_constant(self.width)))
            value = vector.extract(row.sums, [], [i])
            when(is_there, functools.partial(memref.store, value, self.shared, [arith.addi(at, column)]))

        def state() -> None:
            for i, value in enumerate((row.state.peak, row.state.total)):
                memref.store(value, self.shared, [plus(at, self.width + i)])

        when(arith.cmpi(arith.CmpIPredicate.eq, lane, index_constant(0)), state)

    def _of_warps(self) -> Row:
        """A row in this thread's column, of all warps."""

        def of_warp(number: int) -> Row:
            at = [plus(place, number * self.pitch) for place in (index_constant(self.width), thread())]
            peak, total = (memref.load(self.shared, [place]) for place in (at[0], plus(at[0], 1)))
            return Row(RowState(peak, total), memref.load(self.shared, [at[1]]))

        return functools.reduce(Row.with_other, map(of_warp, range(THREADS // WARP)))

    def _leave(self, row: ir.Value, column: ir.Value, found: Row) -> None:
        """Leave what the block has found of a row for the last block."""
        place = arith.addi(self.first, row)
        self.parts.store([found.sums], [place, column], 2)
        state = [found.state.peak, found.state.total]
        is_first = arith.cmpi(arith.CmpIPredicate.eq, column, index_constant(0))
        when(is_first, lambda: self.parts.store(state, [place]))

    def _gather(self, first: ir.Value) -> list[Row]:
        """The parts that blocks have left of rows from `first` on: each group has neighbouring ones, in their order."""
        last, count = plus(self.sides.rows, -1), self.parts.number()
        each = ceil_div(count, index_constant(THREADS // self.lanes))
        begin = arith.minui(arith.muli(self.group, each), count)
        places = [arith.addi(self.first, arith.minui(plus(first, i), last)) for i in range(self.count)]
        columns = [arith.minui(plus(self.own, i), index_constant(self.width - 1)) for i in range(self.piece)]

        def left(part: ir.Value, place: ir.Value) -> Row:
            peak, total = self.parts.left(part, [place], 0, 2)
            sums = [self.parts.left(part, [place, column], 2, 1)[0] for column in columns]
            return Row(RowState(peak, total), vector.from_elements(self.zero.type, sums))

        def one(part: ir.Value, carried: Values) -> Values:
            rows = zip(Row.of(carried), places, strict=True)
            return [v for row, place in rows for v in row.with_other(left(part, place)).values]

        start = [v for _ in places for v in Row(RowState.start(), self.zero).values]
        end = arith.minui(arith.addi(begin, each), count)
        return Row.of(counted(begin, end, index_constant(1), start, one))

    def _store(self, row: ir.Value, column: ir.Value, found: Row) -> None:
        """Write an element of the result."""
        value = arith.mulf(found.sums, over_total(found.state.total, self.body))
        value = value if value.type == self.result else arith.truncf(self.result, value)
        result = self.sides.result
        memref.store(value, result.memory, [result.place((*self.matrix, row, column))])


def rows_together(frame: GpuFrame, task: AttentionTask) -> int:
    """The rows that a key is read once for: those that there are in every call."""
    least, _ = frame.facts.range(task.problem.rows.size)
    known = max(1, least or 1)
    return known if known <= MOST else SOME


def are_few(frame: GpuFrame, task: AttentionTask) -> bool | None:
    """Tells whether the rows of a matrix are few; None where that depends on the sizes of a call."""
    return frame.facts.prove(Relation.le(task.problem.rows.size, FEW))


def _exp2_of(x: ir.Value) -> ir.Value:
    """e^x, off by 2^-22 and 2^-24 of x: for numbers that are rounded to 16 bits."""
    return device_math.fast_exp2(arith.mulf(x, arith.constant(x.type, 1.4426950408889634)))


def _from_lane_across(row: Row, offset: int, piece: int) -> Row:
    """The row of a lane whose number differs in the bits of `offset`."""
    peak, total = (from_lane_across(v, offset) for v in (row.state.peak, row.state.total))
    sums = [from_lane_across(vector.extract(row.sums, [], [i]), offset) for i in range(piece)]
    return Row(RowState(peak, total), vector.from_elements(row.sums.type, sums))
