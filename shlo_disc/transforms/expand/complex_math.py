# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of complex numbers by their real and imaginary parts, without overflow or cancellation on the way.

Magnitudes are formed from the ratio of the smaller part to the larger (hypot). Sources: W. Kahan, "Branch cuts for
complex elementary functions" (tanh, sqrt); R. L. Smith, "Algorithm 116: Complex division"; C99 annex G (infinities).
A function has the name of the StableHLO op that it is, where there is one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from shlo_disc.shape_dialect.dialect.types import element_type_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.transforms.expand.reals import Real, apply, compare, where


class Complex(NamedTuple):
    """The two parts of a complex tensor."""

    re: Real
    im: Real


def add(x: Complex, y: Complex) -> Complex:
    return Complex(x.re + y.re, x.im + y.im)


def subtract(x: Complex, y: Complex) -> Complex:
    return Complex(x.re - y.re, x.im - y.im)


def negate(z: Complex) -> Complex:
    return Complex(-z.re, -z.im)


def multiply(x: Complex, y: Complex) -> Complex:
    return Complex(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)


def divide(x: Complex, y: Complex) -> Complex:
    """Smith's method on halves, whose sums cannot overflow; then what it turns into NaNs: zeros and infinities."""
    is_steep = apply("abs", y.re) < apply("abs", y.im)
    large, small = where(is_steep, y.im, y.re) * 0.5, where(is_steep, y.re, y.im) * 0.5
    ratio = small / large
    divisor = large + small * ratio
    a, b = x.re * 0.5, x.im * 0.5
    re = where(is_steep, a * ratio + b, a + b * ratio) / divisor
    im = where(is_steep, b * ratio - a, b - a * ratio) / divisor
    infinity = re.like(math.inf)
    signed = infinity.with_sign_of(y.re)
    by_zero = y.re.equals(0.0) & y.im.equals(0.0) & ~(x.re.is_nan() & x.im.is_nan())
    x_infinite, y_infinite = _is_infinite(x), _is_infinite(y)
    corner_x = multiply(_corner(x), Complex(y.re, -y.im))
    corner_y = multiply(x, Complex(_corner(y).re, -_corner(y).im))
    from_infinity, to_zero = x_infinite & _is_finite(y), y_infinite & _is_finite(x)
    parts = []
    for plain, numerator, of_x, of_y in zip((re, im), x, corner_x, corner_y, strict=True):
        part = where(to_zero, of_y * 0.0, plain)
        part = where(from_infinity, of_x * infinity, part)
        parts.append(where(by_zero, signed * numerator, part))
    return Complex(*parts)


def _is_infinite(z: Complex) -> Real:
    return z.re.is_infinite() | z.im.is_infinite()


def _is_finite(z: Complex) -> Real:
    return (apply("abs", z.re) < math.inf) & (apply("abs", z.im) < math.inf)


def _corner(z: Complex) -> Complex:
    """Infinite parts as 1, the others as 0, with their signs."""
    return Complex(*(where(p.is_infinite(), p.like(1.0), p.like(0.0)).with_sign_of(p) for p in z))


def _extent(z: Complex) -> tuple[Real, Real]:
    """The larger magnitude of the two parts, and the ratio of the smaller one to it (1 for two zeros or infinities)."""
    a, b = apply("abs", z.re), apply("abs", z.im)
    large, small = a.maximum(b), a.minimum(b)
    return large, where(large.equals(small), 1.0, small / large)


def absolute(z: Complex) -> Real:
    large, ratio = _extent(z)
    return large * apply("sqrt", ratio * ratio + 1.0)


def sign(z: Complex) -> Complex:
    size = absolute(z)
    is_zero = size.equals(0.0)
    return Complex(where(is_zero, z.re, z.re / size), where(is_zero, z.im, z.im / size))


def angle(z: Complex) -> Real:
    return apply("atan2", z.im, z.re)


# ---- exponentials and logarithms -------------------------------------------------------------------------------------


def _turned(size: Real, by: Real) -> Complex:
    """`size * (cos(by) + i sin(by))`, exactly real at the angle 0."""
    return Complex(size * apply("cosine", by), where(by.equals(0.0), by, size * apply("sine", by)))


