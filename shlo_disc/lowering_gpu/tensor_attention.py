# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of f16 and bf16 on tensor cores (FlashAttention-2, Dao 2023).

A warp has 16 rows of a block's tile for itself, with their queries, and what was added up for them, in registers. Keys
and values of a piece are in shared memory: while scores are made of the keys the values come, and while the values are
weighed the next keys do. The fragments of scores that `mma.sync` leaves are, rounded, those that it takes as weights.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from shlo_disc.lowering.element_types import Element, element_of
from shlo_disc.lowering.elements import splat_constant
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu import device_math, nvgpu
from shlo_disc.lowering_gpu.attention_pieces import Pieces
from shlo_disc.lowering_gpu.attention_rows import AttentionTask, RowState, RowStep, ScoreBody, Sides, finished
from shlo_disc.lowering_gpu.block_loops import when
from shlo_disc.lowering_gpu.grid import THREADS, WARP, each_block, thread
from shlo_disc.lowering_gpu.index_math import below, divided, parts, plus, times
from shlo_disc.lowering_gpu.kernel import GpuFrame, shared_array
from shlo_disc.lowering_gpu.product_form import Matrix, indices_of
from shlo_disc.lowering_gpu.shared_tile import CHUNK, FRAGMENT, SharedTile, is_aligned
from shlo_disc.shape_dialect.dialect.problems import Operand
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref, vector

Values = list[ir.Value]

ROWS = THREADS // WARP * FRAGMENT
"""Rows of a block."""

COLUMNS = 64
"""Columns of the scores that are worked on together."""

PAIRS = COLUMNS // CHUNK
"""Fragments of scores side by side; of each, a lane has two neighbours in two rows."""

HALVES = 2
"""Rows of a lane, eight apart."""

LANES = 4
"""Lanes that share their rows."""

NARROW = 64
"""Elements of a head up to which a thread needs no more than 128 registers."""


