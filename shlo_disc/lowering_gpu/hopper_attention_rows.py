# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The warpgroups of `hopper_attention` that have rows: scores, their softmax, and what it weighs."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from shlo_disc.lowering.element_types import Element
from shlo_disc.lowering.elements import splat_constant
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu import hopper, nvgpu
from shlo_disc.lowering_gpu.attention_pieces import Pieces
from shlo_disc.lowering_gpu.attention_rows import NO_NUMBER, AttentionTask, ScoreBody, f32, over_total
from shlo_disc.lowering_gpu.block_loops import when
from shlo_disc.lowering_gpu.grid import WARP, thread
from shlo_disc.lowering_gpu.hopper import BOX, BOX_BYTES, FACTORS, WARPGROUP, i32, narrowed
from shlo_disc.lowering_gpu.hopper_ring import CONSUMERS, STAGES, Place, Ring, Stage
from shlo_disc.lowering_gpu.hopper_sums import SPAN, HandOver, of_number
from shlo_disc.lowering_gpu.index_math import divided, plus, times
from shlo_disc.lowering_gpu.shared_tile import FRAGMENT, MATRIX
from shlo_disc.lowering_gpu.shuffles import from_lane
from shlo_disc.lowering_gpu.tensor_softmax import (
    RowPart,
    RowWeights,
    TensorSoftmax,
    rescaled,
    rounded_weights,
    scaled_fragments,
)
from shlo_disc.shape_dialect.mlir import arith, ir, vector

Values = list[ir.Value]

ROWS = CONSUMERS * hopper.M
"""Rows of a block."""

KEYS = 128
"""Columns of the scores that are worked on together."""

HALVES, LANES = 2, 4
"""Rows of a lane, eight apart, and lanes that share their rows."""

WORDS = 4
"""The words of a lane in a fragment of weights, of 16 rows and columns."""


