# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Formulas on real tensors as StableHLO ops: `x * x + 1` builds the ops at the insertion point."""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import ir


@dataclass(frozen=True)
class Real:
    """A tensor of floats, or of booleans, which have `&`, `|` and `~`. Numbers stand for tensors of that number."""

    value: ir.Value

    def __add__(self, other: Operand) -> Real:
        return self._binary("add", other)

    def __radd__(self, other: float) -> Real:
        return self._binary("add", other)

    def __sub__(self, other: Operand) -> Real:
        return self._binary("subtract", other)

    def __rsub__(self, other: float) -> Real:
        return self.like(other) - self

    def __mul__(self, other: Operand) -> Real:
        return self._binary("multiply", other)

    def __rmul__(self, other: float) -> Real:
        return self._binary("multiply", other)

    def __truediv__(self, other: Operand) -> Real:
        return self._binary("divide", other)

    def __rtruediv__(self, other: float) -> Real:
        return self.like(other) / self

    def __neg__(self) -> Real:
        return apply("negate", self)

    def __and__(self, other: Real) -> Real:
        return self._binary("and", other)

    def __or__(self, other: Real) -> Real:
        return self._binary("or", other)

    def __invert__(self) -> Real:
        return apply("not", self)

    def __lt__(self, other: Operand) -> Real:
        return compare("LT", self, self._operand(other))

    def __gt__(self, other: Operand) -> Real:
        return compare("GT", self, self._operand(other))

    def __le__(self, other: Operand) -> Real:
        return compare("LE", self, self._operand(other))

    def __ge__(self, other: Operand) -> Real:
        return compare("GE", self, self._operand(other))

    def equals(self, other: Operand) -> Real:
        """Elementwise equality; NaN equals nothing."""
        return compare("EQ", self, self._operand(other))

    def is_nan(self) -> Real:
        """The mask of elements that are NaN."""
        return compare("NE", self, self)

    def is_infinite(self) -> Real:
        """The mask of elements that are an infinity."""
        return apply("abs", self).equals(float("inf"))

    def is_negative(self) -> Real:
        """The mask of elements whose sign bit is set."""
        width = 64 if isinstance(element_type_of(self.value), ir.F64Type) else 32
        bits = Real(build.convert(self.value, ir.IntegerType.get_signless(width), "bitcast_convert"))
        return compare("LT", bits, bits.like(0))

    def with_sign_of(self, other: Real) -> Real:
        """A magnitude with the sign of `other`, that of zeros and NaNs included."""
        return where(other.is_negative(), -self, self)

    def like(self, number: float) -> Real:
        """A tensor of this type with `number` everywhere."""
        return constant(number, self.value)

    def maximum(self, other: Real) -> Real:
        """The larger; NaN when either is NaN."""
        return self._binary("maximum", other)

    def minimum(self, other: Real) -> Real:
        """The smaller; NaN when either is NaN."""
        return self._binary("minimum", other)

    def _operand(self, other: Operand) -> Real:
        return other if isinstance(other, Real) else self.like(other)

    def _binary(self, name: str, other: Operand) -> Real:
        return apply(name, self, self._operand(other))


Operand = Real | float


def apply(name: str, *operands: Real) -> Real:
    """An elementwise StableHLO op whose result has the type of its last operand."""
    values = [operand.value for operand in operands]
    return Real(build.create(name, values, values[-1].type))


def where(condition: Real, yes: Operand, no: Operand) -> Real:
    """`condition ? yes : no`; at least one of the two is a tensor."""
    like = yes if isinstance(yes, Real) else no
    if not isinstance(like, Real):
        raise TypeError("one side of `where` has to be a tensor")
    return apply("select", condition, *(v if isinstance(v, Real) else like.like(v) for v in (yes, no)))


def compare(direction: str, left: Real, right: Real) -> Real:
    """A comparison of two tensors of one type."""
    return Real(build.compare(direction, left.value, right.value))


def constant(number: float, like: ir.Value) -> Real:
    """`number` in the shape and type of `like`."""
    return Real(build.constant(number, element_type_of(like), dims_of(like)))
