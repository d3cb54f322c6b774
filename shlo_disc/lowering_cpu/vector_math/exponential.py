# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""exp, exp2-like scaling, expm1 and logistic.

Range reduction after Cody and Waite, "Software Manual for the Elementary Functions": x = n ln 2 + r, |r| <= ln 2 / 2,
with n found by adding 1.5 * 2**fraction_bits. e**r = 1 + r + r**2 q(r), where q is a minimax polynomial (Remez, the
error relative to e**r): degree 5 and 2**-32.2 for f32, degree 10 and 2**-60 for f64.
"""

from __future__ import annotations

from .constants import LOG2_E, format_of
from .lanes import Lanes, horner, power_of_two, where

_Q_F32 = (0.5, 0.166666641831398, 0.04166647791862488, 0.008333894424140453, 0.0013934531016275287,
          0.00019582560344133526)  # fmt: skip
_Q_F64 = (0.5, 0.16666666666666682, 0.04166666666666608, 0.008333333333316779, 0.0013888888889119755,
          0.00019841269897030226, 2.4801586921616412e-05, 2.755723420440589e-06, 2.7557584193964286e-07,
          2.5112269616733827e-08, 2.0826380471072005e-09)  # fmt: skip

# Beyond these arguments the result is infinite, or rounds to zero, or (expm1) to -1.
_EXP_RANGE = {False: (-104.0, 89.0), True: (-746.0, 710.0)}
_EXPM1_LOW = {False: -18.0, True: -38.0}


def _reduce(x: Lanes) -> tuple[Lanes, Lanes]:
    """(n as an integer, r) with x = n ln 2 + r. The size of n is below 2**12."""
    form = format_of(x)
    shifted = x.fma(LOG2_E, form.round_magic)
    n = shifted - form.round_magic
    r = n.fma(-form.ln2_low, n.fma(-form.ln2_high, x))
    return shifted.bits() - form.round_magic_bits, r


def _quotient(r: Lanes) -> tuple[float, ...]:
    """q's coefficients."""
    return _Q_F64 if r.is_double else _Q_F32


def _expm1_reduced(r: Lanes) -> Lanes:
    """e**r - 1 for |r| <= ln 2 / 2."""
    return horner(r, _quotient(r)).fma(r * r, r)


def _exp_reduced(r: Lanes) -> Lanes:
    """e**r for |r| <= ln 2 / 2."""
    return horner(r, (1.0, 1.0, *_quotient(r)))


def exp_lanes(x: Lanes, low: Lanes | None = None, scale: int = 0) -> Lanes:
    """e**(x + low) * 2**scale, for `low` below an ulp of x.

    The result may be subnormal and is rounded once, and it overflows to infinity only where it should.
    """
    least, most = _EXP_RANGE[x.is_double]
    n, r = _reduce(x.at_most(most - scale).at_least(least))
    if low is not None:
        r = r + low
    if scale:
        n = n + scale
    return _exp_reduced(r).scaled(n)


def expm1_below(x: Lanes) -> Lanes:
    """e**x - 1 for x at most 80 (f32) or 700 (f64) and at least -18 or -38; signed zeros are not kept."""
    n, r = _reduce(x)
    scale = power_of_two(n)
    return _expm1_reduced(r).fma(scale, scale - 1.0)


def expm1_lanes(x: Lanes) -> Lanes:
    """e**x - 1; tiny arguments, zeros included, are returned as they are."""
    n, r = _reduce(x.at_most(_EXP_RANGE[x.is_double][1]).at_least(_EXPM1_LOW[x.is_double]))
    half = power_of_two(n - 1)
    result = _expm1_reduced(r).fma(half, half - 0.5) * 2.0
    return where(x.abs().lt(format_of(x).tiny), x, result)


def logistic_lanes(x: Lanes) -> Lanes:
    """1 / (1 + e**-x), from e = e**-|x| so that neither tail loses accuracy.

    The quotient is corrected once, with what e and 1 + e lost to rounding.
    """
    n, r = _reduce((-x.abs()).at_least(_EXP_RANGE[x.is_double][0]))
    excess = _expm1_reduced(r)
    mantissa = excess + 1.0
    e, e_low = mantissa.scaled(n), (1.0 - mantissa + excess).scaled(n)
    denominator = e + 1.0
    negative = x.lt(0.0)
    reciprocal = 1.0 / denominator
    numerator = where(negative, e, x.const(1.0))
    quotient = numerator * reciprocal
    lost = (1.0 - denominator) + e + e_low
    residual = quotient.fma(-denominator, numerator) + where(negative, e_low, x.const(0.0))
    return (residual - quotient * lost).fma(reciprocal, quotient)
