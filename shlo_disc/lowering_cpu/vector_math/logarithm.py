# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""log, log1p and log2.

x = 2**k m with m in [sqrt(1/2), sqrt(2)), found in the bit pattern; f = m - 1. For f32, log(1 + f) = f - f**2/2 +
f**3 p(f) as in Cephes' logf, p of degree 8 (Remez, 2**-28.6 relative to the logarithm). For f64, the series in
s = f / (2 + f) of FreeBSD's e_log.c, a polynomial of degree 6 in s**2 (Remez, 2**-58.9).
"""

from __future__ import annotations

from .constants import INFINITY, NAN, format_of, small_integer_to_float
from .lanes import Lanes, horner, power_of_two, where

_P_F32 = (0.3333331346511841, -0.2500015199184418, 0.20002204179763794, -0.16660210490226746, 0.14210836589336395,
          -0.1253502070903778, 0.12082027643918991, -0.10993199050426483, 0.05498478189110756)  # fmt: skip
_S_F64 = (0.6666666666666734, 0.3999999999941452, 0.2857142874242697, 0.22222198569112886, 0.18183564532478771,
          0.15314045468987383, 0.14795998423274398)  # fmt: skip
# log2(e) as the sum of two numbers of the format.
_LOG2_E = {
    False: (1.44269502162933349609375, 1.925963033500766e-08),
    True: (1.4426950408889634, 2.0355273740931033e-17),
}


def split_exponent(x: Lanes) -> tuple[Lanes, Lanes]:
    """(k as an integer, m) with x = 2**k m, m in [sqrt(1/2), sqrt(2)), for normal positive x."""
    form = format_of(x)
    bits = x.bits()
    k = (bits - form.root_half_bits) >> form.fraction_bits
    return k, (bits - (k << form.fraction_bits)).as_float()


def split_positive(x: Lanes) -> tuple[Lanes, Lanes]:
    """As `split_exponent`, subnormal x included."""
    form = format_of(x)
    subnormal = x.lt(form.smallest_normal)
    k, m = split_exponent(where(subnormal, x * 2.0**form.fraction_bits, x))
    return where(subnormal, k - form.fraction_bits, k), m


def _log1p_correction(f: Lanes) -> Lanes:
    """log(1 + f) - f for 1 + f in [sqrt(1/2), sqrt(2)]."""
    half_square = f * f * 0.5
    if not f.is_double:
        return (f * f * f).fma(horner(f, _P_F32), -half_square)
    s = f / (f + 2.0)
    z = s * s
    return s.fma(half_square + z * horner(z, _S_F64), -half_square)


def _assemble(k: Lanes, f: Lanes) -> Lanes:
    """k ln 2 + log(1 + f)."""
    form = format_of(f)
    count = small_integer_to_float(k, form)
    return count.fma(form.ln2_high, f + count.fma(form.ln2_low, _log1p_correction(f)))


def _with_special_values(x: Lanes, result: Lanes) -> Lanes:
    """-inf at zero, NaN below and for NaN, inf at inf."""
    outside = where(x.eq(0.0), x.const(-INFINITY), x.const(NAN))
    return where(x.eq(INFINITY), x, where(x.gt(0.0), result, outside))


def log_lanes(x: Lanes) -> Lanes:
    """The natural logarithm."""
    k, m = split_positive(x)
    return _with_special_values(x, _assemble(k, m - 1.0))


def log2_lanes(x: Lanes) -> Lanes:
    """The logarithm to base 2; exact for powers of two."""
    k, m = split_positive(x)
    f = m - 1.0
    high, low = _LOG2_E[x.is_double]
    natural_low = _log1p_correction(f)
    tail = f.fma(low, natural_low * high)
    count = small_integer_to_float(k, format_of(x))
    # count + f * high is rounded twice only where the sum is large against f.
    head = f.fma(high, count)
    rest = f.fma(high, count - head)
    return _with_special_values(x, head + (rest + tail))


def log1p_lanes(x: Lanes) -> Lanes:
    """log(1 + x). The exponent is that of 1 + x rounded; f is then formed from x itself, rounded once."""
    form = format_of(x)
    total = x + 1.0
    k, _ = split_exponent(total)
    # 2**-k may be subnormal at the top of the range: four times it is not.
    scale = power_of_two(2 - k)
    f = (x * 0.25).fma(scale, scale.fma(0.25, -1.0))
    result = _with_special_values(total, _assemble(k, f))
    return where(x.abs().lt(form.tiny), x, result)
