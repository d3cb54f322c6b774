# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of f16 and bf16 on tensor cores (FlashAttention-2, Dao 2023); `tf32_attention` changes it for f32.

A warp has 16 rows of a block's tile for itself, with what was added up for them in registers; their queries are there
as well, or in shared memory where it has room for them. Keys and values of a piece are in shared memory: while scores
and weights are made of the keys the values come, and while the values are weighed the next keys do. The fragments of
scores that `mma.sync` leaves are, rounded, those that it takes as weights. The sums of the weights are a column of the
result, for a column of ones of the values.

A kernel has two bodies, of which the block takes one: with asynchronous copies of 16 bytes, or element by element where
a matrix is not aligned.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

from shlo_disc.lowering.element_types import Element, element_of
from shlo_disc.lowering.elements import splat_constant
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu import nvgpu
from shlo_disc.lowering_gpu.attention_pieces import Pieces
from shlo_disc.lowering_gpu.attention_rows import NO_NUMBER, AttentionTask, ScoreBody, Sides, f32, over_total
from shlo_disc.lowering_gpu.block_loops import when
from shlo_disc.lowering_gpu.grid import THREADS, WARP, each_block, thread
from shlo_disc.lowering_gpu.index_math import below, divided, parts, plus, times
from shlo_disc.lowering_gpu.kernel import GpuFrame, shared_array
from shlo_disc.lowering_gpu.product_form import indices_of
from shlo_disc.lowering_gpu.shared_tile import FRAGMENT, MATRIX, SharedTile, chunk_of, is_aligned
from shlo_disc.lowering_gpu.tensor_softmax import (
    RowPart,
    TensorSoftmax,
    rescaled,
    rounded_weights,
    scaled_fragments,
)
from shlo_disc.shape_dialect.dialect.types import bytes_of
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref, scf, vector

Values = list[ir.Value]
Queries = Callable[[int], ir.Value]

ROWS = THREADS // WARP * FRAGMENT
"""Rows of a block."""

COLUMNS = 64
"""Columns of the scores that are worked on together."""

PAIRS = COLUMNS // MATRIX
"""Fragments of scores side by side; of each, a lane has two neighbours in two rows."""

HALVES = 2
"""Rows of a lane, eight apart."""

LANES = 4
"""Lanes that share their rows."""

SHARED_BYTES = 48 << 10
"""Shared memory that every launch has."""


