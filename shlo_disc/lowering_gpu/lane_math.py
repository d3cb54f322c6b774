# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on the positions of a GPU's threads: divisions in 32 bits, and edges that lanes do not stand across."""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.lowering.element_types import constant_like, like
from shlo_disc.lowering.multiples import Multiples, constant_of_index
from shlo_disc.lowering.positions import Position, PositionMath, index_constant
from shlo_disc.shape_dialect.mlir import arith, ir, scf, vector

_EDGES = (arith.CmpIPredicate.slt, arith.CmpIPredicate.sge)


class LaneMath(PositionMath):
    """For a thread of `width` lanes.

    narrow: whether positions that are divided, and what they are divided by, are below 2^31, where that is known before
    run time.
    """

    def __init__(self, width: int, narrow: ir.Value | bool, multiples: Multiples):
        super().__init__(width)
        self.narrow = narrow
        self.multiples = multiples

    def lane(self, p: Position, number: int) -> ir.Value:
        """The position of one lane."""
        if p.lanes is not None:
            return vector.extract(p.lanes, [], [number])
        distance = p.distances(self.width)[number]
        return arith.addi(p.base, index_constant(distance)) if distance else p.base

    def divmod(self, p: Position, divisor: ir.Value) -> tuple[Position, Position]:
        """Quotient and remainder of a nonnegative position. A size of 0 divides as 1, as it does elsewhere."""
        place = p.base if p.is_uniform else self.as_lanes(p)
        if self.narrow is False or _is_power_of_two(divisor):
            return self.divide_lanes(p, divisor)
        if self.narrow is True:
            return self._positions(p, _in_words(place, divisor))
        choice = scf.IfOp(self.narrow, [place.type, place.type], has_else=True)
        with ir.InsertionPoint(choice.then_block):
            scf.yield_(_in_words(place, divisor))
        with ir.InsertionPoint(choice.else_block):
            found = self.divide_lanes(p, divisor)
            scf.yield_([v.base if p.is_uniform else self.as_lanes(v) for v in found])
        return self._positions(p, choice.results)

    @staticmethod
    def _positions(p: Position, values: Sequence[ir.Value]) -> tuple[Position, Position]:
        first, second = (Position(v) if p.is_uniform else Position(None, 0, v) for v in values)
        return first, second

    def compare(self, predicate: arith.CmpIPredicate, p: Position, bound: ir.Value) -> ir.Value:
        """`p predicate bound`. An edge that lanes side by side cannot stand across is on one side of all of them."""
        side_by_side = p.lanes is None and p.step == 1 and predicate in _EDGES
        if side_by_side and self.multiples.holds(p.base) and self.multiples.holds(bound):
            return arith.cmpi(predicate, p.base, bound)
        return super().compare(predicate, p, bound)


def _in_words(place: ir.Value, divisor: ir.Value) -> list[ir.Value]:
    """Quotient and remainder of indices below 2^31, scalars or vectors, by a scalar."""
    word = ir.IntegerType.get_signless(32)
    number = arith.index_cast(word, divisor)
    if constant_of_index(divisor) is None:
        number = arith.maxui(number, constant_like(number, 1))
    dividend = arith.index_cast(like(place, word), place)
    if isinstance(place.type, ir.VectorType):
        number = vector.broadcast(dividend.type, number)
    quotient = arith.divui(dividend, number)
    rest = arith.subi(dividend, arith.muli(quotient, number))
    return [arith.index_castui(place.type, v) for v in (quotient, rest)]


def _is_power_of_two(value: ir.Value) -> bool:
    """Tells whether a division by it is a shift."""
    number = constant_of_index(value)
    return number is not None and number > 0 and number & (number - 1) == 0
