# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise StableHLO ops as arith/math ops on scalars or vectors of lanes: one row an op.

Values of f16, bf16 and smaller floats are held as f32 and rounded after every op, which is what XLA computes. Unsigned
integers are held as signless ones; the row is told which they are. Integer division never traps: as in XLA, x/0 is -1
and x%0 is x, and the smallest integer divided by -1 is itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from shlo_disc.lowering.element_types import (
    Element,
    constant_like,
    convert,
    element_of,
    from_memory,
    like,
    narrowed,
    round_to,
    to_memory,
)
from shlo_disc.shape_dialect.mlir import arith, ir, math, vector

Unary = Callable[[ir.Value], ir.Value]


class MathLibrary(Protocol):
    """The transcendental functions of a target: on f32, f64, and vectors of them."""

    def exp(self, x: ir.Value) -> ir.Value: ...
    def expm1(self, x: ir.Value) -> ir.Value: ...
    def log(self, x: ir.Value) -> ir.Value: ...
    def log1p(self, x: ir.Value) -> ir.Value: ...
    def tanh(self, x: ir.Value) -> ir.Value: ...
    def logistic(self, x: ir.Value) -> ir.Value: ...
    def sin(self, x: ir.Value) -> ir.Value: ...
    def cos(self, x: ir.Value) -> ir.Value: ...
    def tan(self, x: ir.Value) -> ir.Value: ...
    def cbrt(self, x: ir.Value) -> ir.Value: ...
    def rsqrt(self, x: ir.Value) -> ir.Value: ...
    def power(self, x: ir.Value, y: ir.Value) -> ir.Value: ...
    def atan2(self, y: ir.Value, x: ir.Value) -> ir.Value: ...


# ---- integers -------------------------------------------------------------------------------------------------------


def _safe_divide(a: ir.Value, b: ir.Value, element: Element, remainder: bool) -> ir.Value:
    zero, one = constant_like(b, 0), constant_like(b, 1)
    is_zero = arith.cmpi(arith.CmpIPredicate.eq, b, zero)
    if element.is_unsigned:
        divisor = arith.select(is_zero, one, b)
        result = arith.remui(a, divisor) if remainder else arith.divui(a, divisor)
        return arith.select(is_zero, a if remainder else constant_like(a, -1), result)
    minus_one = constant_like(b, -1)
    is_minus_one = arith.cmpi(arith.CmpIPredicate.eq, b, minus_one)
    divisor = arith.select(arith.ori(is_zero, is_minus_one), one, b)
    if remainder:
        result = arith.select(is_minus_one, constant_like(a, 0), arith.remsi(a, divisor))
        return arith.select(is_zero, a, result)
    result = arith.select(is_minus_one, arith.subi(constant_like(a, 0), a), arith.divsi(a, divisor))
    return arith.select(is_zero, minus_one, result)


def _integer_power(x: ir.Value, y: ir.Value, element: Element) -> ir.Value:
    """Square and multiply over all bits of the exponent; a negative exponent gives 1/x in integers."""
    result, factor, zero = constant_like(x, 1), x, constant_like(y, 0)
    for bit in range(element.width):
        shifted = arith.shrui(y, constant_like(y, bit))
        taken = arith.cmpi(arith.CmpIPredicate.ne, arith.andi(shifted, constant_like(y, 1)), zero)
        result = arith.select(taken, arith.muli(result, factor), result)
        factor = arith.muli(factor, factor)
    if element.is_unsigned:
        return result
    one, minus_one = constant_like(x, 1), constant_like(x, -1)
    odd = arith.cmpi(arith.CmpIPredicate.ne, arith.andi(y, constant_like(y, 1)), zero)
    negative_base = arith.select(odd, minus_one, one)
    inverse = arith.select(arith.cmpi(arith.CmpIPredicate.eq, x, minus_one), negative_base, constant_like(x, 0))
    inverse = arith.select(arith.cmpi(arith.CmpIPredicate.eq, x, one), one, inverse)
    inverse = arith.select(arith.cmpi(arith.CmpIPredicate.eq, x, constant_like(x, 0)), minus_one, inverse)
    return arith.select(arith.cmpi(arith.CmpIPredicate.slt, y, zero), inverse, result)


