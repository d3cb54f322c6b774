# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The interpreter's elementwise kernels against XLA.

A program has all ops that take a dtype, because a program for each op would take minutes to compile.
XLA's CPU flushes subnormal numbers of all types but f16 to 0, so a difference of the least normal number is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.core import Primitive
from jax.extend.mlir import serialize_portable_artifact
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir

from tests.pjrt.interpreter import ANY_WORK, by_xla, interpret, interpreted
from tests.pjrt.streams import VERSION

SIGNED, UNSIGNED = ["int8", "int16", "int32", "int64"], ["uint8", "uint16", "uint32", "uint64"]
FLOATS, COMPLEX = ["float16", "bfloat16", "float32", "float64"], ["complex64", "complex128"]
DTYPES = ["bool", *SIGNED, *UNSIGNED, *FLOATS, *COMPLEX]
SHAPES = [(), (1,), (7,), (3, 5), (0, 4)]

# Units in the last place: of a real number; of the absolute value of a complex one, which XLA computes with less care.
ULPS = {"float16": 1, "bfloat16": 1, "float32": 3, "float64": 6, "complex64": 64, "complex128": 64}

Function = Callable[..., Any]
NUMBERS, INTEGERS, ANY = "iufc", "iu", "biufc"

# Functions of one array and of two, and the kinds of dtypes that they take.
EXACT: dict[str, tuple[str, Function]] = {
    "abs": ("if", lambda x, y: lax.abs(x)),
    "add": (NUMBERS, lax.add),
    "and": ("biu", lax.bitwise_and),
    "ceil": ("f", lambda x, y: lax.ceil(x)),
    "clamp": ("biuf", lambda x, y: lax.clamp(y, x, y[::-1])),
    "clamp by numbers": ("biuf", lambda x, y: lax.clamp(y[3], x, y[1])),
    "complex": ("f", lambda x, y: lax.complex(x, y) if x.dtype.itemsize > 2 else x),
    "count_leading_zeros": (INTEGERS, lambda x, y: lax.clz(x)),
    "divide": ("iuf", lax.div),
    "equal": (ANY, lax.eq),
    "floor": ("f", lambda x, y: lax.floor(x)),
    "greater": ("biuf", lax.gt),
    "greater or equal": ("biuf", lax.ge),
    "imag": ("c", lambda x, y: lax.imag(x)),
    "is_finite": ("f", lambda x, y: lax.is_finite(x)),
    "less": ("biuf", lax.lt),
    "less or equal": ("biuf", lax.le),
    "maximum": ("biuf", lax.max),
    "minimum": ("biuf", lax.min),
    "multiply": ("iuf", lax.mul),
    "negate": (NUMBERS, lambda x, y: lax.neg(x)),
    "not": ("biu", lambda x, y: lax.bitwise_not(x)),
    "or": ("biu", lax.bitwise_or),
    "popcnt": (INTEGERS, lambda x, y: lax.population_count(x)),
    "real": ("c", lambda x, y: lax.real(x)),
    "remainder": ("iuf", lax.rem),
    "round_nearest_afz": ("f", lambda x, y: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO)),
    "round_nearest_even": ("f", lambda x, y: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)),
    "select": (ANY, lambda x, y: lax.select(x == y, x, y)),
    "select by one": (ANY, lambda x, y: lax.select(x[0] == y[1], x, y)),
    "shift_left": (INTEGERS, lax.shift_left),
    "shift_right_arithmetic": (INTEGERS, lax.shift_right_arithmetic),
    "shift_right_logical": (INTEGERS, lax.shift_right_logical),
    "sign": ("if", lambda x, y: lax.sign(x)),
    "subtract": (NUMBERS, lax.sub),
    "unequal": (ANY, lax.ne),
    "xor": ("biu", lax.bitwise_xor),
}


def unary(op: str) -> Function:
    """An op of StableHLO as it is: JAX writes several ones for some functions of complex numbers."""
    primitive = Primitive(op)
    primitive.def_abstract_eval(lambda x: x)
    mlir.register_lowering(primitive, lambda _, x: [getattr(stablehlo, op)(x)])
    return lambda x, y=None: primitive.bind(x)