class TensorAttention:
    """The body of a kernel, at the insertion point."""

    def __init__(self, frame: GpuFrame, task: AttentionTask):
        nvgpu.load(frame.function.context)
        self.sides = Sides.of(frame, task)
        self.body = ScoreBody(frame, task, self.sides)
        self.element = Element(task.problem.element).memory()
        self.result = element_of(frame.outputs[0].type).memory()
        self.depth, self.width = (-(-size // FRAGMENT) * FRAGMENT for size in (task.depth, task.width))
        self.real_width = task.width
        if max(self.depth, self.width) <= NARROW:  # two blocks have registers: one works while the other waits
            word = ir.IntegerType.get_signless(32)
            frame.function.attributes["nvvm.minctasm"] = ir.IntegerAttr.get(word, 2)
        rooms = [SharedTile.room(ROWS, self.depth), *(SharedTile.room(COLUMNS, n) for n in (self.depth, self.width))]
        self.shared = shared_array(frame.function, 0, max(rooms[0], rooms[1] + rooms[2]), self.element)
        problem, sides = task.problem, self.sides

        def tile(operand: Operand, matrix: Matrix, start: int, rows: int, row: int) -> SharedTile:
            aligned = is_aligned(frame.entry.arguments[operand.number], operand.start, matrix.strides)
            return SharedTile(self.shared, start, matrix, aligned, rows, row)

        self.queries = tile(problem.query, sides.query, 0, ROWS, self.depth)
        self.keys = tile(problem.key, sides.key, 0, COLUMNS, self.depth)
        self.values = tile(problem.value, sides.value, rooms[1], COLUMNS, self.width)
        lane, self.warp = divided(thread(), WARP)
        self.in_group, self.group = divided(lane, LANES)
        self.pieces = Pieces(frame, self.body, COLUMNS, _states)

    def write(self) -> None:
        """All tiles, one block a tile at a time."""
        counts = [*self.sides.batch, parts(self.sides.rows, ROWS)]
        each_block(functools.reduce(arith.muli, counts), lambda item: self._tile(indices_of(item, counts)))

    def _tile(self, place: Values) -> None:
        """A tile of rows of a matrix."""
        *self.matrix, tile = place
        first = times(tile, ROWS)
        left = self._queries(first)
        own = arith.addi(first, arith.addi(times(self.warp, FRAGMENT), self.group))
        self.rows = [plus(own, CHUNK * half) for half in range(HALVES)]
        self.places = [self.body.place(self.matrix, row) for row in self.rows]
        zero = splat_constant(ir.VectorType.get([2, 2], ir.F32Type.get()))
        states = [v for _ in range(HALVES) for v in (RowState.start().peak, RowState.start().total)]
        self.keys.fetch(self.matrix, index_constant(0))
        step = functools.partial(self._piece, left)
        start = [*states, *[zero] * (self.width // CHUNK)]
        found = self.pieces.over(plus(first, ROWS), start, step)
        # For keys that nobody needs: they lie where this thread brings queries of the next tile.
        nvgpu.wait_for_groups(0)
        self._store(_states(found), found[2 * HALVES :])

    def _queries(self, first: ir.Value) -> Values:
        """The fragments of this warp's rows. They come by way of the memory of keys and values."""
        self.queries.fetch(self.matrix, first)
        nvgpu.wait_for_groups(0)
        gpu.barrier()
        row = times(self.warp, FRAGMENT)
        found = [self.queries.left(row, depth) for depth in range(0, self.depth, FRAGMENT)]
        gpu.barrier()
        return found

    def _piece(self, left: Values, first: ir.Value, carried: Values) -> Values:
        """The columns from `first` on, whose keys are on their way."""
        self.values.fetch(self.matrix, first)
        nvgpu.wait_for_groups(1)
        gpu.barrier()
        scores = self._scores(left)
        gpu.barrier()
        self.keys.fetch(self.matrix, plus(first, COLUMNS))
        steps = [self._step(half, first, scores, state) for half, state in enumerate(_states(carried))]
        factors = [step.factor for step in steps for _ in range(2)]
        factor = vector.from_elements(ir.VectorType.get([HALVES, 2], ir.F32Type.get()), factors)
        sums = [arith.mulf(four, factor) for four in carried[2 * HALVES :]]
        nvgpu.wait_for_groups(1)
        gpu.barrier()
        sums = self._weighed([step.weights for step in steps], sums)
        gpu.barrier()
        return [*(v for step in steps for v in (step.state.peak, step.state.total)), *sums]

    def _scores(self, left: Values) -> Values:
        """The scores of a warp's rows and a piece's columns, fragment by fragment."""
        sums: Values = [splat_constant(ir.VectorType.get([2, 2], ir.F32Type.get()))] * PAIRS
        for number, queries in enumerate(left):
            keys = [
                half
                for column in range(0, COLUMNS, FRAGMENT)
                for half in self.keys.right_by_columns(column, number * FRAGMENT)
            ]
            sums = [nvgpu.multiply_add(queries, key, total) for key, total in zip(keys, sums, strict=True)]
        return sums

    def _step(self, half: int, first: ir.Value, scores: Values, state: RowState) -> RowStep:
        """The softmax of one of a lane's rows."""
        column = self.body.columns(first, times(self.in_group, 2), COLUMNS)
        x = [
            self.body.at(self.places[half], column(CHUNK * pair + one), vector.extract(four, [], [half, one]))
            for pair, four in enumerate(scores)
            for one in range(2)
        ]
        return RowStep.of(x, state, LANES, device_math.fast_exp)

    def _weighed(self, weights: Sequence[Values], sums: Values) -> Values:
        """Add the values of a piece, times the weights of a lane's rows."""
        for row in range(0, COLUMNS, FRAGMENT):
            pairs = range(row // CHUNK * 2, (row + FRAGMENT) // CHUNK * 2, 2)
            left = self._rounded([w for i in pairs for own in weights for w in own[i : i + 2]])
            values = [
                half for column in range(0, self.width, FRAGMENT) for half in self.values.right_by_rows(row, column)
            ]
            sums = [nvgpu.multiply_add(left, value, total) for value, total in zip(values, sums, strict=True)]
        return sums

    def _rounded(self, weights: Values) -> ir.Value:
        """Weights as A (16 x 16): pairs of the first row and of the second, then those of the next fragment."""
        wide = vector.from_elements(ir.VectorType.get([4, 2], ir.F32Type.get()), weights)
        return arith.truncf(ir.VectorType.get([4, 2], self.element), wide)

    def _store(self, states: Sequence[RowState], sums: Values) -> None:
        """Write what the result has of this lane's sums."""
        for half, (row, state) in enumerate(zip(self.rows, states, strict=True)):
            when(below(row, self.sides.rows), functools.partial(self._store_row, half, row, state, sums))

    def _store_row(self, half: int, row: ir.Value, state: RowState, sums: Values) -> None:
        result, own = self.sides.result, times(self.in_group, 2)
        for number, four in enumerate(sums):
            for one in range(2):
                at = plus(own, number * CHUNK + one)
                value = finished(vector.extract(four, [], [half, one]), state, self.body)
                value = value if value.type == self.result else arith.truncf(self.result, value)
                place = result.place((*self.matrix, row, at))
                store = functools.partial(memref.store, value, result.memory, [place])
                is_known = number * CHUNK + CHUNK <= self.real_width
                store() if is_known else when(below(at, index_constant(self.real_width)), store)


def _states(carried: Values) -> list[RowState]:
    """Those of a lane's rows, as a loop carries them."""
    return [RowState(*carried[i : i + 2]) for i in range(0, 2 * HALVES, 2)]
