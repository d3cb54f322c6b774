# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers that depend on the element type, shared by the function families."""

from __future__ import annotations

from dataclasses import dataclass

from .lanes import Lanes


@dataclass(frozen=True)
class FloatFormat:
    """Facts of a binary float format, and ln 2 as the sum of two numbers of the format.

    `round_magic` is 1.5 * 2**fraction_bits: adding it to a small number leaves the nearest integer in the low bits.
    `root_half_bits` is the pattern of sqrt(1/2), `tiny` the size below which 1 + x rounds to 1.
    """

    fraction_bits: int
    bias: int
    round_magic: float
    round_magic_bits: int
    ln2_high: float
    ln2_low: float
    smallest_normal: float
    root_half_bits: int
    tiny: float
    sign_bit: int


F32 = FloatFormat(23, 127, 12582912.0, 0x4B400000, 0.693147182464599609375, -1.904654299957768e-09, 2.0**-126,
                  0x3F3504F3, 2.0**-25, 1 << 31)  # fmt: skip
F64 = FloatFormat(52, 1023, 6755399441055744.0, 0x4338000000000000, 0.6931471805599453, 2.3190468138462996e-17,
                  2.0**-1022, 0x3FE6A09E667F3BCD, 2.0**-54, 1 << 63)  # fmt: skip

LOG2_E = 1.4426950408889634
LN2 = 0.6931471805599453
INFINITY = float("inf")
NAN = float("nan")


def format_of(x: Lanes) -> FloatFormat:
    return F64 if x.is_double else F32


def small_integer_to_float(n: Lanes, form: FloatFormat) -> Lanes:
    """An integer below 2**21 in size as a float, without a conversion that only AVX-512 has for 64 bits."""
    if n.element == "i32":
        return n.to_float()
    return (n + form.round_magic_bits).as_float() - form.round_magic
