# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Floats of a byte or less, to f32 and back, as integer ops on lanes: one recipe, and a table of formats.

A format is a sign, an exponent and a mantissa like IEEE's, with some codes given other meanings: FN has no infinities,
FNUZ has no negative zero either, whose code is the NaN, and E8M0 is nothing but an exponent.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.shape_dialect.mlir import arith, ir


@dataclass(frozen=True)
class SmallFloat:
    """bits: of a code. largest: the code of the largest finite magnitude. infinity, nan: codes of magnitudes, None when
    there is none: without an infinity what is too large becomes NaN, and without a NaN the largest.
    """

    bits: int
    mantissa: int
    bias: int
    largest: int
    infinity: int | None = None
    nan: int | None = None
    is_signed: bool = True
    has_negative_zero: bool = True


FORMATS = {
    "f4E2M1FN": SmallFloat(4, 1, 1, 0x7),
    "f6E2M3FN": SmallFloat(6, 3, 1, 0x1F),
    "f6E3M2FN": SmallFloat(6, 2, 3, 0x1F),
    "f8E3M4": SmallFloat(8, 4, 3, 0x6F, infinity=0x70, nan=0x78),
    "f8E4M3": SmallFloat(8, 3, 7, 0x77, infinity=0x78, nan=0x7C),
    "f8E5M2": SmallFloat(8, 2, 15, 0x7B, infinity=0x7C, nan=0x7E),
    "f8E4M3FN": SmallFloat(8, 3, 7, 0x7E, nan=0x7F),
    "f8E4M3B11FNUZ": SmallFloat(8, 3, 11, 0x7F, nan=0x80, has_negative_zero=False),
    "f8E4M3FNUZ": SmallFloat(8, 3, 8, 0x7F, nan=0x80, has_negative_zero=False),
    "f8E5M2FNUZ": SmallFloat(8, 2, 16, 0x7F, nan=0x80, has_negative_zero=False),
    "f8E8M0FNU": SmallFloat(8, 0, 127, 0xFE, nan=0xFF, is_signed=False),
}

_F32_BIAS, _F32_MANTISSA, _F32_INFINITY, _F32_NAN = 127, 23, 0x7F800000, 0x7FC00000


class _Lanes:
    """Integer arithmetic on i32 lanes shaped like a value."""

    def __init__(self, shape_of: ir.Value):
        self.shape_of = shape_of
        self.type = self.like(ir.IntegerType.get_signless(32))

    def like(self, element: ir.Type) -> ir.Type:
        kind = self.shape_of.type
        return ir.VectorType.get(kind.shape, element) if isinstance(kind, ir.VectorType) else element

    def number(self, value: int) -> ir.Value:
        element = ir.IntegerType.get_signless(32)
        attribute = ir.IntegerAttr.get(element, value - (1 << 32) if value >> 31 else value)
        if not isinstance(self.type, ir.VectorType):
            return arith.constant(self.type, attribute)
        return arith.constant(self.type, ir.DenseElementsAttr.get_splat(self.type, attribute))

    def is_above(self, value: ir.Value, limit: int) -> ir.Value:
        return arith.cmpi(arith.CmpIPredicate.ugt, value, self.number(limit))

    def equals(self, value: ir.Value, number: int) -> ir.Value:
        return arith.cmpi(arith.CmpIPredicate.eq, value, self.number(number))

    def shifted_left(self, value: ir.Value, amount: int) -> ir.Value:
        return arith.shli(value, self.number(amount))

    def shifted_right(self, value: ir.Value, amount: int) -> ir.Value:
        return arith.shrui(value, self.number(amount))


def decode(code: ir.Value, name: str) -> ir.Value:
    """The f32 of a code, an integer of the format's bits or a vector of them. Exact."""
    form, lanes = FORMATS[name], _Lanes(code)
    bits = arith.extui(lanes.type, code) if form.bits < 32 else code
    if not form.is_signed:
        return _float(lanes, _decode_exponent(lanes, bits))
    magnitude = arith.andi(bits, lanes.number((1 << (form.bits - 1)) - 1))
    sign = lanes.shifted_left(arith.shrui(bits, lanes.number(form.bits - 1)), 31)
    aligned = lanes.shifted_left(magnitude, _F32_MANTISSA - form.mantissa)
    normal = arith.addi(aligned, lanes.number((_F32_BIAS - form.bias) << _F32_MANTISSA))
    # A subnormal is its mantissa times a power of two, a normal number in f32.
    step = _F32_BIAS + 1 - form.bias - form.mantissa
    unit = _float(lanes, lanes.number(step << _F32_MANTISSA))
    small = arith.mulf(arith.uitofp(unit.type, magnitude), unit)
    result = arith.select(lanes.is_above(magnitude, (1 << form.mantissa) - 1), normal, _integer(lanes, small))
    if form.infinity is not None:
        special = arith.ori(aligned, lanes.number(_F32_INFINITY))
        result = arith.select(lanes.is_above(magnitude, form.largest), special, result)
    elif form.nan is not None:
        compared = magnitude if form.has_negative_zero else bits
        result = arith.select(lanes.equals(compared, form.nan), lanes.number(_F32_NAN), result)
    return _float(lanes, arith.ori(result, sign))