def exponential(z: Complex) -> Complex:
    """In two factors, so that neither overflows where the product does not; exactly real on the real axis."""
    half = apply("exponential", z.re * 0.5)
    whole = apply("exponential", z.re)
    too_large = whole.equals(math.inf)
    cosine, sine = apply("cosine", z.im), apply("sine", z.im)
    re = where(too_large, half * cosine * half, whole * cosine)
    im = where(too_large, half * sine * half, whole * sine)
    return Complex(re, where(z.im.equals(0.0), z.im, im))


def exponential_minus_one(z: Complex) -> Complex:
    half_sine = apply("sine", z.im * 0.5)
    re = apply("exponential_minus_one", z.re) * apply("cosine", z.im) - 2.0 * half_sine * half_sine
    im = apply("exponential", z.re) * apply("sine", z.im)
    return Complex(re, where(z.im.equals(0.0), z.im, im))


def _log_of_size(z: Complex, excess: Real) -> Real:
    """log|z|, where `excess` is |z|^2 - 1, which is used near the unit circle."""
    large, ratio = _extent(z)
    far = apply("log", large) + 0.5 * apply("log_plus_one", ratio * ratio)
    near = (large > 0.5) & (large < 2.0)
    return where(near, 0.5 * apply("log_plus_one", excess), where(_is_infinite(z), math.inf, far))


def log(z: Complex) -> Complex:
    a, b = apply("abs", z.re), apply("abs", z.im)
    large, small = a.maximum(b), a.minimum(b)
    return Complex(_log_of_size(z, (large - 1.0) * (large + 1.0) + small * small), angle(z))


def log_plus_one(z: Complex) -> Complex:
    shifted = Complex(z.re + 1.0, z.im)
    return Complex(_log_of_size(shifted, z.re * (z.re + 2.0) + z.im * z.im), angle(shifted))


def logistic(z: Complex) -> Complex:
    exponent = exponential(negate(z))
    return divide(one(z), Complex(exponent.re + 1.0, exponent.im))


def power(x: Complex, y: Complex) -> Complex:
    """|x|^c e^(-d t) at the angle c t + d log|x|, where x has the angle t and y = c + d i."""
    size, turn = absolute(x), angle(x)
    growth = apply("power", size, y.re) * apply("exponential", -(y.im * turn))
    general = _turned(growth, y.re * turn + where(y.im.equals(0.0), 0.0, y.im * log(x).re))
    is_zero = size.equals(0.0)
    is_one = y.re.equals(0.0) & y.im.equals(0.0)
    re = where(is_one, 1.0, where(is_zero, apply("power", size, y.re), general.re))
    return Complex(re, where(is_one | is_zero, 0.0, general.im))


# ---- roots -----------------------------------------------------------------------------------------------------------


def sqrt(z: Complex) -> Complex:
    large, ratio = _extent(z)
    a, b = apply("abs", z.re), apply("abs", z.im)
    share = where(a >= b, 1.0, ratio)
    long = apply("sqrt", large) * apply("sqrt", 0.5 * (share + apply("sqrt", ratio * ratio + 1.0)))
    long = where(large.equals(0.0), 0.0, long)
    short = where(b.is_infinite(), math.inf, where(large.equals(0.0), 0.0, b / (long + long)))
    is_left = z.re < 0.0
    return Complex(where(is_left, short, long), where(is_left, long, short).with_sign_of(z.im))


def rsqrt(z: Complex) -> Complex:
    return divide(one(z), sqrt(z))


def cbrt(z: Complex) -> Complex:
    return _turned(apply("cbrt", absolute(z)), angle(z) / 3.0)


# ---- trigonometric and hyperbolic ------------------------------------------------------------------------------------


