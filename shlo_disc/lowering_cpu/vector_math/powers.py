# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""power, cbrt, sqrt and rsqrt.

power is e**(y log x): for f32 the logarithm is taken in f64, for f64 in double-double arithmetic (Dekker; Shewchuk,
"Adaptive precision floating-point arithmetic"), so that y times its error stays below an ulp of the result.
"""

from __future__ import annotations

from .constants import INFINITY, NAN, format_of, small_integer_to_float
from .exponential import exp_lanes
from .lanes import Lanes, horner, power_of_two, where
from .logarithm import split_exponent, split_positive
from .twofold import Twofold, quick_two_sum, two_product, two_sum

# log((1 + s) / (1 - s)) = 2 s + s**3 p(s**2), |s| <= 0.172: degree 4 by Remez, 2**-44.9 relative to the logarithm.
_LOG_F32 = (0.6666666667579882, 0.39999995622557943, 0.2857210906662932, 0.22176193380113468, 0.19584071131784553)
# The same series after its term 2/3 s**3, degree 7, 2**-66.4.
_LOG_F64 = (0.3999999999999998, 0.28571428571445096, 0.22222222217539814, 0.18181818869925095, 0.15384556896486698,
            0.13336316468688475, 0.11674837360119782, 0.11988858721499442)  # fmt: skip
_TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
# Coefficients of (e**r - 1 - r) / r**2, degree 6 by Remez, 2**-39.7.
_EXP_F32 = (0.5000000000433986, 0.16666666785869086, 0.041666664375622615, 0.008333281392430456, 0.0013899199928246198,
            0.0001990921141851493, 2.470777846769534e-05)  # fmt: skip


def power_lanes(x: Lanes, y: Lanes) -> Lanes:
    """x ** y with the special cases of IEEE 754 pow."""
    size = x.abs()
    # Every exponent beyond 2**65 gives 0, 1 or infinity; finite numbers keep the products below free of NaN.
    exponent = y.at_most(2.0**65).at_least(-(2.0**65))
    if x.is_double:
        magnitude = _exp_twofold(_log_twofold(size).times(exponent))
    else:
        magnitude = _exp_narrow(_log_narrow(size.to_f64()) * exponent.to_f64())
    return _with_special_values(x, y, magnitude)


def _with_special_values(x: Lanes, y: Lanes, magnitude: Lanes) -> Lanes:
    """Zero and infinite x, the sign, NaN of a negative x with a fractional y, and the ones of x**0 and 1**y."""
    size = x.abs()
    is_zero, is_infinite = size.eq(0.0), size.eq(INFINITY)
    grows = where(y.gt(0.0), is_infinite, is_zero)
    extreme = where(grows, x.const(INFINITY), x.const(0.0))
    result = where(is_zero | is_infinite, extreme, magnitude)
    half = y * 0.5
    integral = y.floor().eq(y)
    odd = integral & half.floor().ne(half)
    sign = (x.bits() & x.bits().const(_signed(format_of(x).sign_bit, x.is_double))).as_float()
    result = result.copysign(where(odd, sign, x.const(0.0)))
    fractional = integral.eq(integral.const(0))
    result = where(x.lt(0.0) & fractional & size.lt(INFINITY), x.const(NAN), result)
    result = where(x.is_nan() | y.is_nan(), x + y, result)
    return where(y.eq(0.0) | x.eq(1.0), x.const(1.0), result)


def _signed(pattern: int, is_double: bool) -> int:
    width = 64 if is_double else 32
    return pattern - (1 << width) if pattern >> (width - 1) else pattern


def _log_narrow(x: Lanes) -> Lanes:
    """log(x) of an f64 that was an f32, to 2**-44."""
    k, m = split_exponent(x)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = (s * z).fma(horner(z, _LOG_F32), s + s)
    form = format_of(x)
    return small_integer_to_float(k, form).fma(form.ln2_high, series)


def _exp_narrow(x: Lanes) -> Lanes:
    """e**x of an f64, to 2**-39, as an f32."""
    form = format_of(x)
    x = x.at_most(90.0).at_least(-110.0)
    shifted = x.fma(1.4426950408889634, form.round_magic)
    r = (shifted - form.round_magic).fma(-form.ln2_high, x)
    mantissa = horner(r, _EXP_F32).fma(r * r, r) + 1.0
    return (mantissa * power_of_two(shifted.bits() - form.round_magic_bits)).to_f32()


def _log_twofold(x: Lanes) -> Twofold:
    """log(x) of a positive finite f64, to 2**-65."""
    k, m = split_positive(x)
    f = m - 1.0
    d = f + 2.0
    d_low = f - (d - 2.0)
    s = f / d
    s_low = (s.fma(-d, f) - s * d_low) / d
    z = two_product(s, s)
    z = quick_two_sum(z.high, z.low + s * s_low * 2.0)
    tail = z.high * horner(z.high, _LOG_F64)
    p = two_sum(tail.const(_TWO_THIRDS[0]), tail)
    series = z.times_twofold(Twofold(p.high, p.low + _TWO_THIRDS[1]))
    factor = series.plus(2.0)
    log_m = factor.times_twofold(Twofold(s, s_low))
    form = format_of(x)
    count = small_integer_to_float(k, form)
    whole = two_product(count, count.const(form.ln2_high))
    total = two_sum(whole.high, log_m.high)
    return quick_two_sum(total.high, total.low + (whole.low + count * form.ln2_low + log_m.low))


def _exp_twofold(x: Twofold) -> Lanes:
    bounded = x.high.at_most(800.0).at_least(-800.0)
    low = where(x.high.abs().lt(800.0), x.low, x.low.const(0.0))
    return exp_lanes(bounded, low=low)


def sqrt_lanes(x: Lanes) -> Lanes:
    """The square root, correctly rounded."""
    return x.sqrt()


def rsqrt_lanes(x: Lanes) -> Lanes:
    """1 / sqrt(x): inf at 0, -inf at -0, NaN below."""
    return 1.0 / x.sqrt()


def cbrt_lanes(x: Lanes) -> Lanes:
    """The cube root, sign kept: a third of the exponent by integer division, then Halley's iteration (in f64).

    The start is Kahan's, "Computing a real cube root", good to 5 bits; every step triples them.
    """
    if not x.is_double:
        root = _cbrt_positive(x.abs().to_f64(), 2).to_f32().copysign(x)
        return where(x.eq(0.0) | x.abs().eq(INFINITY) | x.is_nan(), x, root)
    size = x.abs()
    small, large = size.lt(2.0**-1000), size.gt(2.0**1000)
    root = _cbrt_positive(where(small, size * 2.0**54, where(large, size * 2.0**-54, size)), 3)
    root = where(small, root * 2.0**-18, where(large, root * 2.0**18, root))
    return where(x.eq(0.0) | size.eq(INFINITY) | x.is_nan(), x, root.copysign(x))


def _cbrt_positive(a: Lanes, steps: int) -> Lanes:
    upper = a.bits().shift_right_logical(32).narrow_integer()
    third = upper.divide_unsigned(3) + 715094163
    root = (third.widen_integer() << 32).as_float()
    for _ in range(steps - 1):
        cube = root * root * root
        root = root * ((cube + a + a) / (cube + cube + a))
    # The last step as a correction, so that its rounding does not count.
    square = two_product(root, root)
    residual = square.high.fma(-root, a) - square.low * root
    return root + residual / (square.high * 3.0)
