# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on the positions of a GPU's threads: divisions in 32 bits, and edges that lanes do not stand across.

A division by a size that is known when a kernel is launched is a multiplication: the host passes `multiplier_of(size)`
beside the size (Granlund and Montgomery, "Division by invariant integers using multiplication", PLDI 1994).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shlo_disc.lowering.element_types import constant_like, like
from shlo_disc.lowering.frame import Frame
from shlo_disc.lowering.multiples import Multiples, constant_of_index
from shlo_disc.lowering.positions import Position, PositionMath, index_constant
from shlo_disc.shape_dialect.mlir import arith, ir, scf, vector
from shlo_disc.shape_dialect.symbolic.expr import Expr

NARROW = 1 << 31
"""Positions in tensors of fewer elements are divided in 32 bits."""

SHIFT = 62
"""The bits that products with a multiplier are shifted by: n * e < 2^62 for n and e below 2^31, which makes quotients
exact. With e = multiplier * size - 2^62, which is from 1 to the size, n * multiplier / 2^62 = n / size + r where
r = n * e / (size * 2^62) < 1 / size, so the sum is below the next integer."""

_EDGES = (arith.CmpIPredicate.slt, arith.CmpIPredicate.sge)


def multiplier_of(size: Expr) -> Expr:
    """The number that a kernel divides positions by a size with: at most 2^62 + 1. That of 0 divides as that of 1."""
    return Expr.const(1 << SHIFT) // Expr.maximum(size, 1) + 1


def multiplier_in(frame: Frame, value: ir.Value) -> ir.Value | None:
    """The multiplier of a value in a kernel, if it is a size that the kernel is told."""
    size = frame.expression_of(value)
    return None if size is None else frame.size_of(multiplier_of(size))


class LaneMath(PositionMath):
    """For a thread of `width` lanes.

    narrow: whether positions that are divided, and what they are divided by, are below 2^31, where that is known before
    run time. multiplier: that of a value, if it is a size that the kernel is told.
    """

    def __init__(
        self,
        width: int,
        narrow: ir.Value | bool,
        multiples: Multiples,
        multiplier: Callable[[ir.Value], ir.Value | None] = lambda value: None,
    ):
        super().__init__(width)
        self.narrow = narrow
        self.multiples = multiples
        self.multiplier = multiplier

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
        multiplier = self.multiplier(divisor)
        if self.narrow is True:
            return self._positions(p, _in_words(place, divisor, multiplier))
        choice = scf.IfOp(self.narrow, [place.type, place.type], has_else=True)
        with ir.InsertionPoint(choice.then_block):
            scf.yield_(_in_words(place, divisor, multiplier))
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


def _in_words(place: ir.Value, divisor: ir.Value, multiplier: ir.Value | None) -> list[ir.Value]:
    """Quotient and remainder of indices below 2^31, scalars or vectors, by a scalar."""
    word = ir.IntegerType.get_signless(32)
    number = arith.index_cast(word, divisor)
    if constant_of_index(divisor) is None:
        number = arith.maxui(number, constant_like(number, 1))
    dividend = arith.index_cast(like(place, word), place)
    if isinstance(place.type, ir.VectorType):
        number = vector.broadcast(dividend.type, number)
    quotient = arith.divui(dividend, number) if multiplier is None else _shifted_product(dividend, multiplier)
    rest = arith.subi(dividend, arith.muli(quotient, number))
    return [arith.index_castui(place.type, v) for v in (quotient, rest)]


def _shifted_product(number: ir.Value, multiplier: ir.Value) -> ir.Value:
    """number * multiplier / 2^62 of words below 2^31, scalars or vectors, and an index: the upper half of the product
    with its lower word, and the product with its upper word, which is at most 2^30, so that their sum has 62 bits."""
    long, word = ir.IntegerType.get_signless(64), number.type
    wide = arith.extui(like(number, long), number)
    lower, upper = (
        vector.broadcast(wide.type, half) if isinstance(word, ir.VectorType) else half for half in _halves(multiplier)
    )
    carried = arith.shrui(arith.muli(wide, lower), constant_like(wide, 32))
    product = arith.addi(arith.muli(wide, upper), carried)
    return arith.trunci(word, arith.shrui(product, constant_like(wide, SHIFT - 32)))


def _halves(multiplier: ir.Value) -> list[ir.Value]:
    """The lower and the upper word of an index, each extended by zeros."""
    number = arith.index_cast(ir.IntegerType.get_signless(64), multiplier)
    upper = arith.shrui(number, constant_like(number, 32))
    return [arith.andi(number, constant_like(number, (1 << 32) - 1)), upper]


def _is_power_of_two(value: ir.Value) -> bool:
    """Tells whether a division by it is a shift."""
    number = constant_of_index(value)
    return number is not None and number > 0 and number & (number - 1) == 0
