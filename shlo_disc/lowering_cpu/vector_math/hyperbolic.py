# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tanh, sinh, cosh and their inverses, from expm1, exp, log1p and log."""

from __future__ import annotations

from .constants import INFINITY, LN2, NAN, format_of
from .exponential import exp_lanes, expm1_below
from .lanes import Lanes, where
from .logarithm import log1p_lanes, log_lanes

# From here on tanh rounds to 1, and e**-x is below half an ulp of e**x.
_SATURATION = {False: 10.0, True: 20.0}


def tanh_lanes(x: Lanes) -> Lanes:
    """t / (t + 2) with t = e**2|x| - 1."""
    t = expm1_below(x.abs().at_most(_SATURATION[x.is_double]) * 2.0)
    return (t / (t + 2.0)).copysign(x)


def sinh_lanes(x: Lanes) -> Lanes:
    """(t + t / (t + 1)) / 2 with t = e**|x| - 1; e**|x| / 2 where e**-|x| no longer counts."""
    size = x.abs()
    t = expm1_below(size.at_most(_SATURATION[x.is_double]))
    near = (t + t / (t + 1.0)) * 0.5
    far = exp_lanes(size, scale=-1)
    return where(size.lt(_SATURATION[x.is_double]), near, far).copysign(x)


def cosh_lanes(x: Lanes) -> Lanes:
    """h + 1 / (4 h) with h = e**|x| / 2."""
    half = exp_lanes(x.abs(), scale=-1)
    return half + x.const(0.25) / half


def asinh_lanes(x: Lanes) -> Lanes:
    """log1p(a + a**2 / (1 + sqrt(a**2 + 1))) with a = |x|; log(a) + log(2) where a**2 would overflow."""
    size = x.abs()
    large = size.gt(_large(x))
    a = where(large, size.const(1.0), size)
    square = a * a
    inner = a + square / ((square + 1.0).sqrt() + 1.0)
    return where(large, log_lanes(size) + LN2, log1p_lanes(inner)).copysign(x)


def acosh_lanes(x: Lanes) -> Lanes:
    """log1p(t + sqrt(2 t + t**2)) with t = x - 1; log(x) + log(2) for large x; NaN below 1."""
    large = x.gt(_large(x))
    t = where(large, x.const(1.0), x - 1.0)
    inner = t + t.fma(t, t * 2.0).sqrt()
    result = where(large, log_lanes(x) + LN2, log1p_lanes(inner))
    return where(x.lt(1.0), x.const(NAN), result)


def atanh_lanes(x: Lanes) -> Lanes:
    """log1p(2 a / (1 - a)) / 2 with a = |x|; infinite at 1, NaN beyond."""
    size = x.abs()
    inner = (size * 2.0) / (1.0 - size)
    result = log1p_lanes(inner) * 0.5
    return where(size.eq(1.0), x.const(INFINITY), where(size.lt(format_of(x).tiny), size, result)).copysign(x)


def _large(x: Lanes) -> float:
    """Above this size, 1 is lost against the square."""
    return 2.0**28 if x.is_double else 2.0**14
