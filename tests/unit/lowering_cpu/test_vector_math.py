# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accuracy and special values of every function, against wider arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.codegen import CpuTarget
from shlo_disc.lowering_cpu.vector_math import FUNCTIONS, ULP, exp, power
from shlo_disc.shape_dialect.mlir import arith, ir

WIDE = {"f32": np.float64, "f64": np.longdouble}
NARROW = {"f32": np.float32, "f64": np.float64}
DIGITS = {"f32": (24, -126), "f64": (53, -1022)}
BINARY = ("power", "atan2")
UNARY = tuple(name for name in FUNCTIONS if name not in BINARY)
INF, NAN = np.inf, np.nan
pytestmark = [
    pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="needs the 80-bit long double of x86"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]


def logistic(x: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def by_mpmath(name: str, x: np.ndarray) -> np.ndarray:
    """NumPy has no long double erf: 100 bits of mpmath, rounded to long double in two steps."""
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.prec = 100
    function, out = getattr(mpmath, name), np.empty(x.size, np.longdouble)
    for i, value in enumerate(np.clip(x, -40, 40).astype(np.float64)):
        exact = function(mpmath.mpf(float(value)))
        # Scaled, as the second part of a small result would not be a normal f64.
        scale = -int(mpmath.frexp(exact)[1]) if abs(exact) > mpmath.mpf(2) ** -1200 else 0
        high = float(mpmath.ldexp(exact, scale))
        low = float(mpmath.ldexp(exact, scale) - high) if np.isfinite(high) else 0.0
        out[i] = np.ldexp(np.longdouble(high) + np.longdouble(low), -scale)
    return np.copysign(out, x) if name == "erf" else out


def power_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The C library's long double pow takes -inf to a large negative power for infinite; its double pow does not."""
    return np.where(np.isinf(x), np.power(x.astype(np.float64), y.astype(np.float64)), np.power(x, y))


def error_function(name: str, x: np.ndarray) -> np.ndarray:
    return getattr(scipy.special, name)(x) if x.dtype == np.float64 else by_mpmath(name, x)


REFERENCE = {
    "exp": np.exp, "expm1": np.expm1, "logistic": logistic, "log": np.log, "log1p": np.log1p, "log2": np.log2,
    "tanh": np.tanh, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "cbrt": np.cbrt, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "power": power_reference,
    "atan2": np.arctan2, "erf": lambda x: error_function("erf", x), "erfc": lambda x: error_function("erfc", x),
}  # fmt: skip


def errors(got: np.ndarray, exact: np.ndarray, dtype: str) -> np.ndarray:
    """Distance in ulps of the exact value; infinite where NaN, infinity or the sign of zero are not as they should."""
    precision, least = DIGITS[dtype]
    rounded = exact.astype(NARROW[dtype])
    exponent = np.maximum(np.frexp(exact)[1] - 1, least) - (precision - 1)
    distance = np.abs(got.astype(exact.dtype) - exact) / np.ldexp(exact.dtype.type(1), exponent)
    special = (got == rounded) & ~np.isfinite(rounded) | np.isnan(got) & np.isnan(rounded)
    distance = np.where(special, 0, np.where(np.isnan(distance), INF, distance))
    wrong_zero = (got == 0) & (rounded == 0) & (np.signbit(got) != np.signbit(rounded))
    return np.where(wrong_zero, INF, distance).astype(np.float64)


def random_bits(dtype: str, size: int, seed: int) -> np.ndarray:
    """Every exponent, both signs, NaN and infinity included."""
    width = 32 if dtype == "f32" else 64
    bits = np.random.default_rng(seed).integers(0, 2**64, size, np.uint64) >> np.uint64(64 - width)
    return bits.astype(f"u{width // 8}").view(NARROW[dtype])


# Where functions are hard: around 0, around 1, where results overflow, underflow or saturate, multiples of pi/2.
def hard(dtype: str, size: int, seed: int) -> np.ndarray:
    draw = np.random.default_rng(seed)
    limits = (-110, 95) if dtype == "f32" else (-760, 720)
    parts = [
        draw.uniform(-1, 1, size), draw.uniform(-10, 10, size), draw.uniform(*limits, size),
        1 + draw.uniform(-0.3, 0.5, size), np.exp(draw.uniform(-40, 5, size)), 1 - np.exp(draw.uniform(-30, 0, size)),
        1 + np.exp(draw.uniform(-30, 0, size)), np.rint(np.exp(draw.uniform(0, 15, size))) * (np.pi / 2),
    ]  # fmt: skip
    return np.concatenate(parts).astype(NARROW[dtype])


def special_values(dtype: str) -> np.ndarray:
    info = np.finfo(NARROW[dtype])
    positive = [0.0, info.smallest_subnormal, info.tiny, np.nextafter(info.tiny, 0), info.eps, 0.5, 1, 1.5, 2, 3, 10,
                88.72283, 88.72284, 89, 103.9, 104.1, 709.782, 709.783, 745.1, 745.2, 2.0**23 + 1, 2.0**24, 2.0**31,
                2.0**53, 2.0**63, 1e22, info.max, INF]  # fmt: skip
    if dtype == "f32":
        positive.append(16367173.0 * 2.0**72)  # the multiple of pi/2 nearest to an f32
    else:
        positive.append(6381956970095103.0 * 2.0**797)  # and to an f64
    values = np.array(positive, NARROW[dtype])
    return np.concatenate([values, -values, [NAN]]).astype(NARROW[dtype])


def worst(kernel, name: str, dtype: str, *arrays: np.ndarray) -> tuple[float, str]:
    got = kernel(*arrays)
    exact = REFERENCE[name](*(a.astype(WIDE[dtype]) for a in arrays))
    found = errors(got, exact, dtype)
    at = int(found.argmax())
    return float(found[at]), f"{name}({[a[at] for a in arrays]}) = {got[at]!r}, exactly {exact[at]!r}: {found[at]} ulp"


def sample_size(name: str, dtype: str) -> int:
    if dtype == "f32":
        return 1 << 22
    return 4_000 if name in ("erf", "erfc") else 1 << 17


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", UNARY)
def test_accuracy(lane_kernel, name: str, dtype: str) -> None:
    kernel, size = lane_kernel(name, dtype), sample_size(name, dtype)
    for x in (special_values(dtype), random_bits(dtype, size, 1), hard(dtype, size // 16, 2)):
        error, where = worst(kernel, name, dtype, x)
        assert error <= ULP[name, dtype], where


@pytest.mark.slow
@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_accuracy_of_error_functions_at_length(lane_kernel, name: str) -> None:
    x = np.concatenate([np.random.default_rng(4).uniform(-7, 28, 80_000), hard("f64", 5_000, 5)])
    error, where = worst(lane_kernel(name, "f64"), name, "f64", x)
    assert error <= ULP[name, "f64"], where


def pairs(name: str, dtype: str, size: int) -> list[tuple[np.ndarray, np.ndarray]]:
    draw, kind = np.random.default_rng(3), NARROW[dtype]
    special = special_values(dtype)
    crossed = tuple(np.ascontiguousarray(a.ravel()) for a in np.meshgrid(special, special))
    ends = 87 if dtype == "f32" else 708
    base = np.exp(draw.uniform(-ends, ends, size)).astype(kind)
    sampled = [crossed, (random_bits(dtype, size, 8), random_bits(dtype, size, 9))]
    sampled.append((draw.uniform(-3, 3, size).astype(kind), draw.uniform(-3, 3, size).astype(kind)))
    if name == "power":
        # Results over the whole range, subnormal ones and overflow included; bases near 1; whole exponents.
        target = draw.uniform(-1.2 * ends, 1.1 * ends, size)
        sampled.append((base, (target / np.log(base.astype(np.float64))).astype(kind)))
        near = (1 + draw.uniform(-1e-3, 1e-3, size)).astype(kind)
        sampled.append((near, (target / np.log(near.astype(np.float64))).astype(kind)))
        whole = np.rint(draw.uniform(-50, 50, size)).astype(kind)
        sampled.append((-np.exp(draw.uniform(-3, 3, size)).astype(kind), whole))
    return sampled


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", BINARY)
def test_accuracy_of_two_arguments(lane_kernel, name: str, dtype: str) -> None:
    kernel = lane_kernel(name, dtype)
    for x, y in pairs(name, dtype, 1 << 18 if dtype == "f32" else 1 << 15):
        error, where = worst(kernel, name, dtype, x, y)
        assert error <= ULP[name, dtype], where


@pytest.mark.slow
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "rsqrt", "logistic", "erf", "expm1", "log1p"])
def test_every_f32(lane_kernel, name: str) -> None:
    kernel, step = lane_kernel(name, "f32"), 1 << 22
    largest = 0.0
    for start in range(0, 1 << 32, step):
        x = np.arange(start, start + step, dtype=np.uint32).view(np.float32)
        got, exact = kernel(x), REFERENCE[name](x.astype(np.float64))
        unit = np.spacing(np.abs(exact.astype(np.float32)))
        same = (got == exact) | (np.isnan(got) & np.isnan(exact))
        rounded = exact.astype(np.float32)
        same |= (got == rounded) & np.isinf(rounded)
        distance = np.where(same, 0, np.abs(got - exact) / unit)
        assert not np.isnan(distance).any()
        largest = max(largest, float(distance.max()))
    print(f"{name}: {largest:.4f} ulp at most over all f32")
    assert largest <= ULP[name, "f32"]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("lanes", [0, 1, 2, 3, 4, 7, 8, 16, 64])
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sin", "cbrt", "power"])
def test_every_width_gives_the_same_bits(lane_kernel, name: str, dtype: str, lanes: int) -> None:
    x = np.concatenate([special_values(dtype), hard(dtype, 64, 6), random_bits(dtype, 512, 7)])
    arrays = (x, x[::-1].copy()) if name in BINARY else (x,)
    expected, got = lane_kernel(name, dtype)(*arrays), lane_kernel(name, dtype, lanes)(*arrays)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(expected[~np.isnan(got)]))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_avx2_gives_the_same_bits(lane_kernel, name: str, dtype: str) -> None:
    x = np.concatenate([special_values(dtype), hard(dtype, 64, 6), random_bits(dtype, 512, 7)])
    arrays = (x, x[::-1].copy()) if name in BINARY else (x,)
    baseline = lane_kernel(name, dtype, 32, CpuTarget.named("x86-64-v3"))
    np.testing.assert_array_equal(baseline(*arrays), lane_kernel(name, dtype)(*arrays))


