# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Divisions of a row's elements by one number, such as a softmax's sum, by a reciprocal of it: three instructions each.

An f32 division takes about ten instructions and has a branch to more of them, which keeps ptxas from unrolling a loop.
Here the divisor is turned into a sign and power of two, `scale`, and the reciprocal of the rest as a sum of two f32,
`high + low` (Brisebarre, Muller and Raina, "Accelerating correctly rounded floating-point division when the divisor is
known in advance", IEEE Transactions on Computers, 2004):

    a / d = fma(scale * a, high, scale * a * low)

The result differs from the correctly rounded one by at most 1 ulp. Where its magnitude is at least 2^-100, its error is
below 0.5 + 2^-20 ulp, so quotients that are f32 themselves (x / x) are exact. Infinities, NaNs and the signs of zeros
are those of the division.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from shlo_disc.lowering.element_types import constant_like, element_of, round_to
from shlo_disc.lowering.elements import Elements, Positions
from shlo_disc.lowering.rows import RowAnalysis
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import arith, ir, math
from shlo_disc.shape_dialect.ops import BROADCASTS, ELEMENTWISE, RESHAPES
from shlo_disc.shape_dialect.utils.attributes import integers

_LARGE, _SMALL = 2.0**100, 2.0**-100
"""Magnitudes between which a divisor is used as it is. Its reciprocal and what is left of it are normal numbers."""

_SCALE = 2.0**64
"""The factor for numerator and divisor where the divisor is not between them. A numerator that overflows or loses bits
by it has a quotient that overflows or is zero."""

_LEAST = 2.0**-48
"""The least `low` for a `high` of 1: it changes no result, and an infinite numerator times it is infinite."""


@dataclass(frozen=True)
class Divisor:
    """An f32 that many others are divided by."""

    scale: ir.Value
    high: ir.Value
    low: ir.Value

    @classmethod
    def of(cls, value: ir.Value) -> Divisor:
        """Emit the reciprocal. `high` is rounded towards zero, so `low` has its sign, and sums of zeros have theirs."""
        magnitude = math.absf(value)
        one, least = constant_like(value, 1.0), constant_like(value, _LEAST)
        large = arith.cmpf(arith.CmpFPredicate.OGT, magnitude, constant_like(value, _LARGE))
        small = arith.cmpf(arith.CmpFPredicate.OLT, magnitude, constant_like(value, _SMALL))
        scale = arith.select(small, constant_like(value, _SCALE), one)
        scale = arith.select(large, constant_like(value, 1 / _SCALE), scale)
        magnitude = arith.mulf(magnitude, scale)
        high = arith.divf(one, magnitude)
        is_above = arith.cmpf(arith.CmpFPredicate.OLT, _rest(high, magnitude), constant_like(value, 0.0))
        word = ir.IntegerType.get_signless(32)
        high = arith.bitcast(value.type, arith.subi(arith.bitcast(word, high), arith.extui(word, is_above)))
        # The rest is no number where the divisor is zero or infinite, and `high` is infinite or zero.
        least, low = arith.mulf(high, least), arith.mulf(_rest(high, magnitude), high)
        low = arith.select(arith.cmpf(arith.CmpFPredicate.OGT, low, least), low, least)
        return cls(math.copysign(scale, value), high, low)

    def divide(self, numerator: ir.Value) -> ir.Value:
        """Emit the quotient of an f32."""
        scaled = arith.mulf(numerator, self.scale)
        return math.fma(scaled, self.high, arith.mulf(scaled, self.low))


def _rest(reciprocal: ir.Value, magnitude: ir.Value) -> ir.Value:
    """1 - reciprocal * magnitude, exact where the reciprocal is off by less than 1 ulp."""
    return math.fma(arith.negf(reciprocal), magnitude, constant_like(magnitude, 1.0))


def divisions_of_rows(analysis: RowAnalysis) -> list[ir.OpView]:
    """The divisions along a row, computed in f32, whose divisor is one number that follows from reductions of the row.

    A divisor that is read from memory is none of them: where there is no row, nothing may be read.
    """
    found = []
    for value in analysis.depth:
        op = value.owner.operation.opview  # type: ignore[union-attr]
        element = element_of(value.type)
        is_division = op.operation.name == "stablehlo.divide" and element.is_float and element.width == 32
        if is_division and analysis.is_full(value):
            columns = {axis for axis, dim in enumerate(dims_of(value)) if dim.constant != 1}
            rows = sum(dim.constant != 1 for dim in analysis.rows)
            if _is_of_row(op.operands[1], frozenset(sorted(columns)[rows:])):
                found.append(op)
    return found


def _is_of_row(value: ir.Value, columns: Collection[int]) -> bool:
    """Tells whether a value is the same at all places along some of its axes, and follows from reductions alone."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return not dims_of(value)
    op = owner.operation.opview
    name = op.operation.name
    if name in ("stablehlo.reduce", "disc.shape"):
        return not columns
    if name == "stablehlo.constant":
        return ir.DenseElementsAttr(op.attributes["value"]).is_splat
    if name in ELEMENTWISE:
        return all(_is_of_row(v, columns if dims_of(v) else ()) for v in op.operands)
    if name in BROADCASTS:
        source = op.operands[0]
        axes = zip(integers(op.attributes["broadcast_dimensions"]), dims_of(source), strict=True)
        return _is_of_row(source, [i for i, (axis, dim) in enumerate(axes) if axis in columns and dim.constant != 1])
    return name in RESHAPES and not columns and _is_of_row(op.operands[0], ())


@dataclass
class RowElements(Elements):
    """Elements of rows. `divisors`: of the results of divisions, those whose reciprocal is there."""

    divisors: dict[ir.Value, Divisor] = field(default_factory=dict)

    def _elementwise(self, op: ir.OpView, positions: Positions) -> ir.Value:
        divisor = self.divisors.get(op.results[0])
        if divisor is None:
            return super()._elementwise(op, positions)
        return round_to(divisor.divide(self.at(op.operands[0], positions)), element_of(op.results[0].type))
