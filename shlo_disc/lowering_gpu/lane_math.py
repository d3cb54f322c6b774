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
from shlo_disc.shape_dialect.mlir import arith, ir, math, scf, vector
from shlo_disc.shape_dialect.symbolic.expr import Expr

NARROW = 1 << 31
"""Positions in tensors of fewer elements are divided in 32 bits."""

SHIFT = 62
"""The power of two that is divided by a size for its multiplier, the largest that a signed word of the host has room
for beside 1. A product n * multiplier / 2^62 is n / size + r with r = n * e / (size * 2^62), where
e = multiplier * size - 2^62 is from 1 to the size; its floor is the quotient, for r < 1 / size where n * e < 2^62."""

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
    first, dividend = number, arith.index_cast(like(place, word), place)
    if isinstance(place.type, ir.VectorType):
        number = vector.broadcast(dividend.type, number)
    quotient = arith.divui(dividend, number) if multiplier is None else _shifted_product(dividend, first, multiplier)
    rest = arith.subi(dividend, arith.muli(quotient, number))
    return [arith.index_castui(place.type, v) for v in (quotient, rest)]


def _shifted_product(dividend: ir.Value, divisor: ir.Value, multiplier: ir.Value) -> ir.Value:
    """The quotient of words below 2^31, scalars or vectors, by a scalar: the upper word of a product, shifted.

    With 2^s the least power of two that is not below the divisor, the first bits of the multiplier are
    m = 2^(31 + s) // divisor + 1, a word, and n * m / 2^(31 + s) has the error n * e / (divisor * 2^(31 + s)) where
    e <= divisor <= 2^s, which is as small as it has to be. What depends on the divisor alone is done before loops.
    """
    word, long = (ir.IntegerType.get_signless(bits) for bits in (32, 64))
    shift = arith.subi(constant_like(divisor, 32), math.ctlz(arith.subi(divisor, constant_like(divisor, 1))))
    whole = arith.subi(arith.index_cast(long, multiplier), arith.constant(long, 1))
    rest = arith.extui(long, arith.subi(constant_like(shift, 31), shift))
    factor = arith.addi(arith.trunci(word, arith.shrui(whole, rest)), constant_like(shift, 1))
    if isinstance(dividend.type, ir.VectorType):
        factor, shift = (vector.broadcast(dividend.type, v) for v in (factor, shift))
    twice = arith.shli(dividend, constant_like(dividend, 1))
    product = arith.muli(*(arith.extui(like(v, long), v) for v in (twice, factor)))
    upper = arith.trunci(dividend.type, arith.shrui(product, constant_like(product, 32)))
    return arith.shrui(upper, shift)


def _is_power_of_two(value: ir.Value) -> bool:
    """Tells whether a division by it is a shift."""
    number = constant_of_index(value)
    return number is not None and number > 0 and number & (number - 1) == 0