EXACT = [
    ("exp", [0.0, -0.0, INF, -INF], [1, 1, INF, 0]),
    ("expm1", [0.0, -0.0, INF, -INF], [0.0, -0.0, INF, -1]),
    ("log", [1, 0.0, -0.0, INF, -1, -INF], [0, -INF, -INF, INF, NAN, NAN]),
    ("log1p", [0.0, -0.0, -1, INF, -2], [0.0, -0.0, -INF, INF, NAN]),
    ("log2", [1, 2, 1024, 2.0**-126, 0.0], [0, 1, 10, -126, -INF]),
    ("tanh", [0.0, -0.0, INF, -INF, 50, -50], [0.0, -0.0, 1, -1, 1, -1]),
    ("logistic", [0, INF, -INF, 100], [0.5, 1, 0, 1]),
    ("erf", [0.0, -0.0, INF, -INF, 8], [0.0, -0.0, 1, -1, 1]),
    ("erfc", [0.0, INF, -INF], [1, 0, 2]),
    ("rsqrt", [0.0, -0.0, INF, 4, -1], [INF, -INF, 0, 0.5, NAN]),
    ("sqrt", [0.0, -0.0, INF, 4, -1], [0.0, -0.0, INF, 2, NAN]),
    ("cbrt", [0.0, -0.0, 27, -8, INF, -INF], [0.0, -0.0, 3, -2, INF, -INF]),
    ("sin", [0.0, -0.0, INF, -INF], [0.0, -0.0, NAN, NAN]),
    ("cos", [0.0, -0.0, INF, -INF], [1, 1, NAN, NAN]),
    ("tan", [0.0, -0.0, INF, -INF], [0.0, -0.0, NAN, NAN]),
    ("acosh", [1, 0.5, -5, INF], [0.0, NAN, NAN, INF]),
    ("atanh", [0.0, -0.0, 1, -1, 2], [0.0, -0.0, INF, -INF, NAN]),
]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(("name", "arguments", "expected"), EXACT, ids=[row[0] for row in EXACT])
def test_special_values(lane_kernel, name: str, arguments: list, expected: list, dtype: str) -> None:
    got = lane_kernel(name, dtype)(np.array([*arguments, NAN], NARROW[dtype]))
    wanted = np.array([*expected, NAN], NARROW[dtype])
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(np.signbit(got[wanted == 0]), np.signbit(wanted[wanted == 0]))


def test_the_table_covers_every_function() -> None:
    assert set(ULP) == {(name, dtype) for name in FUNCTIONS for dtype in NARROW}


@pytest.mark.parametrize("kind", ["i32", "vector<2x2xf32>", "vector<[4]xf32>", "f16", "vector<4xbf16>"])
def test_other_types_are_refused(kind: str) -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(f"func.func private @f() -> {kind}\n %x = func.call @f() : () -> {kind}")
        call = module.body.operations[1]
        with ir.InsertionPoint(module.body), pytest.raises(CompilerError, match="vector_math.exp"):
            exp(call.results[0])


def test_operands_of_unequal_types_are_refused() -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            x, y = arith.constant(ir.F32Type.get(), 1.0), arith.constant(ir.F64Type.get(), 1.0)
            with pytest.raises(CompilerError, match="differ"):
                power(x, y)
