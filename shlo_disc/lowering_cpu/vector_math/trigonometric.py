# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""sin, cos and tan, for every finite argument.

After the reduction to [-pi/4, pi/4], sin r = r + r**3 p(r**2) and cos r = 1 - r**2/2 + r**4 q(r**2) (Remez). f32 is
computed in f64 with p and q of degree 3, 2**-37 and 2**-43; f64 with degree 5, 2**-56.6 and 2**-59.5, the rest of the
reduction carried along as in FreeBSD's k_sin.c and k_cos.c.
"""

from __future__ import annotations

from collections.abc import Callable

from .constants import INFINITY, NAN
from .lanes import Lanes, horner, where
from .range_reduction import Reduced, reduce_f32, reduce_f64
from .twofold import Twofold, quick_two_sum

_SIN_F32 = (-0.16666666639557864, 0.00833332914383286, -0.0001983925660354648, 2.7175641744060078e-06)
_COS_F32 = (0.041666666619191814, -0.001388888343681807, 2.4799435996090697e-05, -2.720327210452112e-07)
_SIN_F64 = (-0.16666666666666627, 0.008333333333321284, -0.00019841269828868135, 2.755731335535702e-06,
            -2.505070394374858e-08, 1.5893578780106766e-10)  # fmt: skip
_COS_F64 = (0.04166666666666659, -0.0013888888888872598, 2.480158728849207e-05, -2.755731405656293e-07,
            2.0875681877078003e-09, -1.1357448516812272e-11)  # fmt: skip


def sin_lanes(x: Lanes) -> Lanes:
    """Sine; NaN for infinite x."""
    return _evaluate(x, _sin)


def cos_lanes(x: Lanes) -> Lanes:
    """Cosine; NaN for infinite x."""
    return _evaluate(x, _cos)


def tan_lanes(x: Lanes) -> Lanes:
    """Tangent; NaN for infinite x."""
    return _evaluate(x, _tan)


def _evaluate(x: Lanes, finish: Callable[[Lanes, Reduced, Twofold, Twofold], Lanes]) -> Lanes:
    size = x.abs() if x.is_double else x.abs().to_f64()
    reduced = reduce_f64(size) if x.is_double else reduce_f32(size)
    sine = _sine_of(reduced.rest, _SIN_F64 if x.is_double else _SIN_F32)
    cosine = _cosine_of(reduced.rest, _COS_F64 if x.is_double else _COS_F32)
    result = finish(x, reduced, sine, cosine)
    return where(x.abs().lt(INFINITY), result, x.const(NAN))


def _sine_of(rest: Twofold, coefficients: tuple[float, ...]) -> Twofold:
    r, z = rest.high, rest.high * rest.high
    cube = r * z
    correction = z.fma(-0.5, 1.0) * rest.low
    return quick_two_sum(r, cube.fma(horner(z, coefficients), correction))


def _cosine_of(rest: Twofold, coefficients: tuple[float, ...]) -> Twofold:
    r, z = rest.high, rest.high * rest.high
    half = z * 0.5
    main = 1.0 - half
    lost = (1.0 - main) - half
    return quick_two_sum(main, (z * z).fma(horner(z, coefficients), lost - r * rest.low))


def _odd(reduced: Reduced) -> Lanes:
    return reduced.quadrant.eq(1.0) | reduced.quadrant.eq(3.0)


def _sin(x: Lanes, reduced: Reduced, sine: Twofold, cosine: Twofold) -> Lanes:
    value = where(_odd(reduced), cosine.high, sine.high)
    value = where(reduced.quadrant.ge(2.0), -value, value)
    return _narrow(value, x) * _sign(x)


def _cos(x: Lanes, reduced: Reduced, sine: Twofold, cosine: Twofold) -> Lanes:
    value = where(_odd(reduced), sine.high, cosine.high)
    negative = reduced.quadrant.eq(1.0) | reduced.quadrant.eq(2.0)
    return _narrow(where(negative, -value, value), x)


def _tan(x: Lanes, reduced: Reduced, sine: Twofold, cosine: Twofold) -> Lanes:
    """sin / cos or -cos / sin; for f64 the quotient is corrected with what both lost to rounding."""
    odd = _odd(reduced)
    above, below = where(odd, -cosine.high, sine.high), where(odd, sine.high, cosine.high)
    quotient = above / below
    if x.is_double:
        residual = quotient.fma(-below, above) + where(odd, -cosine.low, sine.low)
        lost = quotient * where(odd, sine.low, cosine.low)
        # At zero the residual is a zero that would change the sign.
        quotient = where(above.eq(0.0), quotient, quotient + (residual - lost) / below)
    return _narrow(quotient, x) * _sign(x)


def _sign(x: Lanes) -> Lanes:
    return x.const(1.0).copysign(x)


def _narrow(value: Lanes, x: Lanes) -> Lanes:
    return value if x.is_double else value.to_f32()
