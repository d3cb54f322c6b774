# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on scalars or vectors of lanes, written with operators: `a * b + 1.0` builds arith ops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from shlo_disc.shape_dialect.dialect.remembered import remembered
from shlo_disc.shape_dialect.mlir import arith, ir, math, vector

Number = float | int
LDEXP = "llvm.ldexp"
"""LLVM's scaling by a power of two, which AVX-512 has an instruction for."""

_FLOAT_WIDTH = {"f32": 32, "f64": 64}


@remembered
def _element_name(type_: ir.Type) -> str:
    return str(type_.element_type if isinstance(type_, ir.VectorType) else type_)


@dataclass(frozen=True, eq=False)
class Lanes:
    """A value of type f32, f64, an integer, or a vector of these; operators build ops at the insertion point.

    Python numbers on either side of an operator become constants (splats) of the same type. Comparisons (`lt`, ...) are
    ordered unless named otherwise, and give i1 lanes for `where`.
    """

    value: ir.Value

    @cached_property
    def type(self) -> ir.Type:
        return self.value.type

    @cached_property
    def element(self) -> str:
        return _element_name(self.type)

    @property
    def is_float(self) -> bool:
        return self.element in _FLOAT_WIDTH

    @property
    def is_double(self) -> bool:
        return self.element == "f64"

    def like(self, element: ir.Type) -> ir.Type:
        """The type with as many lanes as this value, of another element type."""
        return ir.VectorType.get(self.type.shape, element) if isinstance(self.type, ir.VectorType) else element

    def const(self, number: Number) -> Lanes:
        """`number` in every lane. A float is rounded to the element type."""
        kind = self.type
        element = kind.element_type if isinstance(kind, ir.VectorType) else kind
        attr = ir.FloatAttr.get(element, number) if self.is_float else ir.IntegerAttr.get(element, int(number))
        if isinstance(kind, ir.VectorType):
            return Lanes(arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, attr)))
        return Lanes(arith.constant(kind, attr))

    def _lift(self, other: Lanes | Number) -> ir.Value:
        return other.value if isinstance(other, Lanes) else self.const(other).value

    def __add__(self, other: Lanes | Number) -> Lanes:
        return Lanes((arith.addf if self.is_float else arith.addi)(self.value, self._lift(other)))

    def __sub__(self, other: Lanes | Number) -> Lanes:
        return Lanes((arith.subf if self.is_float else arith.subi)(self.value, self._lift(other)))

    def __rsub__(self, other: Number) -> Lanes:
        return self.const(other) - self

    def __mul__(self, other: Lanes | Number) -> Lanes:
        return Lanes((arith.mulf if self.is_float else arith.muli)(self.value, self._lift(other)))

    def __truediv__(self, other: Lanes | Number) -> Lanes:
        return Lanes(arith.divf(self.value, self._lift(other)))

    def __rtruediv__(self, other: Number) -> Lanes:
        return self.const(other) / self

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Lanes:
        return Lanes(arith.negf(self.value))

    def __and__(self, other: Lanes | Number) -> Lanes:
        return Lanes(arith.andi(self.value, self._lift(other)))

    def __or__(self, other: Lanes | Number) -> Lanes:
        return Lanes(arith.ori(self.value, self._lift(other)))

    def __xor__(self, other: Lanes | Number) -> Lanes:
        return Lanes(arith.xori(self.value, self._lift(other)))

    def __lshift__(self, other: Lanes | Number) -> Lanes:
        return Lanes(arith.shli(self.value, self._lift(other)))

    def __rshift__(self, other: Lanes | Number) -> Lanes:
        """Arithmetic shift: the sign is kept."""
        return Lanes(arith.shrsi(self.value, self._lift(other)))

    def shift_right_logical(self, other: Lanes | Number) -> Lanes:
        return Lanes(arith.shrui(self.value, self._lift(other)))

    def fma(self, factor: Lanes | Number, addend: Lanes | Number) -> Lanes:
        """self * factor + addend, rounded once."""
        return Lanes(math.fma(self.value, self._lift(factor), self._lift(addend)))

    def abs(self) -> Lanes:
        return Lanes(math.absf(self.value))

    def sqrt(self) -> Lanes:
        return Lanes(math.sqrt(self.value))

    def floor(self) -> Lanes:
        return Lanes(math.floor(self.value))

    def round_even(self) -> Lanes:
        return Lanes(math.roundeven(self.value))

    def scaled(self, exponent: Lanes) -> Lanes:
        """self * 2**exponent, rounded once, for an i32 (i64) exponent below twice that of the largest f32 (f64)."""
        if not self.is_double:
            return self._ldexp(exponent)
        half = exponent >> 1
        return self * power_of_two(half) * power_of_two(exponent - half)

    def _ldexp(self, exponent: Lanes) -> Lanes:
        attributes: dict[str, ir.Attribute] = {
            "intrin": ir.StringAttr.get(LDEXP),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        }
        operands = [self.value, exponent.value]
        call = ir.Operation.create("llvm.call_intrinsic", results=[self.type], operands=operands, attributes=attributes)
        return Lanes(call.results[0])

    def copysign(self, sign: Lanes) -> Lanes:
        return Lanes(math.copysign(self.value, sign.value))

    def _compare(self, predicate: str, other: Lanes | Number) -> Lanes:
        if self.is_float:
            return Lanes(arith.cmpf(arith.CmpFPredicate[predicate], self.value, self._lift(other)))
        return Lanes(arith.cmpi(arith.CmpIPredicate[predicate], self.value, self._lift(other)))

    def lt(self, other: Lanes | Number) -> Lanes:
        return self._compare("OLT" if self.is_float else "slt", other)

    def le(self, other: Lanes | Number) -> Lanes:
        return self._compare("OLE" if self.is_float else "sle", other)

    def gt(self, other: Lanes | Number) -> Lanes:
        return self._compare("OGT" if self.is_float else "sgt", other)

    def ge(self, other: Lanes | Number) -> Lanes:
        return self._compare("OGE" if self.is_float else "sge", other)

    def eq(self, other: Lanes | Number) -> Lanes:
        return self._compare("OEQ" if self.is_float else "eq", other)

    def ne(self, other: Lanes | Number) -> Lanes:
        """Differs; for floats true also when either is NaN."""
        return self._compare("UNE" if self.is_float else "ne", other)

    def is_nan(self) -> Lanes:
        return Lanes(arith.cmpf(arith.CmpFPredicate.UNO, self.value, self.value))

    def at_most(self, bound: Number) -> Lanes:
        """min(self, bound); NaN stays NaN. The operand order is that of the x86 instruction."""
        limit = self.const(bound)
        return where(limit.lt(self), limit, self)

    def at_least(self, bound: Number) -> Lanes:
        """max(self, bound); NaN stays NaN."""
        limit = self.const(bound)
        return where(limit.gt(self), limit, self)

    def bits(self) -> Lanes:
        """The bit pattern of a float, as an integer of the same width."""
        integer = ir.IntegerType.get_signless(_FLOAT_WIDTH[self.element])
        return Lanes(arith.bitcast(self.like(integer), self.value))

    def as_float(self) -> Lanes:
        """The float whose bit pattern this integer is."""
        element = ir.F64Type.get() if self.element == "i64" else ir.F32Type.get()
        return Lanes(arith.bitcast(self.like(element), self.value))

    def to_float(self) -> Lanes:
        """The value of a signed integer, as a float of the same width."""
        element = ir.F64Type.get() if self.element == "i64" else ir.F32Type.get()
        return Lanes(arith.sitofp(self.like(element), self.value))

    def to_f64(self) -> Lanes:
        return Lanes(arith.extf(self.like(ir.F64Type.get()), self.value))

    def to_f32(self) -> Lanes:
        return Lanes(arith.truncf(self.like(ir.F32Type.get()), self.value))

    def narrow_integer(self) -> Lanes:
        """i64 -> i32, the low half."""
        return Lanes(arith.trunci(self.like(ir.IntegerType.get_signless(32)), self.value))

    def widen_integer(self) -> Lanes:
        """i32 -> i64, zero extended."""
        return Lanes(arith.extui(self.like(ir.IntegerType.get_signless(64)), self.value))

    def divide_unsigned(self, divisor: int) -> Lanes:
        return Lanes(arith.divui(self.value, self._lift(divisor)))

    def multiply_high_unsigned(self, other: Lanes) -> Lanes:
        """The upper half of the double-width unsigned product."""
        return Lanes(arith.mului_extended(self.value, other.value)[1])

    def any(self) -> ir.Value:
        """Tells whether an i1 lane is true, as one i1."""
        if isinstance(self.type, ir.VectorType):
            return vector.reduction(ir.IntegerType.get_signless(1), vector.CombiningKind.OR, self.value)
        return self.value


def where(condition: Lanes, yes: Lanes, no: Lanes | Number) -> Lanes:
    """Lane by lane, `yes` where `condition` is true, else `no`."""
    return Lanes(arith.select(condition.value, yes.value, yes._lift(no)))


def horner(x: Lanes, coefficients: Sequence[float]) -> Lanes:
    """The polynomial with `coefficients` from the constant term up, one FMA a degree."""
    result = x.const(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result.fma(x, coefficient)
    return result


def power_of_two(exponent: Lanes) -> Lanes:
    """2**exponent for an i32 (i64) `exponent` in the range of normal f32 (f64) numbers."""
    bias, fraction = (1023, 52) if exponent.element == "i64" else (127, 23)
    return ((exponent + bias) << fraction).as_float()