def _shift(op: Callable[[ir.Value, ir.Value], ir.Value], overshoot: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """A shift whose amount may reach the width: zeros, or copies of the sign."""
    width = ir.IntegerType(a.type.element_type if isinstance(a.type, ir.VectorType) else a.type).width
    inside = arith.cmpi(arith.CmpIPredicate.ult, b, constant_like(b, width))
    amount = arith.select(inside, b, constant_like(b, width - 1))
    shifted = op(a, amount)
    return shifted if overshoot == "sign" else arith.select(inside, shifted, constant_like(a, 0))


# ---- rows -----------------------------------------------------------------------------------------------------------


EXACT_OPS = frozenset(
    ("abs", "ceil", "clamp", "floor", "maximum", "minimum", "negate", "round_nearest_afz", "round_nearest_even",
     "select", "sign")
)  # fmt: skip
"""Results are representable in the operands' type: nothing to round."""


class Elementwise:
    """Emits elementwise ops with a target's math library."""

    def __init__(self, library: MathLibrary):
        self.library = library

    def emit(self, op: ir.OpView, operands: list[ir.Value]) -> ir.Value:
        """The result of `op` on register values; vectors and scalars may mix."""
        element = element_of(op.operands[0].type)
        result_element = element_of(op.results[0].type)
        name = op.operation.name.removeprefix("stablehlo.")
        operands = same_lanes(operands)
        special = getattr(self, "_" + name, None)
        if special is not None:
            result = special(op, operands, element, result_element)
        else:
            table = FLOAT_ROWS if element.is_float else INTEGER_ROWS
            result = table[name](self.library, element, *operands)
        return result if name in EXACT_OPS else round_to(result, result_element)

    def _select(self, op: ir.OpView, operands: list[ir.Value], *_: Element) -> ir.Value:
        return arith.select(*operands)

    def _clamp(self, op: ir.OpView, operands: list[ir.Value], _: Element, element: Element) -> ir.Value:
        low, x, high = operands
        return self.minimum(self.maximum(x, low, element), high, element)

    def maximum(self, a: ir.Value, b: ir.Value, element: Element) -> ir.Value:
        """The larger; NaN when either is NaN."""
        if element.is_float:
            return arith.maximumf(a, b)
        return arith.maxui(a, b) if element.is_unsigned else arith.maxsi(a, b)

    def minimum(self, a: ir.Value, b: ir.Value, element: Element) -> ir.Value:
        """The smaller; NaN when either is NaN."""
        if element.is_float:
            return arith.minimumf(a, b)
        return arith.minui(a, b) if element.is_unsigned else arith.minsi(a, b)

    def _compare(self, op: ir.OpView, operands: list[ir.Value], element: Element, _: Element) -> ir.Value:
        direction = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
        total = "compare_type" in op.attributes and "TOTALORDER" in str(op.attributes["compare_type"])
        if element.is_float and total:
            operands = [_total_order(v) for v in operands]
            element = Element("i64" if element.name == "f64" else "i32")
        if element.is_float:
            return arith.cmpf(FLOAT_PREDICATE[direction], *operands)
        table = UNSIGNED_PREDICATE if element.is_unsigned else SIGNED_PREDICATE
        return arith.cmpi(table[direction], *operands)

    def _convert(self, op: ir.OpView, operands: list[ir.Value], source: Element, target: Element) -> ir.Value:
        if target.is_half and source.name == "f64":
            # By way of f32 it would be rounded twice.
            return arith.extf(
                like(operands[0], target.register()), arith.truncf(like(operands[0], target.exact()), operands[0])
            )
        return convert(operands[0], source, target)

    def _bitcast_convert(self, op: ir.OpView, operands: list[ir.Value], source: Element, target: Element) -> ir.Value:
        exact = narrowed(operands[0], source) if source.is_half else operands[0]
        if source.is_bool:
            return exact
        result = arith.bitcast(like(exact, target.exact()), exact)
        return arith.extf(like(exact, target.register()), result) if target.is_half else result

    def _reduce_precision(self, op: ir.OpView, operands: list[ir.Value], element: Element, _: Element) -> ir.Value:
        exponent = ir.IntegerAttr(op.attributes["exponent_bits"]).value
        mantissa = ir.IntegerAttr(op.attributes["mantissa_bits"]).value
        if element.is_small_float:
            return _reduce_precision(operands[0], Element("f32"), exponent, mantissa)
        stored = _reduce_precision(to_memory(operands[0], element), element, exponent, mantissa)
        return from_memory(stored, element)


def same_lanes(operands: list[ir.Value]) -> list[ir.Value]:
    """Scalars among vectors as vectors."""
    vectors = [v.type for v in operands if isinstance(v.type, ir.VectorType)]
    if not vectors or len(vectors) == len(operands):
        return operands
    shape = vectors[0].shape
    return [
        v if isinstance(v.type, ir.VectorType) else vector.broadcast(ir.VectorType.get(shape, v.type), v)
        for v in operands
    ]


def _bits(value: ir.Value) -> tuple[ir.Value, int]:
    element = value.type.element_type if isinstance(value.type, ir.VectorType) else value.type
    width = 64 if isinstance(element, ir.F64Type) else 32
    return arith.bitcast(like(value, ir.IntegerType.get_signless(width)), value), width


def _total_order(value: ir.Value) -> ir.Value:
    """Bits that order as signed integers in IEEE total order."""
    bits, width = _bits(value)
    sign = arith.shrsi(bits, constant_like(bits, width - 1))
    return arith.xori(bits, arith.shrui(sign, constant_like(bits, 1)))


_FLOAT_FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
"""Exponent and mantissa bits."""


def _reduce_precision(value: ir.Value, element: Element, exponent_bits: int, mantissa_bits: int) -> ir.Value:
    """Round to fewer mantissa bits (ties to even), then clamp to fewer exponent bits (after XLA's ReducePrecision).

    `value` is as it is stored: the subnormals of a half float have fewer bits than their f32 forms.
    """
    own_exponent, own_mantissa = _FLOAT_FORMATS[element.name]
    width = 1 + own_exponent + own_mantissa
    bits = arith.bitcast(like(value, ir.IntegerType.get_signless(width)), value)
    dropped = own_mantissa - mantissa_bits
    result = bits
    if dropped > 0:
        half = constant_like(bits, (1 << (dropped - 1)) - 1)
        last = arith.andi(arith.shrui(bits, constant_like(bits, dropped)), constant_like(bits, 1))
        rounded = arith.addi(bits, arith.addi(half, last))
        result = arith.andi(rounded, constant_like(bits, -(1 << dropped)))
    if exponent_bits < own_exponent:
        result = _clamp_exponent(result, own_mantissa, own_exponent, exponent_bits)
    magnitude = arith.andi(bits, constant_like(bits, (1 << (width - 1)) - 1))
    infinity = constant_like(bits, ((1 << own_exponent) - 1) << own_mantissa)
    is_nan = arith.cmpi(arith.CmpIPredicate.ugt, magnitude, infinity)
    return arith.bitcast(value.type, arith.select(is_nan, bits, result))


def _clamp_exponent(bits: ir.Value, mantissa: int, own: int, wanted: int) -> ir.Value:
    bias, small_bias = (1 << (own - 1)) - 1, (1 << (wanted - 1)) - 1
    exponent = arith.andi(bits, constant_like(bits, ((1 << own) - 1) << mantissa))
    sign = arith.andi(bits, constant_like(bits, -1 << (own + mantissa)))
    infinity = arith.ori(sign, constant_like(bits, ((1 << own) - 1) << mantissa))
    too_large = arith.cmpi(arith.CmpIPredicate.ugt, exponent, constant_like(bits, (bias + small_bias) << mantissa))
    too_small = arith.cmpi(arith.CmpIPredicate.ule, exponent, constant_like(bits, (bias - small_bias) << mantissa))
    return arith.select(too_small, sign, arith.select(too_large, infinity, bits))


def _sign_float(x: ir.Value) -> ir.Value:
    unit = math.copysign(constant_like(x, 1.0), x)
    zero_or_nan = arith.cmpf(arith.CmpFPredicate.UEQ, x, constant_like(x, 0.0))
    return arith.select(zero_or_nan, x, unit)


def _sign_integer(x: ir.Value) -> ir.Value:
    zero = constant_like(x, 0)
    positive = arith.select(arith.cmpi(arith.CmpIPredicate.sgt, x, zero), constant_like(x, 1), zero)
    return arith.select(arith.cmpi(arith.CmpIPredicate.slt, x, zero), constant_like(x, -1), positive)


def _remainder_float(library: MathLibrary, a: ir.Value, b: ir.Value) -> ir.Value:
    """C's fmod, exact by repeated subtraction of the divisor's scaled multiples."""
    from shlo_disc.lowering.float_remainder import float_remainder

    return float_remainder(a, b)


def _is_finite(x: ir.Value) -> ir.Value:
    return arith.cmpf(arith.CmpFPredicate.ONE, math.absf(x), constant_like(x, float("inf")))


FLOAT_ROWS: dict[str, Callable[..., ir.Value]] = {
    "abs": lambda lib, e, x: math.absf(x),
    "add": lambda lib, e, a, b: arith.addf(a, b),
    "atan2": lambda lib, e, a, b: lib.atan2(a, b),
    "cbrt": lambda lib, e, x: lib.cbrt(x),
    "ceil": lambda lib, e, x: math.ceil(x),
    "cosine": lambda lib, e, x: lib.cos(x),
    "divide": lambda lib, e, a, b: arith.divf(a, b),
    "exponential": lambda lib, e, x: lib.exp(x),
    "exponential_minus_one": lambda lib, e, x: lib.expm1(x),
    "floor": lambda lib, e, x: math.floor(x),
    "is_finite": lambda lib, e, x: _is_finite(x),
    "log": lambda lib, e, x: lib.log(x),
    "log_plus_one": lambda lib, e, x: lib.log1p(x),
    "logistic": lambda lib, e, x: lib.logistic(x),
    "maximum": lambda lib, e, a, b: arith.maximumf(a, b),
    "minimum": lambda lib, e, a, b: arith.minimumf(a, b),
    "multiply": lambda lib, e, a, b: arith.mulf(a, b),
    "negate": lambda lib, e, x: arith.negf(x),
    "power": lambda lib, e, a, b: lib.power(a, b),
    "remainder": lambda lib, e, a, b: _remainder_float(lib, a, b),
    "round_nearest_afz": lambda lib, e, x: math.round(x),
    "round_nearest_even": lambda lib, e, x: math.roundeven(x),
    "rsqrt": lambda lib, e, x: lib.rsqrt(x),
    "sign": lambda lib, e, x: _sign_float(x),
    "sine": lambda lib, e, x: lib.sin(x),
    "sqrt": lambda lib, e, x: math.sqrt(x),
    "subtract": lambda lib, e, a, b: arith.subf(a, b),
    "tan": lambda lib, e, x: lib.tan(x),
    "tanh": lambda lib, e, x: lib.tanh(x),
}


def _complement(x: ir.Value) -> ir.Value:
    return arith.xori(x, constant_like(x, -1))


INTEGER_ROWS: dict[str, Callable[..., ir.Value]] = {
    "abs": lambda lib, e, x: x if e.is_unsigned else arith.maxsi(x, arith.subi(constant_like(x, 0), x)),
    "add": lambda lib, e, a, b: arith.ori(a, b) if e.is_bool else arith.addi(a, b),
    "and": lambda lib, e, a, b: arith.andi(a, b),
    "count_leading_zeros": lambda lib, e, x: math.ctlz(x),
    "divide": lambda lib, e, a, b: _safe_divide(a, b, e, remainder=False),
    "maximum": lambda lib, e, a, b: arith.maxui(a, b) if e.is_unsigned else arith.maxsi(a, b),
    "minimum": lambda lib, e, a, b: arith.minui(a, b) if e.is_unsigned else arith.minsi(a, b),
    "multiply": lambda lib, e, a, b: arith.andi(a, b) if e.is_bool else arith.muli(a, b),
    "negate": lambda lib, e, x: arith.subi(constant_like(x, 0), x),
    "not": lambda lib, e, x: _complement(x),
    "or": lambda lib, e, a, b: arith.ori(a, b),
    "popcnt": lambda lib, e, x: math.ctpop(x),
    "power": lambda lib, e, a, b: _integer_power(a, b, e),
    "remainder": lambda lib, e, a, b: _safe_divide(a, b, e, remainder=True),
    "shift_left": lambda lib, e, a, b: _shift(arith.shli, "zero", a, b),
    "shift_right_arithmetic": lambda lib, e, a, b: _shift(arith.shrsi, "sign", a, b),
    "shift_right_logical": lambda lib, e, a, b: _shift(arith.shrui, "zero", a, b),
    "sign": lambda lib, e, x: _sign_integer(x),
    "subtract": lambda lib, e, a, b: arith.subi(a, b),
    "xor": lambda lib, e, a, b: arith.xori(a, b),
}

FLOAT_PREDICATE = {
    "EQ": arith.CmpFPredicate.OEQ, "NE": arith.CmpFPredicate.UNE, "LT": arith.CmpFPredicate.OLT,
    "LE": arith.CmpFPredicate.OLE, "GT": arith.CmpFPredicate.OGT, "GE": arith.CmpFPredicate.OGE,
}  # fmt: skip
SIGNED_PREDICATE = {
    "EQ": arith.CmpIPredicate.eq, "NE": arith.CmpIPredicate.ne, "LT": arith.CmpIPredicate.slt,
    "LE": arith.CmpIPredicate.sle, "GT": arith.CmpIPredicate.sgt, "GE": arith.CmpIPredicate.sge,
}  # fmt: skip
UNSIGNED_PREDICATE = {
    "EQ": arith.CmpIPredicate.eq, "NE": arith.CmpIPredicate.ne, "LT": arith.CmpIPredicate.ult,
    "LE": arith.CmpIPredicate.ule, "GT": arith.CmpIPredicate.ugt, "GE": arith.CmpIPredicate.uge,
}  # fmt: skip
