# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The loops of a kernel of attention over the columns of its rows, and where they may end."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu.attention_rows import ScoreBody, across, f32
from shlo_disc.lowering_gpu.block_loops import as_long_as, chosen, counted, when
from shlo_disc.lowering_gpu.grid import THREADS, WARP, thread
from shlo_disc.lowering_gpu.index_math import below, divided, parts, plus, times
from shlo_disc.lowering_gpu.kernel import GpuFrame, shared_array
from shlo_disc.shape_dialect.dialect.problems import MOST_REACH
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref, scf
from shlo_disc.shape_dialect.symbolic.expr import Expr

Values = list[ir.Value]

VOTES = 9
"""The number of the shared array of votes, behind those that a kernel has for its matrices."""

VANISHING = 110.0
"""An exponential of less than this with a minus is 0 as f32."""

Step = Callable[[ir.Value, Values, bool], Values]
"""From the first column of a piece, what is carried, and whether the piece is whole: what is carried on.

A whole piece has all its columns, and a causal mask hides none of them from any row.
"""

Vote = Callable[[ir.Value], ir.Value]
"""Tells all threads of a block whether a condition holds in one of them."""


class Pieces:
    """The loops over the columns of a tile of rows, `width` at a time: one over whole pieces, one over those after it.

    The second ends where a causal mask hides the rest from all rows, if what is hidden is so far below the largest
    element of each that its weight is 0; else it goes on to the last column.
    """

    def __init__(
        self,
        frame: GpuFrame,
        body: ScoreBody,
        width: int,
        peaks: Callable[[Values], Values],
        vote: Vote | None = None,
    ):
        """peaks: the largest elements of a thread's rows, by what is carried. vote: None for that of a block whose
        threads all have rows."""
        self.body, self.width, self.peaks = body, width, peaks
        self.columns = body.sides.columns
        causal = body.causal
        if causal is not None:
            self.vote = vote or _Votes(frame)
            self.shown = frame.size_of(Expr.maximum(causal.offset + body.rows_of_matrix, 0))
            self.reach = frame.size_of(Expr.maximum(causal.reach, 0))
        self.is_causal, self.bound = causal is not None, 0.0 if causal is None else causal.bound or 0.0

    def over(self, first: ir.Value, count: int, carried: Values, step: Step, splits: bool) -> Values:
        """All pieces of `count` rows from `first` on, which there is. splits: whole pieces have a loop of their own."""
        zero, width = index_constant(0), index_constant(self.width)
        whole = self._whole(first) if splits else zero
        if splits:
            carried = counted(zero, whole, width, carried, lambda at, values: step(at, values, True))
        return self._rest(whole, self._end(plus(first, count)) if self.is_causal else None, carried, step)

    def behind_first(
        self, first: ir.Value, count: int, types: Sequence[ir.Type], opening: Callable[[bool], Values], step: Step
    ) -> Values:
        """The same, whole pieces apart, where there is one at least. The first one has another step, told whether it is
        whole, which makes what is carried, of some types."""
        zero, width = index_constant(0), index_constant(self.width)
        whole = self._whole(first)
        carried = chosen(below(zero, whole), types, lambda: opening(True), lambda: opening(False))
        end = self._end_behind(width, self._end(plus(first, count)), carried) if self.is_causal else None
        carried = counted(width, whole, width, carried, lambda at, values: step(at, values, True))
        return self._rest(arith.maxui(whole, width), end, carried, step)

    def _rest(self, begin: ir.Value, end: ir.Value | None, carried: Values, step: Step) -> Values:
        """The pieces that are not whole, or may not be. end: where a causal mask hides the rest."""

        def rest(at: ir.Value, values: Values) -> Values:
            return step(at, values, False)

        if end is None:
            return counted(begin, self.columns, index_constant(self.width), carried, rest)
        start = [begin, end, *carried]
        return as_long_as(start, lambda v: below(v[0], v[1]), functools.partial(self._piece, rest))[2:]

    def _whole(self, first: ir.Value) -> ir.Value:
        """The columns of whole pieces. Of a causal mask's, one is left for the second loop, which looks behind it."""
        width, one = index_constant(self.width), index_constant(1)
        if not self.is_causal:
            return arith.muli(arith.divui(self.columns, width), width)
        before_last = arith.subi(arith.maxui(self._seen(plus(first, 1)), one), one)
        whole = arith.muli(arith.divui(before_last, width), width)
        return arith.select(self._is_exact(), whole, index_constant(0))

    def _seen(self, behind: ir.Value) -> ir.Value:
        """The columns that the mask lets the last row before row `behind` see, all before the first hidden one."""
        rows = self.body.sides.rows
        last = arith.subi(arith.addi(arith.minui(behind, rows), self.shown), rows)
        return arith.minui(arith.maxsi(last, index_constant(0)), self.columns)

    def _is_exact(self) -> ir.Value:
        """Tells whether positions do not wrap around."""
        return below(self.reach, index_constant(MOST_REACH))

    def _end(self, behind: ir.Value) -> ir.Value:
        """The first column that is hidden from the last row; behind the last one where positions may wrap around."""
        end = self._seen(behind)
        counts = arith.andi(below(index_constant(0), end), self._is_exact())
        return arith.select(counts, end, self.columns)

    def _piece(self, step: Callable[[ir.Value, Values], Values], carried: Values) -> Values:
        first, end, *rest = carried
        rest = step(first, rest)
        following = plus(first, self.width)
        return [following, self._end_behind(following, end, rest), *rest]

    def _end_behind(self, following: ir.Value, end: ir.Value, carried: Values) -> ir.Value:
        """The end behind a piece: another one if it was the last one, and what is hidden counts."""
        is_last = arith.andi(below(following, self.columns), arith.cmpi(arith.CmpIPredicate.uge, following, end))
        choice = scf.IfOp(is_last, [end.type], has_else=True)
        with ir.InsertionPoint(choice.then_block):
            scf.yield_([arith.select(self._counts(self.peaks(carried)), self.columns, end)])
        with ir.InsertionPoint(choice.else_block):
            scf.yield_([end])
        return choice.results[0]

    def bring(self, first: ir.Value, count: int, carried: Values, step: Callable[[ir.Value, Values], Values]) -> Values:
        """The same pieces, by threads that have no rows, and vote with those that do."""
        zero, width = index_constant(0), index_constant(self.width)
        if not self.is_causal:
            return counted(zero, self.columns, width, carried, step)
        end = self._end(plus(first, count))
        carried = counted(zero, end, width, carried, step)
        following = times(parts(end, self.width), self.width)
        none = arith.constant(ir.IntegerType.get_signless(1), 0)

        def behind_mask() -> Values:
            return [arith.select(self.vote(none), self.columns, following)]

        (last,) = chosen(below(following, self.columns), [following.type], behind_mask, lambda: [following])
        return counted(following, last, width, carried, step)

    def _counts(self, peaks: Sequence[ir.Value]) -> ir.Value:
        """Tells whether hidden elements count in any row of the block. They do not in rows that are NaN, or -inf as is
        what is hidden."""
        limit = arith.constant(ir.F32Type.get(), VANISHING)
        near = [arith.cmpf(arith.CmpFPredicate.OLT, arith.subf(peak, f32(self.bound)), limit) for peak in peaks]
        return self.vote(functools.reduce(arith.ori, near))


class _Votes:
    """The votes of all threads of a block, by way of its memory."""

    def __init__(self, frame: GpuFrame):
        word = ir.IntegerType.get_signless(32)
        self.votes = shared_array(frame.function, VOTES, THREADS // WARP, word)

    def __call__(self, condition: ir.Value) -> ir.Value:
        word = ir.IntegerType.get_signless(32)
        lane, warp = divided(thread(), WARP)
        found = across(arith.extui(word, condition), WARP, arith.ori)
        is_first = arith.cmpi(arith.CmpIPredicate.eq, lane, index_constant(0))
        when(is_first, lambda: memref.store(found, self.votes, [warp]))
        gpu.barrier()  # the next votes, those of another tile, are behind the barriers of its pieces
        of_warps = [memref.load(self.votes, [index_constant(i)]) for i in range(THREADS // WARP)]
        return arith.cmpi(arith.CmpIPredicate.ne, functools.reduce(arith.ori, of_warps), arith.constant(word, 0))