def _decode_exponent(lanes: _Lanes, bits: ir.Value) -> ir.Value:
    """E8M0: the power of two, whose smallest is subnormal in f32."""
    result = arith.select(
        lanes.equals(bits, 0), lanes.number(1 << (_F32_MANTISSA - 1)), lanes.shifted_left(bits, _F32_MANTISSA)
    )
    return arith.select(lanes.equals(bits, 0xFF), lanes.number(_F32_NAN), result)


def encode(value: ir.Value, name: str) -> ir.Value:
    """The code of an f32, or vector of them: to nearest, ties to even. NaN without a code becomes a zero."""
    form, lanes = FORMATS[name], _Lanes(value)
    bits = _integer(lanes, value)
    magnitude = arith.andi(bits, lanes.number(0x7FFFFFFF))
    negative = lanes.shifted_right(bits, 31)
    is_nan = lanes.is_above(magnitude, _F32_INFINITY)
    code = _rounded(lanes, magnitude, form) if form.is_signed else _rounded_exponent(lanes, magnitude, negative)
    overflow = form.infinity if form.infinity is not None else form.largest if form.nan is None else form.nan
    code = arith.select(lanes.is_above(code, form.largest), lanes.number(overflow), code)
    if form.nan is None:
        code = arith.select(is_nan, lanes.number(0), code)
        negative = arith.xori(negative, arith.extui(lanes.type, is_nan))
    else:
        code = arith.select(is_nan, lanes.number(form.nan), code)
    if form.is_signed:
        signed = arith.ori(code, lanes.shifted_left(negative, form.bits - 1))
        code = signed if form.has_negative_zero else arith.select(lanes.equals(code, 0), code, signed)
    return arith.trunci(lanes.like(ir.IntegerType.get_signless(form.bits)), code)


def _rounded(lanes: _Lanes, magnitude: ir.Value, form: SmallFloat) -> ir.Value:
    """A magnitude's code as if exponents had no upper end. Far too large ones, infinity and NaN give large codes."""
    dropped = _F32_MANTISSA - form.mantissa
    last = arith.andi(lanes.shifted_right(magnitude, dropped), lanes.number(1))
    nearest = arith.addi(magnitude, arith.addi(last, lanes.number((1 << (dropped - 1)) - 1)))
    normal = arith.subi(lanes.shifted_right(nearest, dropped), lanes.number((_F32_BIAS - form.bias) << form.mantissa))
    # Adding a number whose last place is the smallest subnormal leaves the code in the sum's last bits.
    offset = (_F32_BIAS + 1 - form.bias - form.mantissa + _F32_MANTISSA) << _F32_MANTISSA
    total = arith.addf(_float(lanes, magnitude), _float(lanes, lanes.number(offset)))
    subnormal = arith.subi(_integer(lanes, total), lanes.number(offset))
    smallest = (_F32_BIAS + 1 - form.bias) << _F32_MANTISSA
    return arith.select(lanes.is_above(magnitude, smallest - 1), normal, subnormal)


def _rounded_exponent(lanes: _Lanes, magnitude: ir.Value, negative: ir.Value) -> ir.Value:
    """E8M0: the nearest power of two, the larger at a tie: a mantissa of no bits is odd. Zero and less are NaN."""
    half = 1 << (_F32_MANTISSA - 1)
    nearest = lanes.shifted_right(arith.addi(magnitude, lanes.number(half)), _F32_MANTISSA)
    # Below 2^-126 the numbers are subnormal, and one tie is left between two codes.
    upper = arith.extui(lanes.type, lanes.is_above(magnitude, half + half // 2 - 1))
    code = arith.select(lanes.is_above(magnitude, (1 << _F32_MANTISSA) - 1), nearest, upper)
    is_none = arith.ori(lanes.equals(magnitude, 0), lanes.equals(negative, 1))
    return arith.select(is_none, lanes.number(0xFF), code)


def _float(lanes: _Lanes, bits: ir.Value) -> ir.Value:
    return arith.bitcast(lanes.like(ir.F32Type.get()), bits)


def _integer(lanes: _Lanes, value: ir.Value) -> ir.Value:
    return arith.bitcast(lanes.type, value)
