# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on the positions of a GPU's threads: divisions in 32 bits, and indices known to be multiples."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from shlo_disc.lowering.element_types import constant_like, like
from shlo_disc.lowering.elements import SizeOf
from shlo_disc.lowering.positions import Position, PositionMath, index_constant
from shlo_disc.shape_dialect.mlir import arith, ir, scf, vector
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts


class Multiples:
    """The indices that are multiples of `number`, a power of two, by the ops that they come from.

    sizes: what is a multiple besides the sizes that the facts say so of.
    """

    def __init__(self, number: int, facts: Facts, sizes: Collection[Expr] = ()):
        self.number = number
        self._facts = facts
        self._sizes = sizes
        self._known: dict[ir.Value, bool] = {}

    def note(self, *values: ir.Value) -> None:
        """Remember values that are multiples."""
        self._known.update(dict.fromkeys(values, True))

    def noting(self, size_of: SizeOf) -> SizeOf:
        """`size_of`, whose values are remembered where the sizes are multiples."""

        def noted(size: Expr) -> ir.Value:
            value = size_of(size)
            if self._is_size(size):
                self.note(value)
            return value

        return noted

    def _is_size(self, size: Expr) -> bool:
        return self._facts.divides(self.number, size) or any(self._facts.divides(k, size) for k in self._sizes)

    def holds(self, value: ir.Value) -> bool:
        """Tells whether an index, or an integer that it is a cast of, is known to be a multiple."""
        if value not in self._known:
            self._known[value] = self._follows(value)
        return self._known[value]

    def _follows(self, value: ir.Value) -> bool:
        """Wrapping around and cutting off upper bits leave multiples of a power of two as they are."""
        if isinstance(value.owner, ir.Block) or isinstance(value.type, ir.VectorType):
            return False
        number, op = _constant(value), value.owner.operation
        if number is not None:
            return number % self.number == 0
        if op.name == "arith.muli":
            return any(map(self.holds, op.operands))
        if op.name == "arith.select":
            return all(map(self.holds, list(op.operands)[1:]))
        return op.name in _KEEPING and all(map(self.holds, op.operands))


_KEEPING = frozenset(
    {"arith.addi", "arith.index_cast", "arith.index_castui", "arith.maxsi", "arith.minsi", "arith.subi"}
)
"""Ops whose result is a multiple where all operands are."""

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
        distance = p.step * number
        return arith.addi(p.base, index_constant(distance)) if distance else p.base

    def divmod(self, p: Position, divisor: ir.Value) -> tuple[Position, Position]:
        """Quotient and remainder of a nonnegative position. A size of 0 divides as 1, as it does elsewhere."""
        place = p.base if p.is_uniform else self.as_lanes(p)
        if self.narrow is False or _is_power_of_two(divisor):
            return super().divmod(p, divisor)
        if self.narrow is True:
            return self._positions(p, _in_words(place, divisor))
        choice = scf.IfOp(self.narrow, [place.type, place.type], has_else=True)
        with ir.InsertionPoint(choice.then_block):
            scf.yield_(_in_words(place, divisor))
        with ir.InsertionPoint(choice.else_block):
            found = super().divmod(p, divisor)
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
    if _constant(divisor) is None:
        number = arith.maxui(number, constant_like(number, 1))
    dividend = arith.index_cast(like(place, word), place)
    if isinstance(place.type, ir.VectorType):
        number = vector.broadcast(dividend.type, number)
    quotient = arith.divui(dividend, number)
    rest = arith.subi(dividend, arith.muli(quotient, number))
    return [arith.index_castui(place.type, v) for v in (quotient, rest)]


def _constant(value: ir.Value) -> int | None:
    """The number that a scalar always is."""
    if isinstance(value.owner, ir.Block) or value.owner.name != "arith.constant":
        return None
    return int(ir.IntegerAttr(value.owner.operation.attributes["value"]).value)


def _is_power_of_two(value: ir.Value) -> bool:
    """Tells whether a division by it is a shift."""
    number = _constant(value)
    return number is not None and number > 0 and number & (number - 1) == 0