def _hyperbolic(x: Real) -> tuple[Real, Real, Real]:
    """(s, c, f) with sinh(x) = s * f and cosh(x) = c * f, no factor overflowing before the product does."""
    size = apply("abs", x)
    less = apply("exponential_minus_one", size)
    whole = apply("exponential", size)
    small_sinh = 0.5 * (less + less / whole)
    small_cosh = 0.5 * (whole + 1.0 / whole)
    is_large = size > 20.0
    half = apply("exponential", size * 0.5)
    s, c = where(is_large, 0.5 * half, small_sinh), where(is_large, 0.5 * half, small_cosh)
    return s.with_sign_of(x), c, where(is_large, half, 1.0)


def sine(z: Complex) -> Complex:
    s, c, factor = _hyperbolic(z.im)
    im = apply("cosine", z.re) * s * factor
    return Complex(apply("sine", z.re) * c * factor, where(z.im.equals(0.0), z.im, im))


def cosine(z: Complex) -> Complex:
    s, c, factor = _hyperbolic(z.im)
    return Complex(apply("cosine", z.re) * c * factor, -(apply("sine", z.re) * s * factor))


def tanh(z: Complex) -> Complex:
    """Kahan's formula; far from the imaginary axis its limit, which the squares would overflow before."""
    tangent = apply("tan", z.im)
    s, _, factor = _hyperbolic(z.re)
    s = s * factor
    slope = tangent * tangent + 1.0
    divisor = slope * s * s + 1.0
    re = slope * apply("sqrt", s * s + 1.0) * s / divisor
    im = tangent / divisor
    size = apply("abs", z.re)
    is_far = size > (22.0 if isinstance(element_type_of(z.re.value), ir.F64Type) else 11.0)
    decay = 4.0 * apply("sine", z.im) * apply("cosine", z.im) * apply("exponential", size * -2.0)
    im = where(is_far, where(size.equals(math.inf), 0.0, decay), im)
    limit = where(tangent.equals(tangent) | size.equals(math.inf), re.like(1.0).with_sign_of(z.re), math.nan)
    return Complex(where(is_far, limit, re), where(z.im.equals(0.0), z.im, im))


def tan(z: Complex) -> Complex:
    turned = tanh(Complex(-z.im, z.re))
    return Complex(turned.im, -turned.re)


def atan2(y: Complex, x: Complex) -> Complex:
    """-i log((x + i y) / sqrt(x^2 + y^2))."""
    numerator = Complex(x.re - y.im, x.im + y.re)
    logarithm = log(divide(numerator, sqrt(add(multiply(x, x), multiply(y, y)))))
    return Complex(logarithm.im, -logarithm.re)


# ---- order -----------------------------------------------------------------------------------------------------------


def ordered(direction: str, x: Complex, y: Complex) -> Real:
    """A comparison by the real parts, and by the imaginary ones where those are equal."""
    if direction == "EQ":
        return x.re.equals(y.re) & x.im.equals(y.im)
    if direction == "NE":
        return compare("NE", x.re, y.re) | compare("NE", x.im, y.im)
    strict = direction.replace("E", "T")
    return compare(strict, x.re, y.re) | (x.re.equals(y.re) & compare(direction, x.im, y.im))


def choose(condition: Real, yes: Complex, no: Complex) -> Complex:
    return Complex(where(condition, yes.re, no.re), where(condition, yes.im, no.im))


def maximum(x: Complex, y: Complex) -> Complex:
    return choose(ordered("GE", x, y), x, y)


def minimum(x: Complex, y: Complex) -> Complex:
    return choose(ordered("LE", x, y), x, y)


def one(z: Complex) -> Complex:
    return Complex(z.re.like(1.0), z.re.like(0.0))


FUNCTIONS: dict[str, Callable[..., Complex]] = {
    "add": add, "atan2": atan2, "cbrt": cbrt, "cosine": cosine, "divide": divide, "exponential": exponential,
    "exponential_minus_one": exponential_minus_one, "log": log, "log_plus_one": log_plus_one, "logistic": logistic,
    "maximum": maximum, "minimum": minimum, "multiply": multiply, "negate": negate, "power": power, "rsqrt": rsqrt,
    "sign": sign, "sine": sine, "sqrt": sqrt, "subtract": subtract, "tan": tan, "tanh": tanh,
}  # fmt: skip
"""Elementwise ops with complex operands and a complex result, by name."""
