# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers of 2 and 4 bits and floats of a byte or less: exhaustively, against ml_dtypes and exact arithmetic.

XLA is no reference for most of these: it computes floats in f16 and rounds twice, and lacks many ops on integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

import shlo_disc
from shlo_disc.shape_dialect.dtypes import BY_MLIR, BY_NUMPY, numpy_dtype
from tests.run.op_check import check, compile_function

INTEGERS = ("int2", "int4", "uint2", "uint4")
FLOATS = (
    "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
)  # fmt: skip
COMPUTED = ("float4_e2m1fn", "float8_e4m3", "float8_e4m3fn", "float8_e5m2fnuz")


def kind(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name))


def every_value(name: str) -> np.ndarray:
    return np.arange(1 << BY_NUMPY[name].bits, dtype=np.uint8).view(kind(name))


def every_pair(name: str, step: int = 1) -> tuple[np.ndarray, np.ndarray]:
    values = every_value(name)[::step]
    first, second = np.meshgrid(values, values)
    return first.ravel(), second.ravel()


def text(body: str, arguments: dict[str, str], results: list[str]) -> str:
    """A program on tensors of one symbolic size."""
    parameters = ", ".join(f"%{name}: tensor<?x{dtype}>" for name, dtype in arguments.items())
    types = ", ".join(f"tensor<?x{dtype}>" for dtype in results)
    values = ", ".join(f"%{i}" for i in range(len(results)))
    return f"func.func @main({parameters}) -> ({types}) {{\n{body}\n  return {values} : {types}\n}}"


# ---- integers --------------------------------------------------------------------------------------------------------


def wrapped(numbers: np.ndarray, name: str) -> np.ndarray:
    bits = BY_NUMPY[name].bits
    low = 0 if name.startswith("u") else -(1 << (bits - 1))
    return (numbers - low) % (1 << bits) + low


def truncated_division(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    quotient = np.abs(a) // np.maximum(np.abs(b), 1)
    return np.where(b == 0, -1, np.where((a < 0) == (b < 0), quotient, -quotient))


def left(a: np.ndarray, b: np.ndarray, bits: int) -> np.ndarray:
    amount = b % (1 << bits)
    return np.where(amount < bits, a << amount, 0)


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_arithmetic(name: str) -> None:
    bits, dtype = BY_NUMPY[name].bits, BY_NUMPY[name].mlir
    ops = ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor", "shift_left",
           "shift_right_logical", "power")  # fmt: skip
    body = "\n".join(f"  %{i} = stablehlo.{op} %x, %y : tensor<?x{dtype}>" for i, op in enumerate(ops))
    executable = shlo_disc.compile(text(body, {"x": dtype, "y": dtype}, [dtype] * len(ops)))
    x, y = every_pair(name)
    a, b = x.astype(np.int64), y.astype(np.int64)
    quotient = truncated_division(a, b)
    powers = np.array([c ** abs(e) for c, e in zip(a.tolist(), b.tolist(), strict=True)])
    powers = np.where((b < 0) & (np.abs(a) != 1), np.where(a == 0, -1, 0), powers)
    logical = np.where(b % (1 << bits) < bits, (a % (1 << bits)) >> (b % (1 << bits)), 0)
    want = [a + b, a - b, a * b, quotient, np.where(b == 0, a, a - quotient * b), np.maximum(a, b), np.minimum(a, b),
            a & b, a | b, a ^ b, left(a, b, bits), logical, powers]  # fmt: skip
    for op, got, exact in zip(ops, executable(x, y), want, strict=True):
        assert np.asarray(got).astype(np.int64).tolist() == wrapped(exact, name).tolist(), op


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_functions_and_conversions(name: str) -> None:
    bits, dtype = BY_NUMPY[name].bits, BY_NUMPY[name].mlir
    ops = [f"stablehlo.{op} %x : tensor<?x{dtype}>" for op in ("negate", "not", "popcnt", "count_leading_zeros")]
    targets = ["i1", "i8", "ui8", "i32", "f16", "f32", "f64", "f8E4M3FN", "complex<f32>", "ui2", "i4"]
    ops += [f"stablehlo.convert %x : (tensor<?x{dtype}>) -> tensor<?x{target}>" for target in targets]
    ops += [f"stablehlo.convert %y : (tensor<?xi32>) -> tensor<?x{dtype}>"]
    body = "\n".join(f"  %{i} = {op}" for i, op in enumerate(ops))
    executable = shlo_disc.compile(text(body, {"x": dtype, "y": "i32"}, [*[dtype] * 4, *targets, dtype]))
    x, y = every_value(name), np.arange(-40, 41, dtype=np.int32)
    negated, inverted, ones, zeros, *converted, narrowed = (np.asarray(r) for r in executable(x, y))
    numbers = x.astype(np.int64)
    codes = numbers % (1 << bits)
    assert negated.astype(int).tolist() == wrapped(-numbers, name).tolist()
    assert inverted.astype(int).tolist() == wrapped(~numbers, name).tolist()
    assert ones.astype(int).tolist() == wrapped(np.array([int(c).bit_count() for c in codes]), name).tolist()
    assert zeros.astype(int).tolist() == wrapped(np.array([bits - int(c).bit_length() for c in codes]), name).tolist()
    assert narrowed.astype(int).tolist() == wrapped(y.astype(np.int64), name).tolist()
    for got in converted:
        small = got.dtype.name in ("uint2", "int4", "uint8")
        want = wrapped(numbers, got.dtype.name) if small else numbers.astype(got.dtype)
        assert got.astype(np.complex64).tolist() == want.astype(np.complex64).tolist(), got.dtype


