# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reduction of an angle to a quadrant and a rest of at most pi/4, exact enough for every finite argument.

Only x * 2/pi modulo 4 matters, so the bits of 2/pi whose product with x is a multiple of 4 are dropped and the next
ones suffice (Payne and Hanek, "Radian reduction for trigonometric functions"). Sizes are those of x without its sign.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.shape_dialect.mlir import ir, scf

from .constants import F64
from .lanes import Lanes, where
from .twofold import Twofold, quick_two_sum, two_product, two_sum

# For x >= 2**(23 + 24 g), an f32, the parts of 2/pi that count, in pieces of 29, 29 and 53 bits: products of the first
# two with the 24 bits of x are exact in f64.
_TWO_OVER_PI_F32 = (
    (0.636619770899415, 1.4681663246252086e-09, 2.276010073078396e-18),
    (2.0449648729936598e-07, 2.937095537534198e-16, 2.8376220177865265e-25),
    (2.937095537534198e-16, 2.8376220161182397e-25, 1.668286766860824e-34),
    (3.254380603186126e-23, 5.948547083311846e-32, 1.3069448323317805e-40),
    (2.4711388756602014e-29, 2.5184173824956505e-39, 8.452990443154843e-49),
)
# pi/2 as the sum of three f64.
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
# The binary digits of 2/pi, 64 to a word, after one word of zeros.
_TWO_OVER_PI_BITS = (
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561,
    0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484, 0xE99C7026B45F7E41,
    0x3991D639835339F4, 0x9C845F8BBDF9283B, 0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7,
    0x4F463F669E5FEA2D, 0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
)  # fmt: skip
# Below this, the multiple of pi/2 times the third part of pi/2 is far below the smallest rest of an f64.
_CODY_WAITE_LIMIT = 2.0**30


@dataclass(frozen=True, eq=False)
class Reduced:
    """x = (quadrant + 4 j) pi/2 + rest for an integer j; quadrant is 0.0, 1.0, 2.0 or 3.0 in f64."""

    quadrant: Lanes
    rest: Twofold


def reduce_f32(size: Lanes) -> Reduced:
    """Reduce f64 lanes that hold the sizes of f32 numbers. The rest is good to 2**-31 of itself; `low` is zero."""
    first, second, third = (size.const(c) for c in _TWO_OVER_PI_F32[0])
    for group, pieces in enumerate(_TWO_OVER_PI_F32[1:], start=1):
        beyond = size.ge(2.0 ** (23 + 24 * group))
        first = where(beyond, size.const(pieces[0]), first)
        second = where(beyond, size.const(pieces[1]), second)
        third = where(beyond, size.const(pieces[2]), third)
    product = size * first
    whole = product.round_even()
    total = two_sum(product - whole, size * second)
    more = total.high.round_even()
    turns = (total.high - more) + size.fma(third, total.low)
    return Reduced(_modulo_4(whole + more), Twofold(turns * _HALF_PI[0], turns.const(0.0)))


def _modulo_4(n: Lanes) -> Lanes:
    quarter = n * 0.25
    return (quarter - quarter.floor()) * 4.0


def reduce_f64(size: Lanes) -> Reduced:
    """Reduce f64 lanes. The rest is good to about 2**-100 of pi/4, and to 2**-60 of itself for every f64.

    The exact reduction of arguments above 2**30 runs only when a lane needs it: this is the one branch of the package.
    """
    near = _cody_waite(size.at_most(_CODY_WAITE_LIMIT))
    beyond = size.gt(_CODY_WAITE_LIMIT)
    kinds = [size.type] * 3
    branch = scf.IfOp(beyond.any(), kinds, has_else=True)
    values = (near.quadrant, near.rest.high, near.rest.low)
    with ir.InsertionPoint(branch.then_block):
        far = _payne_hanek(size)
        merged = [where(beyond, b, a) for a, b in zip(values, (far.quadrant, far.rest.high, far.rest.low), strict=True)]
        scf.YieldOp([lanes.value for lanes in merged])
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp([lanes.value for lanes in values])
    quadrant, high, low = (Lanes(result) for result in branch.results)
    return Reduced(quadrant, Twofold(high, low))


def _cody_waite(size: Lanes) -> Reduced:
    n = (size * 0.6366197723675814).round_even()
    start = n.fma(-_HALF_PI[0], size)
    middle = two_product(n, n.const(_HALF_PI[1]))
    rest = two_sum(start, -middle.high)
    low = n.fma(-_HALF_PI[2], rest.low - middle.low)
    return Reduced(_modulo_4(n), quick_two_sum(rest.high, low))


def _payne_hanek(size: Lanes) -> Reduced:
    """Multiply the 53-bit integer of x by the 192 bits of 2/pi that begin where the product is below 4."""
    bits = size.bits()
    exponent = (bits.shift_right_logical(52) & 0x7FF) - (F64.bias + 52)
    mantissa = (bits & ((1 << 52) - 1)) | (1 << 52)
    top, middle, bottom = _window(exponent + 62)
    low = bottom.multiply_high_unsigned(mantissa)
    second, carry = _add_with_carry(middle * mantissa, low)
    first = top * mantissa + middle.multiply_high_unsigned(mantissa) + carry
    # The two bits on top count quarter turns; the next decides the rounding, and its turn is then subtracted.
    quadrant = (first.shift_right_logical(62) + (first.shift_right_logical(61) & 1)) & 3
    signed = (first << 2) | second.shift_right_logical(62)
    return Reduced(_small_to_f64(quadrant), _fraction_to_angle(signed, second << 2))


def _window(position: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """The three words of digits of 2/pi that begin at bit `position` (i64)."""
    index, offset = position.shift_right_logical(6), position & 63
    words = [position.const(0)] * 4
    for start in range(len(_TWO_OVER_PI_BITS) - 3):
        here = index.eq(start)
        words = [where(here, w.const(_as_signed(_TWO_OVER_PI_BITS[start + i])), w) for i, w in enumerate(words)]
    spill = 63 - offset
    high, middle, low = (
        (a << offset) | b.shift_right_logical(1).shift_right_logical(spill)
        for a, b in zip(words, words[1:], strict=False)
    )
    return high, middle, low


def _as_signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def _add_with_carry(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    total = a + b
    carry = ((a & b) | ((a | b) & (total ^ -1))).shift_right_logical(63)
    return total, carry


def _small_to_f64(n: Lanes) -> Lanes:
    """A non-negative i64 below 2**52 as f64."""
    return (n | 0x4330000000000000).as_float() - 2.0**52


def _fraction_to_angle(high: Lanes, low: Lanes) -> Twofold:
    """pi/2 times the signed 128-bit fraction (high, low) / 2**128."""
    mask = (1 << 32) - 1
    upper = _small_to_f64(((high >> 32) + 2**31) & mask) - 2.0**31
    parts = two_sum(upper * 2.0**-32, _small_to_f64(high & mask) * 2.0**-64)
    tail = _small_to_f64(low.shift_right_logical(32)) * 2.0**-96 + _small_to_f64(low & mask) * 2.0**-128
    turns = two_sum(parts.high, parts.low + tail)
    angle = two_product(turns.high, turns.high.const(_HALF_PI[0]))
    return quick_two_sum(angle.high, angle.low + turns.high * _HALF_PI[1] + turns.low * _HALF_PI[0])