ROUNDED: dict[str, tuple[str, Function]] = {
    "abs": ("c", lambda x, y: lax.abs(x)),
    "atan2": ("f", lax.atan2),
    "cbrt": ("f", unary("cbrt")),
    "cosine": ("fc", unary("cosine")),
    "divide": ("c", lax.div),
    "exponential": ("fc", unary("exponential")),
    "exponential_minus_one": ("fc", unary("exponential_minus_one")),
    "log": ("fc", unary("log")),
    "log_plus_one": ("fc", unary("log_plus_one")),
    "logistic": ("fc", unary("logistic")),
    "multiply": ("c", lax.mul),
    "power": ("fc", lax.pow),
    "rsqrt": ("fc", unary("rsqrt")),
    "sign": ("c", unary("sign")),
    "sine": ("fc", unary("sine")),
    "sqrt": ("fc", unary("sqrt")),
    "tan": ("fc", unary("tan")),
    "tanh": ("fc", unary("tanh")),
}


@pytest.fixture(autouse=True)
def wide() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def kind_of(dtype: str) -> str:
    return "f" if dtype in FLOATS else np.dtype(dtype).kind


def special(dtype: str) -> np.ndarray:
    """Values where functions are likely to differ, and some at random."""
    rng, kind = np.random.default_rng(0), kind_of(dtype)
    if kind == "b":
        return np.array([False, True, True, False])
    if kind in INTEGERS:
        limits = np.iinfo(dtype)
        ends = [limits.min, limits.min + 1, limits.max // 2, limits.max - 1, limits.max]
        small = [0, 1, 2, 3, 7, 8, 31, 33, 64, 100, *([-1, -2, -3, -8, -100] if kind == "i" else [])]
        return np.array([*ends, *small, *rng.integers(limits.min, limits.max, 9, dtype)], dtype)
    if kind == "c":
        parts = [0.0, -0.0, 1, -2, 0.5, np.inf, -np.inf, np.nan]
        normal = rng.normal(size=(8, 2)) @ [1, 1j]
        return np.array([*(complex(a, b) for a in parts for b in parts), *normal], dtype)
    real = jnp.finfo(dtype)
    bounds = [*map(float, (real.tiny, real.eps, real.max, -real.max)), np.inf, -np.inf, np.nan, 0, -0.0]
    common = [1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, -3, 7.25, 1e-3, -1e-3, 0.999, -0.999, 20, -20]
    return np.array([*bounds, *common, *rng.normal(size=9)]).astype(jnp.dtype(dtype))


def pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of special values."""
    values = special(dtype)
    return np.repeat(values, len(values)), np.tile(values, len(values))


def ops(table: Mapping[str, tuple[str, Function]], dtype: str) -> dict[str, Function]:
    return {name: function for name, (kinds, function) in table.items() if kind_of(dtype) in kinds}


def expect(name: str, found: np.ndarray, expected: np.ndarray, ulps: float = 0) -> None:
    """The same NaNs, the same signs of zeros of real numbers, and values that differ by no more."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype), name
    if kind_of(found.dtype.name) not in "fc":
        np.testing.assert_array_equal(found, expected, name)
        return
    limits, wide = jnp.finfo(found.dtype), np.complex128 if found.dtype.kind == "c" else np.float64
    one, other = np.atleast_1d(found.astype(wide)), np.atleast_1d(expected.astype(wide))
    if wide is np.float64:
        zero = (one == 0) & (other == 0)
        np.testing.assert_array_equal(np.signbit(one)[zero], np.signbit(other)[zero], name)
    finite = np.isfinite(other)
    for part in (np.real, np.imag):
        np.testing.assert_array_equal(part(one)[~finite], part(other)[~finite], name)
    subnormal = 0 if found.dtype == np.float16 else float(limits.tiny)
    differ = finite & (one != other)
    one, other = one[differ], other[differ]
    wrong = ~(abs(one - other) <= ulps * float(limits.eps) * abs(other) + subnormal)
    assert not wrong.any(), f"{name}: {one[wrong][:5]} should be {other[wrong][:5]}"


def expect_all(named: Mapping[str, Function], *args: Any, ulps: float = 0) -> None:
    """Functions of the same arrays, as one program."""

    def run(*traced: Any) -> list[Any]:
        return [function(*traced) for function in named.values()]

    for name, found, expected in zip(named, interpreted(run, *args), by_xla(run, *args), strict=True):
        expect(name, found, expected, ulps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_exact_functions(dtype: str) -> None:
    expect_all(ops(EXACT, dtype), *pairs(dtype))


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_rounded_functions(dtype: str) -> None:
    expect_all(ops(ROUNDED, dtype), *pairs(dtype), ulps=ULPS[dtype])


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape: tuple[int, ...]) -> None:
    """An element's place changes nothing: the results are those of an array with one axis."""
    count = int(np.prod(shape))
    for dtype in ("float32", "int16", "complex64"):
        x, y = (array[7 : 7 + count].reshape(shape) for array in pairs(dtype))
        named = {n: f for n, f in ops({**EXACT, **ROUNDED}, dtype).items() if not n.startswith(("clamp", "select"))}
        named["select"] = lambda x, y: lax.select(x == y, x, y)

        def run(*traced: Any, named: Mapping[str, Function] = named) -> list[Any]:
            return [function(*traced) for function in named.values()]

        shaped, flat = interpreted(run, x, y), interpreted(run, x.ravel(), y.ravel())
        for name, one, other in zip(named, shaped, flat, strict=True):
            np.testing.assert_array_equal(one, other.reshape(shape), name)


@pytest.mark.parametrize("dtype", DTYPES)
def test_conversions(dtype: str) -> None:
    kind, values = kind_of(dtype), special(dtype)
    if kind in "fc":
        far = [127.9, 128, -128.9, -129, 255.5, 256, 32768, 65519, 3e4, -3e4]
        values = np.concatenate([values, np.array(far).astype(values.dtype)])
    targets = COMPLEX if kind == "c" else DTYPES
    named: dict[str, Function] = {to: lambda x, to=to: lax.convert_element_type(x, to) for to in targets}
    expect_all(named, values)


def test_f64_rounds_once() -> None:
    """XLA rounds to f32 first."""
    values = np.array([1 + 2**-8 + 2**-40, 1 + 3 * 2**-8 - 2**-40, 1 + 2**-11 + 2**-40, 1 + 2**-11])
    for dtype in ("bfloat16", "float16"):
        (found,) = interpreted(lambda x, to=dtype: lax.convert_element_type(x, to), values)
        unit = float(jnp.finfo(dtype).eps)
        np.testing.assert_array_equal(found.astype(float), np.round(values / unit) * unit)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_all_bits_of_f16(dtype: str) -> None:
    """All numbers of f16 widen, and they and those halfway between them, or just beside these, are rounded."""
    numbers = np.arange(65536, dtype=np.uint16).view(np.float16)
    if dtype == "float16":
        expect_all({"widened": lambda x: x.astype(jnp.float32), "twice": lambda x: x + x}, numbers)
        return
    bits = numbers.astype(np.float32).view(np.uint32)
    for rest in (0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF):
        expect_all({"rounded": lambda x: x.astype(jnp.float16)}, (bits | np.uint32(rest)).view(np.float32))


@pytest.mark.parametrize("dtype", [*SIGNED[:1], *SIGNED[2:], "uint16", *FLOATS])
def test_bitcasts(dtype: str) -> None:
    size = np.dtype(jnp.dtype(dtype)).itemsize
    plain = np.random.default_rng(0).integers(1, 100, (3, 8 // size, size), np.uint8).view(jnp.dtype(dtype))[..., 0]
    named: dict[str, Function] = {}
    for to in (*SIGNED, *UNSIGNED, *FLOATS):
        ratio = np.dtype(jnp.dtype(to)).itemsize // size
        named[to] = lambda x, to=to, ratio=ratio: lax.bitcast_convert_type(x[:, :ratio] if ratio > 1 else x, to)
    expect_all(named, plain)


@pytest.mark.parametrize("dtype", FLOATS)
def test_reduced_precision(dtype: str) -> None:
    values = np.concatenate([special(dtype), np.exp(np.random.default_rng(0).normal(size=99) * 3).astype(dtype)])
    formats = [(5, 10), (8, 7), (3, 2), (2, 0), (11, 52), (8, 23), (4, 3), (1, 3), (6, 0), (5, 2)]
    named: dict[str, Function] = {str(f): lambda x, f=f: lax.reduce_precision(x, *f) for f in formats}
    expect_all(named, values)


@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_iota(dtype: str) -> None:
    shapes = [((5,), 0), ((3, 5), 0), ((3, 5), 1), ((0, 4), 1), ((2, 3, 4), 1)]
    expect_all({str(s): lambda x, s=s: lax.broadcasted_iota(x.dtype, *s) + x for s in shapes}, jnp.zeros((), dtype))


def by_text(op: str, element: str, *args: np.ndarray, attributes: str = "", result: str = "") -> np.ndarray:
    """An op that JAX does not write."""
    shape = "x".join(map(str, args[0].shape))
    operand, to = f"tensor<{shape}x{element}>", f"tensor<{shape}x{result or element}>"
    names = [f"%{i}" for i in range(len(args))]
    text = f"""
      func.func public @main({", ".join(f"{n}: {operand}" for n in names)}) -> {to} {{
        %r = "stablehlo.{op}"({", ".join(names)}) {attributes} : ({", ".join([operand] * len(args))}) -> {to}
        return %r : {to}
      }}"""
    return interpret(bytes(serialize_portable_artifact(text, VERSION)), list(args), ANY_WORK)[0]


@pytest.mark.parametrize(("dtype", "element"), [("int8", "i8"), ("int32", "i32"), ("int64", "i64"), ("uint16", "ui16")])
def test_integer_powers(dtype: str, element: str) -> None:
    """They wrap; those of a negative exponent are fractions towards 0."""
    x, y = pairs(dtype)
    bits = np.iinfo(dtype).bits
    expected = []
    for base, exponent in zip(x.tolist(), y.tolist(), strict=True):
        one = 1 if exponent % 2 == 0 else base
        fraction = one if abs(base) == 1 else 0
        expected.append(fraction if exponent < 0 else pow(base, exponent, 1 << bits))
    wrapped = np.array([value % (1 << bits) for value in expected], f"uint{bits}").view(dtype)
    np.testing.assert_array_equal(by_text("power", element, x, y), wrapped)


@pytest.mark.parametrize(("dtype", "element"), [("float16", "f16"), ("float32", "f32"), ("float64", "f64")])
def test_total_order(dtype: str, element: str) -> None:
    """-NaN < -inf < -1 < -0 < 0 < 1 < inf < NaN, whatever the sign of NumPy's NaN."""
    ordered = np.array([-abs(np.nan), -np.inf, -1, -0.0, 0, 1, np.inf, np.nan], dtype)
    ordered = np.copysign(ordered, np.array([-1, -1, -1, -1, 1, 1, 1, 1], dtype))
    x, y = np.repeat(ordered, 8), np.tile(ordered, 8)
    i, j = np.repeat(range(8), 8), np.tile(range(8), 8)
    comparisons = {"EQ": i == j, "NE": i != j, "GE": i >= j, "GT": i > j, "LE": i <= j, "LT": i < j}
    for direction, expected in comparisons.items():
        attributes = (
            f"{{comparison_direction = #stablehlo<comparison_direction {direction}>, "
            "compare_type = #stablehlo<comparison_type TOTALORDER>}"
        )
        found = by_text("compare", element, x, y, attributes=attributes, result="i1")
        np.testing.assert_array_equal(found, expected, direction)


def test_types_that_ops_do_not_take() -> None:
    """Such programs are compiled."""
    x = special("complex64")
    with pytest.raises(ValueError, match="type that it does not take"):
        interpreted(lax.atan2, x, x)