@pytest.mark.parametrize("name", ["int4", "uint4"])
def test_integers_move_and_reduce(name: str) -> None:
    table = np.array([1, 5, 7, 2, 3], kind(name))

    def function(x: Any) -> Any:
        rows = jnp.asarray(table) * x
        moved = jnp.concatenate([x[::-1], x]), jnp.pad(x, ((1, 1), (0, 2)), constant_values=3), x.at[0].set(x[-1])
        return rows, moved, lax.iota(x.dtype, 7), jnp.sort(x, axis=0), x.max(1), lax.dot(x, x.T)

    def inputs(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        low, high = (0, 15) if dtype == "uint4" else (-8, 7)
        return np.random.default_rng(seed).integers(low, high, shape, endpoint=True).astype(kind(dtype))

    check(function, [("n, 5", name)], [{"n": n} for n in (1, 16, 33)], inputs=inputs)


def test_bitcasts_that_change_the_rank() -> None:
    body = """  %0 = stablehlo.bitcast_convert %x : (tensor<?xui8>) -> tensor<?x2xi4>
  %1 = stablehlo.bitcast_convert %0 : (tensor<?x2xi4>) -> tensor<?xi8>
  %2 = stablehlo.bitcast_convert %y : (tensor<?xf32>) -> tensor<?x4xf8E5M2>
  %3 = stablehlo.bitcast_convert %2 : (tensor<?x4xf8E5M2>) -> tensor<?xf32>
  %4 = stablehlo.bitcast_convert %x : (tensor<?xui8>) -> tensor<?x4xui2>
  %5 = stablehlo.bitcast_convert %x : (tensor<?xui8>) -> tensor<?x8xi1>
  %6 = stablehlo.bitcast_convert %5 : (tensor<?x8xi1>) -> tensor<?xui8>"""
    results = "tensor<?x2xi4>, tensor<?xi8>, tensor<?x4xf8E5M2>, tensor<?xf32>, tensor<?x4xui2>, tensor<?x8xi1>"
    results += ", tensor<?xui8>"
    program = f"func.func @main(%x: tensor<?xui8>, %y: tensor<?xf32>) -> ({results}) {{\n{body}\n"
    executable = shlo_disc.compile(program + f"  return %0, %1, %2, %3, %4, %5, %6 : {results}\n}}")
    x = np.arange(256, dtype=np.uint8)
    y = np.random.default_rng(1).standard_normal(33).astype(np.float32)
    nibbles, back, floats, same, pairs, booleans, bytes_ = (np.asarray(r) for r in executable(x, y))
    assert (nibbles.astype(np.int8) % 16 == np.stack([x % 16, x // 16], 1).view(np.int8)).all()
    assert back.tolist() == x.view(np.int8).tolist()
    assert floats.tobytes() == y.tobytes()
    assert same.tolist() == y.tolist()
    assert booleans.tolist() == (np.unpackbits(x[:, None], axis=1, bitorder="little") != 0).tolist()
    assert bytes_.tolist() == x.tolist()
    assert pairs.astype(int).tolist() == np.stack([x >> s & 3 for s in (0, 2, 4, 6)], 1).tolist()


# ---- floats ----------------------------------------------------------------------------------------------------------


def test_bitcasts_of_every_code() -> None:
    pairs = (("f8E4M3FN", "i8"), ("f8E5M2", "f8E4M3"), ("f4E2M1FN", "ui4"))
    arguments = {f"a{i}": source for i, (source, _) in enumerate(pairs)}
    lines = [f"  %{i} = stablehlo.bitcast_convert %a{i} : (tensor<?x{a}>) -> tensor<?x{b}>"
             for i, (a, b) in enumerate(pairs)]  # fmt: skip
    executable = shlo_disc.compile(text("\n".join(lines), arguments, [b for _, b in pairs]))
    codes = [every_value("float8_e4m3fn"), every_value("float8_e5m2"), every_value("float4_e2m1fn")]
    for code, result in zip(codes, executable(*codes), strict=True):
        assert np.asarray(result).tobytes() == code.tobytes()


def nearest(values: np.ndarray, name: str) -> np.ndarray:
    """`values` rounded once: ml_dtypes' conversion of an f32 that was rounded to odd."""
    single = values.astype(np.float32)
    with np.errstate(all="ignore"):
        back = single.astype(np.float64)
        toward_zero = np.where(np.abs(back) > np.abs(values), np.nextafter(single, np.float32(0)), single)
        inexact = np.isfinite(values) & (toward_zero.astype(np.float64) != values)
        odd = np.where(inexact, toward_zero.view(np.uint32) | 1, toward_zero.view(np.uint32)).view(np.float32)
        return odd.astype(kind(name))


def boundaries(name: str) -> np.ndarray:
    """Every finite value, every tie between two, their neighbours in f64, what overflows, and special values."""
    values = every_value(name).astype(np.float64)
    finite = np.unique(values[np.isfinite(values)])
    points = np.concatenate([finite, (finite[1:] + finite[:-1]) / 2, finite * 1.02, [finite[-1] * 1.5, 1e30, 1e-30]])
    points = np.concatenate([points, -points, np.nextafter(points, np.inf), np.nextafter(points, -np.inf)])
    return np.concatenate([points, [0.0, -0.0, np.inf, -np.inf, np.nan]])


@pytest.mark.parametrize("name", FLOATS)
def test_float_conversions(name: str) -> None:
    dtype = BY_NUMPY[name].mlir
    lines = [f"  %{i} = stablehlo.convert %{a} : (tensor<?x{s}>) -> tensor<?x{t}>"
             for i, (a, s, t) in enumerate([("x", dtype, "f32"), ("y", "f32", dtype), ("z", "f64", dtype),
                                           ("x", dtype, "f64"), ("x", dtype, "bf16")])]  # fmt: skip
    arguments = {"x": dtype, "y": "f32", "z": "f64"}
    executable = shlo_disc.compile(text("\n".join(lines), arguments, ["f32", dtype, dtype, "f64", "bf16"]))
    codes, doubles = every_value(name), boundaries(name)
    if name == "float8_e8m0fnu":
        doubles = doubles[np.abs(doubles) >= 2.0**-126]  # ml_dtypes does not round what is subnormal in f32
    singles = doubles.astype(np.float32)
    singles = np.concatenate([np.nextafter(singles, np.float32(np.inf)), singles])
    wide, narrow, from_double, double, brain = (np.asarray(r) for r in executable(codes, singles, doubles))
    exact = codes.astype(np.float32)
    assert np.array_equal(wide.view(np.uint32)[~np.isnan(exact)], exact.view(np.uint32)[~np.isnan(exact)])
    assert np.isnan(wide[np.isnan(exact)]).all()
    assert np.array_equal(double, exact.astype(np.float64), equal_nan=True)
    assert np.array_equal(brain.astype(np.float32), exact.astype(brain.dtype).astype(np.float32), equal_nan=True)
    assert narrow.tobytes() == singles.astype(kind(name)).tobytes()
    assert from_double.tobytes() == nearest(doubles, name).tobytes()


def test_subnormal_ties_of_e8m0() -> None:
    program = text("  %0 = stablehlo.convert %x : (tensor<?xf32>) -> tensor<?xf8E8M0FNU>", {"x": "f32"}, ["f8E8M0FNU"])
    bits = np.array([1, 0x3FFFFF, 0x400000, 0x400001, 0x5FFFFF, 0x600000, 0x7FFFFF, 0x800000, 0x80000001], np.uint32)
    codes = np.asarray(shlo_disc.compile(program)(bits.view(np.float32))).view(np.uint8)
    assert codes.tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 255]


ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "maximum": np.maximum, "minimum": np.minimum, "remainder": np.fmod,
}  # fmt: skip


@pytest.mark.parametrize("name", COMPUTED)
def test_float_arithmetic_rounds_once(name: str) -> None:
    dtype = BY_NUMPY[name].mlir
    lines = [f"  %{i} = stablehlo.{op} %x, %y : tensor<?x{dtype}>" for i, op in enumerate(ARITHMETIC)]
    executable = shlo_disc.compile(text("\n".join(lines), {"x": dtype, "y": dtype}, [dtype] * len(lines)))
    x, y = every_pair(name, 5)
    for (op, function), result in zip(ARITHMETIC.items(), executable(x, y), strict=True):
        with np.errstate(all="ignore"):
            want = nearest(function(x.astype(np.float64), y.astype(np.float64)), name).astype(np.float32)
        assert np.array_equal(np.asarray(result).astype(np.float32), want, equal_nan=True), op


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exponential": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": np.cbrt,
    "sine": np.sin, "cosine": np.cos, "tan": np.tan, "tanh": np.tanh, "log_plus_one": np.log1p,
    "exponential_minus_one": np.expm1, "logistic": lambda x: 1 / (1 + np.exp(-x)), "floor": np.floor, "ceil": np.ceil,
    "round_nearest_even": np.rint, "sign": np.sign, "abs": np.abs, "negate": np.negative,
}  # fmt: skip


@pytest.mark.parametrize("name", COMPUTED)
def test_float_functions_are_the_nearest_values(name: str) -> None:
    dtype = BY_NUMPY[name].mlir
    lines = [f"  %{i} = stablehlo.{op} %x : tensor<?x{dtype}>" for i, op in enumerate(FUNCTIONS)]
    executable = shlo_disc.compile(text("\n".join(lines), {"x": dtype}, [dtype] * len(lines)))
    x = every_value(name)
    for (op, function), result in zip(FUNCTIONS.items(), executable(x), strict=True):
        with np.errstate(all="ignore"):
            want = nearest(function(x.astype(np.float64)), name).astype(np.float32)
        assert np.array_equal(np.asarray(result).astype(np.float32), want, equal_nan=True), op


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_floats_move_reduce_and_multiply(name: str) -> None:
    table = np.array([0.5, 1, 1.5, 2, -3], kind(name))

    def function(x: Any) -> Any:
        moved = jnp.concatenate([x[::-1], x]), jnp.pad(x, ((1, 1), (0, 2)), constant_values=2), x.at[0].set(x[-1])
        wide = lax.dot(x, x.T, preferred_element_type=jnp.float32)
        return jnp.asarray(table) * x, moved, jnp.sort(x, axis=0), x.max(1), wide, x < x[::-1], jnp.isfinite(x)

    def inputs(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        return np.random.default_rng(seed).integers(-4, 5, shape).astype(kind(dtype))

    check(function, [("n, 5", name)], [{"n": n} for n in (1, 16, 33)], inputs=inputs)


@pytest.mark.parametrize("name", ["int4", "uint2", "float8_e4m3fn", "float4_e2m1fn"])
def test_every_kind_of_argument(name: str) -> None:
    executable = compile_function(lambda x, s: (x, s), [("n, 2", name), ("", name)])
    x = np.array([[1, 2], [3, 0], [1, 1]], kind(name))
    for argument in (x, np.asfortranarray(x), np.repeat(x, 2, 1)[:, ::2], jnp.asarray(x)):
        for scalar in (2, kind(name).type(2), jnp.asarray(2, kind(name))):
            result, number = (np.asarray(r) for r in executable(argument, scalar))
            assert result.dtype == number.dtype == kind(name)
            assert result.tolist() == x.tolist() and float(number) == 2
    if name.startswith("float"):
        assert float(np.asarray(executable(x, 1.5)[1])) == 1.5
        return
    too_large = 8 if name == "int4" else 4
    for number, problem in ((1.5, "a Python float"), (too_large, "which it cannot hold"), (True, "a Python bool")):
        with pytest.raises(shlo_disc.errors.ArgumentTypeError, match=problem):
            executable(x, number)


def test_batch_norm_of_small_floats() -> None:
    t = "f8E4M3FN"
    executable = shlo_disc.compile(f"""
    func.func @main(%x: tensor<?x3x{t}>, %s: tensor<3x{t}>) -> tensor<?x3x{t}> {{
      %0 = "stablehlo.batch_norm_inference"(%x, %s, %s, %s, %s) <{{epsilon = 0.0 : f32, feature_index = 1 : i64}}>
        : (tensor<?x3x{t}>, tensor<3x{t}>, tensor<3x{t}>, tensor<3x{t}>, tensor<3x{t}>) -> tensor<?x3x{t}>
      return %0 : tensor<?x3x{t}>
    }}""")
    x, s = np.array([[1, 2, 3], [4, 5, 6]], kind("float8_e4m3fn")), np.array([1, 4, 1], kind("float8_e4m3fn"))
    assert np.asarray(executable(x, s)).tolist() == [[1, 0, 3], [4, 6, 6]]


@pytest.mark.parametrize(
    ("first", "second", "result"),
    [("f8E4M3FN", "f8E5M2", "f32"), ("f8E5M2", "f8E4M3FN", "f16"), ("i4", "ui8", "i32"), ("bf16", "f32", "f32"),
     ("complex<f32>", "complex<f64>", "complex<f64>")],
)  # fmt: skip
def test_products_of_two_element_types(first: str, second: str, result: str) -> None:
    executable = shlo_disc.compile(f"""
    func.func @main(%x: tensor<?x3x{first}>, %y: tensor<3x?x{second}>) -> tensor<?x?x{result}> {{
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
        : (tensor<?x3x{first}>, tensor<3x?x{second}>) -> tensor<?x?x{result}>
      return %0 : tensor<?x?x{result}>
    }}""")
    x = np.arange(-8, 7).reshape(5, 3).astype(numpy_dtype(BY_MLIR[first]))
    y = np.arange(21).reshape(3, 7).astype(numpy_dtype(BY_MLIR[second]))
    wide = np.complex128 if "complex" in result else np.float64
    got = np.asarray(executable(x, y))
    assert got.dtype == numpy_dtype(BY_MLIR[result])
    assert got.astype(wide).tolist() == (x.astype(wide) @ y.astype(wide)).tolist()
