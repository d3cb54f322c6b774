# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The loop of a kernel of attention over the columns of its rows, and where it may end."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu.attention_rows import RowState, ScoreBody, across, f32
from shlo_disc.lowering_gpu.block_loops import as_long_as, counted, when
from shlo_disc.lowering_gpu.grid import THREADS, WARP, thread
from shlo_disc.lowering_gpu.index_math import below, divided, plus
from shlo_disc.lowering_gpu.kernel import GpuFrame, shared_array
from shlo_disc.shape_dialect.dialect.problems import MOST_REACH
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref, scf
from shlo_disc.shape_dialect.symbolic.expr import Expr

Values = list[ir.Value]

VOTES = 9
"""The number of the shared array of votes, behind those that a kernel has for its matrices."""

VANISHING = 110.0
"""An exponential of less than this with a minus is 0 as f32."""

Step = Callable[[ir.Value, Values], Values]
"""From the first column of a piece, and what is carried: what is carried on."""


class Pieces:
    """The loop over the columns of a tile of rows, `width` at a time.

    It ends where a causal mask hides the rest from all rows, if what is hidden is so far below the largest element of
    each that its weight is 0; else it goes on to the last column.
    """

    def __init__(self, frame: GpuFrame, body: ScoreBody, width: int, states: Callable[[Values], list[RowState]]):
        self.body, self.width, self.states = body, width, states
        self.columns = body.sides.columns
        causal = body.causal
        if causal is not None:
            word = ir.IntegerType.get_signless(32)
            self.votes = shared_array(frame.function, VOTES, THREADS // WARP, word)
            self.shown = frame.size_of(Expr.maximum(causal.offset + body.rows_of_matrix, 0))
            self.reach = frame.size_of(Expr.maximum(causal.reach, 0))
        self.is_causal, self.bound = causal is not None, 0.0 if causal is None else causal.bound or 0.0

    def over(self, behind: ir.Value, carried: Values, step: Step) -> Values:
        """All pieces of the rows before row `behind`."""
        if not self.is_causal:
            return counted(index_constant(0), self.columns, index_constant(self.width), carried, step)
        start = [index_constant(0), self._end(behind), *carried]
        return as_long_as(start, lambda v: below(v[0], v[1]), functools.partial(self._piece, step))[2:]

    def _end(self, behind: ir.Value) -> ir.Value:
        """The first column that is hidden from the last row; behind the last one where positions may wrap around."""
        rows, zero = self.body.sides.rows, index_constant(0)
        last = arith.subi(arith.addi(arith.minui(behind, rows), self.shown), rows)
        end = arith.minui(arith.maxsi(last, zero), self.columns)
        counts = arith.andi(below(zero, end), below(self.reach, index_constant(MOST_REACH)))
        return arith.select(counts, end, self.columns)

    def _piece(self, step: Step, carried: Values) -> Values:
        first, end, *rest = carried
        rest = step(first, rest)
        following = plus(first, self.width)
        is_last = arith.andi(below(following, self.columns), arith.cmpi(arith.CmpIPredicate.uge, following, end))
        choice = scf.IfOp(is_last, [end.type], has_else=True)
        with ir.InsertionPoint(choice.then_block):
            scf.yield_([arith.select(self._counts(self.states(rest)), self.columns, end)])
        with ir.InsertionPoint(choice.else_block):
            scf.yield_([end])
        return [following, choice.results[0], *rest]

    def _counts(self, states: Sequence[RowState]) -> ir.Value:
        """Tells whether hidden elements count in any row of the block. They do not in rows that are NaN, or -inf as is
        what is hidden."""
        word = ir.IntegerType.get_signless(32)
        limit = arith.constant(ir.F32Type.get(), VANISHING)
        near = [arith.cmpf(arith.CmpFPredicate.OLT, arith.subf(state.peak, f32(self.bound)), limit) for state in states]
        lane, warp = divided(thread(), WARP)
        found = across(arith.extui(word, functools.reduce(arith.ori, near)), WARP, arith.ori)
        is_first = arith.cmpi(arith.CmpIPredicate.eq, lane, index_constant(0))
        when(is_first, lambda: memref.store(found, self.votes, [warp]))
        gpu.barrier()  # the next votes, those of another tile, are behind the barriers of its pieces
        of_warps = [memref.load(self.votes, [index_constant(i)]) for i in range(THREADS // WARP)]
        return arith.cmpi(arith.CmpIPredicate.ne, functools.reduce(arith.ori, of_warps), arith.constant(word, 0))