class TensorAttention:
    """The body of a kernel, at the insertion point."""

    step = FRAGMENT
    """Elements that one product of fragments goes over."""

    narrow = 64
    """Elements of a head up to which a thread needs no more than 128 registers."""

    multiply = staticmethod(nvgpu.multiply_add)

    def __init__(self, frame: GpuFrame, task: AttentionTask):
        nvgpu.load(frame.function.context)
        self.sides = Sides.of(frame, task)
        self.body = ScoreBody(frame, task, self.sides)
        self.element = Element(task.problem.element).memory()
        self.result = element_of(frame.outputs[0].type).memory()
        self.depth, self.width = (-(-size // FRAGMENT) * FRAGMENT for size in (task.depth, task.width))
        self.real_width = task.width
        if max(self.depth, self.width) <= self.narrow:  # two blocks have registers: one works while the other waits
            word = ir.IntegerType.get_signless(32)
            frame.function.attributes["nvvm.minctasm"] = ir.IntegerAttr.get(word, 2)
        pad = chunk_of(self.element)
        queries, keys = (rows * (self.depth + pad) for rows in (ROWS, COLUMNS))
        values = COLUMNS * (self.width + pad)
        self.keeps_queries = (queries + keys + values) * bytes_of(self.element) <= SHARED_BYTES
        begin = queries if self.keeps_queries else 0
        self.shared = shared_array(frame.function, 0, max(queries, begin + keys + values), self.element)
        problem, sides = task.problem, self.sides
        operands = ((problem.query, sides.query), (problem.key, sides.key), (problem.value, sides.value))
        self.are_aligned = functools.reduce(
            arith.andi, (is_aligned(frame.entry.arguments[o.number], o.start, matrix.strides) for o, matrix in operands)
        )
        self.queries = SharedTile(self.shared, 0, sides.query, True, ROWS, self.depth)
        self.keys = SharedTile(self.shared, begin, sides.key, True, COLUMNS, self.depth)
        self.values = SharedTile(self.shared, begin + keys, sides.value, True, COLUMNS, self.width)
        lane, self.warp = divided(thread(), WARP)
        self.in_group, self.group = divided(lane, LANES)
        self.softmax = TensorSoftmax(self.sides.columns, self.element, LANES)
        self.pieces = Pieces(frame, self.body, COLUMNS, lambda carried: carried[:HALVES])

    def write(self) -> None:
        """All tiles, one block a tile at a time."""
        counts = [*self.sides.batch, parts(self.sides.rows, ROWS)]
        choice = scf.IfOp(self.are_aligned, [], has_else=True)
        for block, aligned in ((choice.then_block, True), (choice.else_block, False)):
            self.queries, self.keys, self.values = (
                dataclasses.replace(tile, aligned=aligned) for tile in (self.queries, self.keys, self.values)
            )
            with ir.InsertionPoint(block):
                each_block(functools.reduce(arith.muli, counts), lambda item: self._tile(indices_of(item, counts)))
                scf.yield_([])

    def _tile(self, place: Values) -> None:
        """A tile of rows of a matrix."""
        *self.matrix, tile = place
        first = times(tile, ROWS)
        left = self._queries(first)
        own = arith.addi(first, arith.addi(times(self.warp, FRAGMENT), self.group))
        self.rows = [plus(own, MATRIX * half) for half in range(HALVES)]
        self.places = [self.body.place(self.matrix, row) for row in self.rows]
        zero = splat_constant(ir.VectorType.get([2, 2], ir.F32Type.get()))
        self.keys.fetch(self.matrix, index_constant(0))
        is_near = arith.constant(ir.IntegerType.get_signless(1), 1)
        start = [*[f32(NO_NUMBER)] * HALVES, is_near, *[zero] * (self.width // MATRIX + 1)]
        found = self.pieces.over(first, ROWS, start, functools.partial(self._piece, left), splits=self.keys.aligned)
        # For keys that nobody needs: they lie where this thread brings keys, or queries, of the next tile.
        nvgpu.wait_for_groups(0)
        if not self.keeps_queries:
            gpu.barrier()  # behind it, nobody reads values, which lie where queries come
        self._store(found[HALVES + 1 :])

    def _queries(self, first: ir.Value) -> Queries:
        """The fragments of this warp's rows, by their first element of a head.

        They stay in shared memory, or come by way of that of keys and values.
        """
        row = times(self.warp, FRAGMENT)
        self.queries.fetch(self.matrix, first)
        self._arrive(self.queries)
        if self.keeps_queries:
            return functools.partial(self.queries.left, row)
        gpu.barrier()
        found = {depth: self.queries.left(row, depth) for depth in range(0, self.depth, self.step)}
        gpu.barrier()
        return found.__getitem__

    def _piece(self, left: Queries, first: ir.Value, carried: Values, is_whole: bool) -> Values:
        """The columns from `first` on, whose keys are on their way."""
        self._arrive(self.keys)
        gpu.barrier()  # behind it, keys are there, and nobody reads the values of the piece before
        self.values.fetch(self.matrix, first, is_whole)
        scores = self._scores(left)
        parts = [self._part(half, first, scores, carried[half], is_whole) for half in range(HALVES)]
        peaks, (was_near, *sums) = carried[:HALVES], carried[HALVES:]
        steps, is_near = self.softmax.of(parts, was_near)
        sums = rescaled(steps, peaks, sums, scaled_fragments)
        self._arrive(self.values)
        gpu.barrier()  # behind it, values are there, and nobody reads keys
        self.keys.fetch(self.matrix, plus(first, COLUMNS))
        return [*(step.peak for step in steps), is_near, *self._weighed([step.weights for step in steps], sums)]

    def _arrive(self, tile: SharedTile) -> None:
        """Until this thread's part of a tile is there."""
        nvgpu.wait_for_groups(0)

    def _scores(self, left: Queries) -> Values:
        """The scores of a warp's rows and a piece's columns, fragment by fragment."""
        sums: Values = [splat_constant(ir.VectorType.get([2, 2], ir.F32Type.get()))] * PAIRS
        for depth in range(0, self.depth, self.step):
            queries = left(depth)
            keys = [
                half for column in range(0, COLUMNS, FRAGMENT) for half in self.keys.right_by_columns(column, depth)
            ]
            sums = [self.multiply(queries, key, total) for key, total in zip(keys, sums, strict=True)]
        return sums

    def _part(self, half: int, first: ir.Value, scores: Values, before: ir.Value, is_whole: bool) -> RowPart:
        """The elements of one of a lane's rows."""
        column = self.body.columns(first, times(self.in_group, 2), COLUMNS, is_whole)
        at = self.body.scaled_at if is_whole else self.body.at
        y = [
            at(self.places[half], column(MATRIX * pair + one), vector.extract(four, [], [half, one]))
            for pair, four in enumerate(scores)
            for one in range(2)
        ]
        return RowPart(y, self.body.scaled.factor if is_whole else 1.0, before)

    def _weighed(self, weights: Sequence[Values], sums: Values) -> Values:
        """Add the values of a piece, times the weights of a lane's rows. The last sums are those of the weights."""
        for row in range(0, COLUMNS, self.step):
            pairs = range(row // MATRIX * 2, (row + self.step) // MATRIX * 2, 2)
            left = self._rounded(weights, pairs)
            values = self._right(row)
            one = splat_constant(ir.VectorType(values[0].type), 1)
            sums = [self.multiply(left, value, total) for value, total in zip([*values, one], sums, strict=True)]
        return sums

    def _right(self, row: int) -> Values:
        """The values from a row of a piece on as B, all columns of them."""
        return [half for column in range(0, self.width, FRAGMENT) for half in self.values.right_by_rows(row, column)]

    def _rounded(self, weights: Sequence[Values], pairs: range) -> ir.Value:
        """Weights as A."""
        return rounded_weights(weights, pairs, self.element)

    def _store(self, sums: Values) -> None:
        """Write what the result has of this lane's sums."""
        for half, row in enumerate(self.rows):
            when(below(row, self.sides.rows), functools.partial(self._store_row, half, row, sums))

    def _store_row(self, half: int, row: ir.Value, sums: Values) -> None:
        result, own = self.sides.result, times(self.in_group, 2)
        *sums, totals = sums
        inverse = over_total(vector.extract(totals, [], [half, 0]), self.body)
        for number, four in enumerate(sums):
            for one in range(2):
                at = plus(own, number * MATRIX + one)
                value = arith.mulf(vector.extract(four, [], [half, one]), inverse)
                value = value if value.type == self.result else arith.truncf(self.result, value)
                place = result.place((*self.matrix, row, at))
                store = functools.partial(memref.store, value, result.memory, [place])
                is_known = number * MATRIX + MATRIX <= self.real_width
                store() if is_known else when(below(at, index_constant(self.real_width)), store)