class Memory:
    """The shared memory that a launch asks for: queries, the ring, and the barriers of both."""

    def __init__(self, depth: int, width: int):
        """depth, width: elements of a key, and of a value."""
        self.depth_boxes, self.width_boxes = (-(-size // BOX) for size in (depth, width))
        self.query_bytes = CONSUMERS * self.depth_boxes * BOX_BYTES
        self.stage_bytes = KEYS // BOX * max(self.depth_boxes, self.width_boxes) * BOX_BYTES
        self.barriers = self.query_bytes + STAGES * self.stage_bytes

    @property
    def bytes(self) -> int:
        """All of it, with the padding to begin at a multiple of ATOM_BYTES."""
        return hopper.ATOM_BYTES + self.barriers + 2 * 8 * (STAGES + 1)

    def rings(self, base: ir.Value) -> tuple[Ring, Ring]:
        """The rings of queries, of one stage, and of keys and values."""
        queries = Ring(base, 1, self.query_bytes, 0, self.barriers)
        return queries, Ring(base, STAGES, self.stage_bytes, self.query_bytes, self.barriers + 2 * 8)


class WarpgroupRows:
    """The rows of a warpgroup, which is number `consumer` of those that have some."""

    def __init__(
        self,
        task: AttentionTask,
        body: ScoreBody,
        pieces: Pieces,
        memory: Memory,
        rings: tuple[Ring, Ring],
        hand_over: HandOver,
        consumer: ir.Value,
    ):
        element = Element(task.problem.element)
        self.element, self.factors = element.memory(), FACTORS[element.name]
        self.depth, self.width = -(-task.depth // FRAGMENT) * FRAGMENT, -(-task.width // SPAN) * SPAN
        self.body, self.pieces, self.memory, self.hand_over = body, pieces, memory, hand_over
        self.queries, self.ring = rings
        self.consumer, self.turns = consumer, Turns(consumer)
        self.softmax = TensorSoftmax(body.sides.columns, self.element, LANES)

    def tile(self, matrix: Values, first: ir.Value, done: ir.Value, number: ir.Value) -> ir.Value:
        """One warpgroup's rows of a tile. The products of a piece's scores are begun together with those of the weights
        of the piece before, which go on while the softmax is computed."""
        if self.body.causal is not None:  # votes have decided it: only so the assembler knows that lanes agree
            number = from_lane(number, index_constant(0))
        lane, warp = divided(_known_here(thread()), WARP)
        self.in_group, group = divided(lane, LANES)
        in_warpgroup, _ = divided(warp, WARPGROUP // WARP)
        own_first = arith.addi(first, times(self.consumer, hopper.M))
        own = arith.addi(own_first, arith.addi(times(in_warpgroup, FRAGMENT), group))
        self.places = [self.body.place(matrix, plus(own, MATRIX * half)) for half in range(HALVES)]
        self.query = self.queries.stage(done)
        hopper.wait_for(self.query.full, self.query.parity)
        opening = functools.partial(self._first_piece, number)
        state = State.of(self.pieces.behind_first(first, ROWS, self._types, opening, self._piece))
        Ring.leave(self.query)
        value = self.ring.stage(state.number)
        self.turns.take()
        sums = self._begin_weighing(value, state)
        self.turns.give()
        sums = self._finish(sums, self.width, 0)
        Ring.leave(value)
        self._store(state.totals, self._numbers(sums), Place(matrix, own_first, index_constant(0)))
        return arith.addi(state.number, i32(1))

    @property
    def _types(self) -> list[ir.Type]:
        word, f32_ = ir.IntegerType.get_signless(32), ir.F32Type.get()
        totals = ir.VectorType.get([HALVES, 2], f32_)
        weights = [word] * (KEYS // FRAGMENT * WORDS)
        return [*[f32_] * HALVES, ir.IntegerType.get_signless(1), word, totals, *weights, *[f32_] * (self.width // 2)]

    def _first_piece(self, number: ir.Value, is_whole: bool) -> Values:
        """The first columns, whose keys are the stage of a number."""
        key = self.ring.stage(number)
        self.turns.take()
        scores = self._begin_scores(key)
        self.turns.give()
        scores = self._finish(scores, KEYS, 0)
        Ring.leave(key)
        is_near = arith.constant(ir.IntegerType.get_signless(1), 1)
        zero = _known_here(index_constant(0))
        steps, is_near = self._softmax(zero, scores, [f32(NO_NUMBER)] * HALVES, is_near, is_whole)
        totals, weights = self._rounded(steps, splat_constant(ir.VectorType.get([HALVES, 2], ir.F32Type.get())))
        peaks = [step.peak for step in steps]
        sums = [f32(0.0)] * (self.width // 2)
        return State(peaks, is_near, arith.addi(number, i32(1)), totals, weights, sums).values

    def _piece(self, first: ir.Value, carried: Values, is_whole: bool) -> Values:
        """The columns from `first` on, and the values of the piece before."""
        before = State.of(carried)
        value, key = (self.ring.stage(arith.addi(before.number, i32(further))) for further in range(2))
        self.turns.take()
        scores = self._begin_scores(key)
        sums = self._begin_weighing(value, before)
        self.turns.give()
        scores = self._finish(scores, KEYS, int(is_whole))
        Ring.leave(key)
        if not is_whole:  # masks need the registers of the weights
            sums = self._finish(sums, self.width, 0)
        steps, is_near = self._softmax(first, scores, before.peaks, before.is_near, is_whole)
        if is_whole:
            sums = self._finish(sums, self.width, 0)
        Ring.leave(value)
        totals, *numbers = rescaled(steps, before.peaks, [before.totals, *self._numbers(sums)], _scaled)
        totals, weights = self._rounded(steps, totals)
        peaks = [step.peak for step in steps]
        return State(peaks, is_near, arith.addi(before.number, i32(2)), totals, weights, numbers).values

    def _begin_scores(self, stage: Stage) -> ir.Value:
        """Begin the products that are the scores of a warpgroup's rows and a piece's columns."""
        hopper.wait_for(stage.full, stage.parity)
        hopper.fence()
        rows = arith.addi(self.query.start, arith.muli(narrowed(self.consumer), i32(BOX_BYTES)))
        queries, keys = (hopper.Boxes.of(start, True) for start in (hopper.known_here(rows), stage.start))
        insides = (True, True)
        scores = hopper.multiply(queries.at(0), keys.at(0), KEYS, self.factors, insides)
        for depth in range(FRAGMENT, self.depth, FRAGMENT):
            slab, inside = divmod(depth, BOX)
            step = inside // FRAGMENT * hopper.depth_step(True)
            left = queries.at(slab * CONSUMERS * BOX_BYTES + step)
            right = keys.at(slab * KEYS // BOX * BOX_BYTES + step)
            scores = hopper.multiply_add(scores, left, right, KEYS, self.factors, insides)
        hopper.close_products()
        return scores

    def _begin_weighing(self, stage: Stage, state: State) -> ir.Value:
        """Begin to add the values of a piece, times its weights, to the sums."""
        hopper.wait_for(stage.full, stage.parity)
        sums = hopper.sums_of(state.sums, self.factors)
        hopper.fence()
        values = hopper.Boxes.of(stage.start, False)
        for row in range(0, KEYS, FRAGMENT):
            part, inside = divmod(row, BOX)
            offset = part * self.memory.width_boxes * BOX_BYTES + inside // FRAGMENT * hopper.depth_step(False)
            fragment = state.weights[row // FRAGMENT * WORDS : (row // FRAGMENT + 1) * WORDS]
            sums = hopper.multiply_add_rows(sums, fragment, values.at(offset), self.width, self.factors, False)
        hopper.close_products()
        return sums

    def _finish(self, sums: ir.Value, columns: int, pending: int) -> ir.Value:
        """The sums of products, once at most so many later groups are under way."""
        hopper.wait_for_products(pending)
        return hopper.behind_products(sums, columns, self.factors)

    def _softmax(
        self, first: ir.Value, scores: ir.Value, before: Values, was_near: ir.Value, is_whole: bool
    ) -> tuple[list[RowWeights], ir.Value]:
        """The next piece of a lane's rows, and whether their largest elements are near zero."""
        in_group = self.in_group if is_whole else _known_here(self.in_group)
        column = self.body.columns(first, times(in_group, 2), KEYS, is_whole)
        at, factor = (self.body.scaled_at, self.body.scaled.factor) if is_whole else (self.body.at, 1.0)

        # By pairs: the assembler takes the rounding of single ones for a use before the wait, and serialises products.
        all_ = [hopper.sum_at(scores, number, self.factors) for number in range(KEYS // 2)]
        all_ = [one for first in range(0, KEYS // 2, 2) for one in self.body.rounded(all_[first : first + 2])]

        def part(half: int) -> RowPart:
            mine = [number for number in range(KEYS // 2) if _half(number) == half]
            y = [at(self.places[half], column(of_number(number)[1]), all_[number]) for number in mine]
            return RowPart(y, factor, before[half])

        return self.softmax.of([part(half) for half in range(HALVES)], was_near)

    def _rounded(self, steps: Sequence[RowWeights], totals: ir.Value) -> tuple[ir.Value, Values]:
        """The totals with the weights of a piece, and these as the words of fragments."""
        one = splat_constant(ir.VectorType.get([2, 2], self.element), 1)
        words: Values = []
        for row in range(0, KEYS, FRAGMENT):
            pairs = range(row // MATRIX * 2, (row + FRAGMENT) // MATRIX * 2, 2)
            fragment = rounded_weights([step.weights for step in steps], pairs, self.element)
            totals = nvgpu.multiply_add(fragment, one, totals)
            words += _words(fragment)
        return totals, words

    def _numbers(self, sums: ir.Value) -> Values:
        """A thread's sums one by one."""
        return [hopper.sum_at(sums, number, self.factors) for number in range(self.width // 2)]

    def _store(self, totals: ir.Value, sums: Values, place: Place) -> None:
        """Write what the result has of a warpgroup's sums."""
        inverse = [over_total(vector.extract(totals, [], [half, 0]), self.body) for half in range(HALVES)]
        done = [arith.mulf(value, inverse[_half(number)]) for number, value in enumerate(sums)]
        self.hand_over.write(hopper.sums_of(done, self.factors), self.width, place)


@dataclass(frozen=True)
class State:
    """The state that a loop over pieces carries: the largest elements of a lane's rows, whether all were near zero, the
    number of the stage that has the values of the last piece, the totals of the weights with it, its weights as words
    of fragments, and the sums without it."""

    peaks: Values
    is_near: ir.Value
    number: ir.Value
    totals: ir.Value
    weights: Values
    sums: Values

    @property
    def values(self) -> Values:
        """One by one."""
        return [*self.peaks, self.is_near, self.number, self.totals, *self.weights, *self.sums]

    @staticmethod
    def of(values: Values) -> State:
        """From them."""
        peaks, (is_near, number, totals, *rest) = values[:HALVES], values[HALVES:]
        count = KEYS // FRAGMENT * WORDS
        return State(peaks, is_near, number, totals, rest[:count], rest[count:])


class Turns:
    """Turns of two warpgroups at beginning products, so that one computes a softmax while the other's go on. No result
    depends on them. consumer: 0 for the one that is first."""

    def __init__(self, consumer: ir.Value):
        self.mine = narrowed(plus(consumer, hopper.FIRST_NUMBER))
        self.other = arith.subi(i32(2 * hopper.FIRST_NUMBER + CONSUMERS - 1), self.mine)
        self.is_first = arith.cmpi(arith.CmpIPredicate.eq, consumer, index_constant(0))

    def open(self) -> None:
        """Give the first one its turn."""
        when(arith.xori(self.is_first, arith.constant(ir.IntegerType.get_signless(1), 1)), self.give)

    def take(self) -> None:
        """Wait for this warpgroup's turn."""
        hopper.meet_at(self.mine)

    def give(self) -> None:
        """The other one's turn."""
        hopper.arrive_at(self.other)

    def close(self) -> None:
        """Take the turn that nobody uses."""
        when(self.is_first, self.take)


def _known_here(value: ir.Value) -> ir.Value:
    """A number below 2^31 that is there, as far as compilers know: what is made of it is not kept around a loop."""
    return arith.index_castui(ir.IndexType.get(), hopper.known_here(narrowed(value)))


def _half(number: int) -> int:
    """The row, of a lane's two, of one of its sums."""
    return of_number(number)[0] // MATRIX


def _scaled(values: Values, factors: Values) -> Values:
    """Totals and sums times the factors of their rows."""
    totals, *sums = values
    return [
        *scaled_fragments([totals], factors),
        *(arith.mulf(value, factors[_half(number)]) for number, value in enumerate(sums)),
    ]


def _words(fragment: ir.Value) -> Values:
    """The registers of a fragment."""
    type_ = ir.VectorType.get([WORDS, 1], ir.IntegerType.get_signless(32))
    words = vector.bitcast(type_, fragment)
    return [vector.extract(words, [], [number, 0]) for number in range(WORDS)]
