# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""asin, acos, atan and atan2.

atan: x + x**3 p(x**2) on [0, 1] (Remez: f64 degree 20, 2**-54), pi/2 - atan(1/x) above. asin: x + x**3 q(x**2) up to
1/2 (f32 degree 4, 2**-27.6; f64 degree 11, 2**-55.7), pi/2 - 2 asin(sqrt((1 - x) / 2)) above (Cephes). atan and atan2
of f32 are computed in f64 with p of degree 8, 2**-28.5.
"""

from __future__ import annotations

from .lanes import Lanes, horner, where

_ATAN_NARROW = (-0.3333329908667948, 0.1999854815052673, -0.1426424000516473, 0.10952176329078525, -0.08403421762311122,
                0.05795709946096372, -0.031177356188750283, 0.010914347092142151, -0.0017935652437522497)  # fmt: skip
_ATAN_F64 = (-0.33333333333333287, 0.19999999999990448, -0.14285714285036674, 0.11111111086448039, -0.09090908547260507,
             0.07692299711783279, -0.06666583722554005, 0.05881716151445334, -0.052594337748164334,
             0.047449260696613496, -0.04286390812053705, 0.038210062422139236, -0.032785427946565, 0.026151669488209232,
             -0.018614207759658406, 0.011317663919604152, -0.0056124000746785325, 0.0021515959979746795,
             -0.0005928964674399648, 0.00010387266389800268, -8.654288773510293e-06)  # fmt: skip
_ASIN_F32 = (0.16666752099990845, 0.0749531015753746, 0.045468997210264206, 0.02418571151793003, 0.04215652123093605)
_ASIN_F64 = (0.16666666666665408, 0.07500000000336943, 0.04464285682837019, 0.030381959135469764, 0.02237175808522285,
             0.017359704228102773, 0.01388524098534553, 0.012169173463913618, 0.006528149501413202, 0.0195277629023421,
             -0.016223424822639894, 0.031911675545304406)  # fmt: skip
_PI = {False: (3.1415927410125732, -8.742277657347586e-08), True: (3.141592653589793, 1.2246467991473532e-16)}


def atan_lanes(x: Lanes) -> Lanes:
    """The arc tangent in [-pi/2, pi/2]."""
    if not x.is_double:
        return _atan_f64(x.to_f64(), _ATAN_NARROW).to_f32()
    return _atan_f64(x, _ATAN_F64)


def _atan_f64(x: Lanes, coefficients: tuple[float, ...]) -> Lanes:
    size = x.abs()
    inverted = size.gt(1.0)
    return _angle(where(inverted, 1.0 / size, size), inverted, coefficients).copysign(x)


def _angle(ratio: Lanes, inverted: Lanes, coefficients: tuple[float, ...]) -> Lanes:
    """atan(ratio) for ratio in [0, 1]; pi/2 minus that where `inverted`."""
    square = ratio * ratio
    correction = ratio * square * horner(square, coefficients)
    high, low = _PI[True]
    # pi/2 - (ratio + correction), the small parts first.
    complement = (0.5 * low - correction) - ratio + 0.5 * high
    return where(inverted, complement, ratio + correction)


def atan2_lanes(y: Lanes, x: Lanes) -> Lanes:
    """The angle of the point (x, y) in [-pi, pi], with the special cases of C's atan2."""
    if not x.is_double:
        return _atan2_f64(y.to_f64(), x.to_f64(), _ATAN_NARROW).to_f32()
    return _atan2_f64(y, x, _ATAN_F64)


def _atan2_f64(y: Lanes, x: Lanes, coefficients: tuple[float, ...]) -> Lanes:
    height, width = y.abs(), x.abs()
    inverted = height.gt(width)
    ratio = where(inverted, width, height) / where(inverted, height, width)
    ratio = where(height.eq(width), where(height.eq(0.0), x.const(0.0), x.const(1.0)), ratio)
    angle = _angle(ratio, inverted, coefficients)
    high, low = _PI[True]
    angle = where(_is_negative(x), (low - angle) + high, angle).copysign(y)
    return where(x.is_nan() | y.is_nan(), x + y, angle)


def _is_negative(x: Lanes) -> Lanes:
    """Tells whether the sign bit is set, that of zero included."""
    return x.bits().lt(0)


def asin_lanes(x: Lanes) -> Lanes:
    """The arc sine in [-pi/2, pi/2]; NaN outside [-1, 1]."""
    size = x.abs()
    near = size.lt(0.5)
    root, correction = _asin_parts(size, near)
    high, low = (0.5 * part for part in _PI[x.is_double])
    far = high - (root + (correction - 0.5 * low)) * 2.0
    return where(near, root + correction, far).copysign(x)


def acos_lanes(x: Lanes) -> Lanes:
    """The arc cosine in [0, pi]; NaN outside [-1, 1]."""
    size = x.abs()
    near = size.lt(0.5)
    root, correction = _asin_parts(size, near)
    high, low = (0.5 * part for part in _PI[x.is_double])
    middle = high - (_with_sign_of(root, x) - (low - _with_sign_of(correction, x)))
    angle = (root + correction) * 2.0
    outer = where(x.lt(0.0), (2.0 * low - angle) + 2.0 * high, angle)
    return where(near, middle, outer)


def _with_sign_of(value: Lanes, x: Lanes) -> Lanes:
    return where(x.lt(0.0), -value, value)


def _asin_parts(size: Lanes, near: Lanes) -> tuple[Lanes, Lanes]:
    """(a, asin(a) - a) for a = size where `near`, else for a = sqrt((1 - size) / 2), its rounding error included."""
    half = (1.0 - size) * 0.5
    root = half.sqrt()
    # What the square root lost, to first order.
    lost = where(half.gt(0.0), root.fma(-root, half) / (root + root), half)
    square = where(near, size * size, half)
    argument = where(near, size, root)
    series = argument * square * horner(square, _ASIN_F64 if size.is_double else _ASIN_F32)
    return argument, where(near, series, series + lost)
