# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of many floats that are as exact as sums of few.

Adding n numbers one after the other is off by up to n roundings. Here they are added in blocks of `BLOCK`, and the sums
of blocks with their rounding errors (Knuth's two-sum), as in Castaldo, Whaley and Chronopoulos, "Reducing floating
point error in dot product using the superblock family of algorithms". A block less than a whole one costs two
additions more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shlo_disc.lowering.element_types import constant_like
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering.reduction import Combiner
from shlo_disc.shape_dialect.mlir import arith, ir, scf

Values = list[ir.Value]

BLOCK = 16
"""Elements that are added to one accumulator before its value is added to the total."""


SHORT = 2 * BLOCK
"""A known number of elements up to which they are one block."""


class LongSums:
    """The accumulators of some reductions, in a loop that carries for each sum of floats its block, total and error.

    is_long: whether there may be more than a block, where that is decided at run time; `may_be_long` where it is not.
    """

    def __init__(self, combiners: Sequence[Combiner], may_be_long: bool = True, is_long: ir.Value | None = None):
        self._is_long = is_long
        self._is_sum = [may_be_long and c.monoid == "add" and c.elements[0].is_float for c in combiners]
        self._counts = [len(c.elements) for c in combiners]

    @property
    def any(self) -> bool:
        """Tells whether there is a sum of floats that may be long."""
        return any(self._is_sum)

    def start(self, accumulators: Sequence[Values]) -> Values:
        """The initial values carried by the loop, where each reduction starts from these."""
        rest = [[constant_like(a[0], 0.0)] * 2 if s else [] for a, s in zip(accumulators, self._is_sum, strict=True)]
        return [v for values, more in zip(accumulators, rest, strict=True) for v in (*values, *more)]

    def split(self, carried: Sequence[ir.Value]) -> list[tuple[Values, Values]]:
        """For each reduction its accumulators, and the total and error of a sum."""
        values = iter(carried)
        return [
            ([next(values) for _ in range(count)], [next(values) for _ in range(2 * is_sum)])
            for count, is_sum in zip(self._counts, self._is_sum, strict=True)
        ]

    def fold(self, carried: Sequence[ir.Value]) -> Values:
        """Add the blocks to the totals, and begin new ones."""
        result: Values = []
        for accumulators, long in self.split(carried):
            result += _folded(accumulators[0], *long) if long else accumulators
        return result

    def finish(self, carried: Sequence[ir.Value]) -> list[Values]:
        """The accumulators in the end."""
        return [[self._sum(a[0], *long)] if long else a for a, long in self.split(carried)]

    def _sum(self, block: ir.Value, total: ir.Value, lost: ir.Value) -> ir.Value:
        if self._is_long is None:
            return arith.addf(total, arith.addf(lost, block))
        choice = scf.IfOp(self._is_long, [block.type], has_else=True)
        with ir.InsertionPoint(choice.then_block):
            scf.yield_([arith.addf(total, arith.addf(lost, block))])
        with ir.InsertionPoint(choice.else_block):
            scf.yield_([block])
        return choice.results[0]


def _folded(block: ir.Value, total: ir.Value, lost: ir.Value) -> Values:
    """A new block, and the total and what it lacks, the latter less than a rounding of the former.

    Nothing is lacking beside an infinite total, or NaN.
    """
    zero = constant_like(block, 0.0)
    added = arith.addf(total, block)
    share = arith.subf(added, total)
    error = arith.addf(arith.subf(total, arith.subf(added, share)), arith.subf(block, share))
    lacking = _number_or(zero, arith.addf(lost, error))
    whole = arith.addf(added, lacking)
    return [zero, whole, _number_or(zero, arith.subf(lacking, arith.subf(whole, added)))]


def joined(one: Values, other: Values) -> Values:
    """Two totals, each with what it lacks, as one."""
    return _folded(other[0], one[0], arith.addf(one[1], other[1]))[1:]


def _number_or(zero: ir.Value, value: ir.Value) -> ir.Value:
    return arith.select(arith.cmpf(arith.CmpFPredicate.ORD, value, value), value, zero)


def in_blocks(
    begin: ir.Value,
    end: ir.Value,
    step: int,
    carried: Values,
    body: Callable[[ir.Value, Values], Values],
    fold: Callable[[Values], Values] | None,
    block: int = BLOCK,
) -> Values:
    """A loop over [begin, end) in steps, `body(index, carried)` giving what it carries on; `fold` between blocks."""

    def loop(begin: ir.Value, end: ir.Value, carried: Values) -> Values:
        found = scf.ForOp(begin, end, index_constant(step), carried)
        with ir.InsertionPoint(found.body):
            scf.yield_(body(found.induction_variable, list(found.inner_iter_args)))
        return list(found.results)

    if fold is None:
        return loop(begin, end, carried)
    blocks = scf.ForOp(begin, end, index_constant(step * block), carried)
    with ir.InsertionPoint(blocks.body):
        next_block = arith.addi(blocks.induction_variable, index_constant(step * block))
        added = loop(blocks.induction_variable, arith.minui(next_block, end), list(blocks.inner_iter_args))
        is_between = arith.cmpi(arith.CmpIPredicate.ult, next_block, end)
        goes_on = scf.IfOp(is_between, [v.type for v in carried], has_else=True)
        with ir.InsertionPoint(goes_on.then_block):
            scf.yield_(fold(added))
        with ir.InsertionPoint(goes_on.else_block):
            scf.yield_(added)
        scf.yield_(list(goes_on.results))
    return list(blocks.results)
