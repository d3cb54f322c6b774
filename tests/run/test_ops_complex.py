# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex numbers: functions against long doubles and XLA's special values, movement and reductions against XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shlo_disc
from tests.run.op_check import assert_same, check, compile_function, random_array, run_xla

DTYPES = ("complex64", "complex128")
SIZES = [{"n": n} for n in (1, 16, 17, 33)]
LONG = np.clongdouble

FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], float]] = {
    "abs": (jnp.abs, np.abs, 2),
    "sign": (jnp.sign, lambda z: z / np.abs(z), 2),
    "exp": (jnp.exp, np.exp, 2),
    "expm1": (jnp.expm1, np.expm1, 3),
    "log": (jnp.log, np.log, 2),
    "log1p": (jnp.log1p, np.log1p, 10),
    "logistic": (lax.logistic, lambda z: 1 / (1 + np.exp(-z)), 24),
    "sqrt": (jnp.sqrt, np.sqrt, 2),
    "rsqrt": (lax.rsqrt, lambda z: 1 / np.sqrt(z), 3),
    "sin": (jnp.sin, np.sin, 2),
    "cos": (jnp.cos, np.cos, 2),
    "tan": (jnp.tan, np.tan, 3),
    "tanh": (jnp.tanh, np.tanh, 3),
    "multiply": (jnp.multiply, np.multiply, 2),
    "divide": (jnp.divide, np.divide, 2),
    "power": (jnp.power, np.power, 200),
}
"""JAX's function, NumPy's, and the error in units of the last place of the result's magnitude that is allowed."""


def _spread(dtype: str, count: int) -> np.ndarray:
    """Numbers of many magnitudes, on the unit circle, near 0 and near the real axis."""
    rng = np.random.default_rng(7)
    parts = rng.standard_normal((2, count)) * np.exp(rng.standard_normal((2, count)))
    numbers = parts[0] + 1j * parts[1]
    numbers[: count // 8] /= np.abs(numbers[: count // 8])
    numbers[count // 8 : count // 4] *= 1e-3
    numbers[count // 4 : count // 3].imag *= 1e-4
    return numbers.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_accurate(name: str, dtype: str) -> None:
    function, exact, ulps = FUNCTIONS[name]
    first = _spread(dtype, 3001)
    arrays = [first, first[::-1].copy()][: 2 if name in ("multiply", "divide", "power") else 1]
    got = np.asarray(compile_function(function, [("n", dtype)] * len(arrays))(*arrays))
    with np.errstate(all="ignore"):
        want = exact(*(a.astype(LONG) for a in arrays))
    info = np.finfo(first.real.dtype)
    measured = (np.abs(want) > 4 * info.tiny) & (np.abs(want) < info.max / 2)
    error = np.abs(got - want)[measured] / np.abs(want)[measured] / info.eps
    assert measured.sum() > 2900
    assert got.dtype == run_xla(function, arrays).dtype
    assert error.max() <= ulps


def _special(dtype: str) -> np.ndarray:
    parts = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-30, 3e30, 88, -88, 0.5], dtype[:-2] and "f8")
    numbers = np.empty((len(parts), len(parts)), dtype)
    numbers.real, numbers.imag = np.meshgrid(parts, parts)
    return numbers.ravel()


@pytest.mark.parametrize("name", ["abs", "sign", "exp", "log", "log1p", "logistic", "sqrt", "sin", "cos"])
def test_special_values_are_those_of_xla(name: str) -> None:
    function, numbers = FUNCTIONS[name][0], _special("complex64")
    got = np.asarray(compile_function(function, [("n", "complex64")])(numbers))
    want = np.asarray(run_xla(function, [numbers]))
    for a, b in ((got.real, want.real), (got.imag, want.imag)):
        with np.errstate(invalid="ignore"):
            close = np.abs(a - b) <= 20 * np.finfo(np.float32).eps * np.abs(b) + np.finfo(np.float32).tiny
        assert (close | (a == b) | (np.isnan(a) & np.isnan(b))).all()


def test_no_overflow_on_the_way() -> None:
    large = np.array([3e38 + 3e38j, 3e38 - 1j, -2e38 + 1e-30j, 1e-38 + 1e-38j, 2e38j], np.complex64)

    def function(z: Any) -> Any:
        return jnp.sqrt(z), jnp.log(z), z / z, jnp.sign(z[3:4]), jnp.tanh(z)

    root, logarithm, ratio, sign, limit = map(np.asarray, compile_function(function, [("n", "complex64")])(large))
    exact = large.astype(np.complex128)
    assert_same(root, np.sqrt(exact).astype(np.complex64), ulps=3)
    assert_same(logarithm, np.log(exact).astype(np.complex64), ulps=3)
    assert_same(ratio, np.ones(5, np.complex64), ulps=2)
    assert_same(sign, np.sign(exact[3:4]).astype(np.complex64), ulps=2)
    assert np.abs(limit.real[[0, 1, 2]]).tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_arithmetic_parts_and_comparisons(dtype: str) -> None:
    def function(x: Any, y: Any) -> Any:
        z = x * y - 2j * x + jnp.conj(y) / (x + 3)
        equal = (x == y, x != y, jnp.where(jnp.real(x) > 0, x, -y))
        return z, jnp.real(x) - jnp.imag(x), lax.complex(jnp.imag(y), jnp.real(x)), equal, jnp.abs(z)

    check(function, [("n, 3", dtype), ("n, 3", dtype)], SIZES, ulps=8)


def test_movement() -> None:
    def function(x: Any, i: Any) -> Any:
        y = jnp.concatenate([x.T, x.T[:, :1] * 1j], axis=1)
        windows = lax.dynamic_slice(y, (np.int32(0), i[0] % 3), (3, 1))
        padded = jnp.pad(x, ((1, 2), (0, 1)), constant_values=1 + 2j)
        taken = jnp.take(x, i % x.shape[0], axis=0)
        updated = x.at[i % x.shape[0]].add(1 - 1j)
        return y[::-1], windows, padded, taken, updated, jnp.broadcast_to(x[:, None], (x.shape[0], 2, 3)).reshape(-1)

    def inputs(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        return random_array(shape, dtype, seed) if dtype.startswith("complex") else np.abs(random_array(shape, dtype))

    check(function, [("n, 3", "complex64"), ("4", "int32")], SIZES, inputs=inputs, ulps=1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_and_dots(dtype: str) -> None:
    def function(x: Any, y: Any) -> Any:
        batched = jnp.einsum("nk,kni->in", x, y.reshape(2, 2, -1).reshape(4, -1)[..., None])
        return x.sum(), x.sum(0), jnp.prod(x / 2, axis=1), x.mean(1), x @ y, jnp.vdot(x, x), batched, jnp.cumsum(x, 0)

    check(function, [("n, 4", dtype), ("4, n", dtype)], SIZES, ulps=16, scaled=True)


@pytest.mark.parametrize("inner", ["3", "n"])
@pytest.mark.parametrize(
    ("operands", "result"),
    [("complex64", "complex128"), ("float32", "complex64"), ("float32", "complex128")],
)
def test_dots_of_another_result_type(operands: str, result: str, inner: str) -> None:
    numbers = (((1,), (0,)), ((), ()))

    def function(x: Any, y: Any) -> Any:
        return lax.dot_general(x, y, numbers, preferred_element_type=result)

    check(function, [(f"4, {inner}", operands), (f"{inner}, n", operands)], SIZES, ulps=16, scaled=True)


def test_conversions_and_constants() -> None:
    table = (np.arange(300) - 1j * np.arange(300)).astype(np.complex128)
    few = np.array([1.5 + 2j, np.nan - 1j, complex(0, np.inf)], np.complex64)

    def function(x: Any, k: Any) -> Any:
        wide = lax.convert_element_type(x, np.complex128)
        reals = lax.convert_element_type(k, np.complex64), lax.convert_element_type(x, np.complex64)
        constants = (
            jnp.asarray(table)[:, None] * wide[0],
            jnp.asarray(few),
            jnp.zeros_like(x),
            1j * lax.iota(x.dtype, 5),
        )
        return wide, reals, constants, jnp.real(k), jnp.imag(x.real)

    check(function, [("n", "complex64"), ("n", "int32")], SIZES, ulps=2)


def test_reduce_with_a_complex_body() -> None:
    text = """
    func.func @main(%x: tensor<?x5xcomplex<f32>>, %i: tensor<complex<f32>>) -> tensor<?xcomplex<f32>> {
      %0 = stablehlo.reduce(%x init: %i) across dimensions = [1]
        : (tensor<?x5xcomplex<f32>>, tensor<complex<f32>>) -> tensor<?xcomplex<f32>>
        reducer(%a: tensor<complex<f32>>, %b: tensor<complex<f32>>) {
          %m = stablehlo.multiply %a, %b : tensor<complex<f32>>
          %c = stablehlo.constant dense<(0.5, -0.25)> : tensor<complex<f32>>
          %s = stablehlo.add %m, %c : tensor<complex<f32>>
          stablehlo.return %s : tensor<complex<f32>>
        }
      return %0 : tensor<?xcomplex<f32>>
    }"""
    executable = shlo_disc.compile(text)
    for n in (1, 7, 33):
        x, start = random_array((n, 5), "complex64", n), np.complex64(1 + 1j)
        want = np.full(n, start)
        for column in x.T:
            want = want * column + np.complex64(0.5 - 0.25j)
        assert_same(executable(x, start), want, ulps=8)


def test_total_order_of_clamp_and_maximum() -> None:
    text = """
    func.func @main(%x: tensor<?xcomplex<f64>>, %y: tensor<?xcomplex<f64>>, %l: tensor<complex<f64>>)
        -> (tensor<?xcomplex<f64>>, tensor<?xcomplex<f64>>, tensor<?xi1>) {
      %0 = stablehlo.maximum %x, %y : tensor<?xcomplex<f64>>
      %1 = stablehlo.clamp %l, %x, %l
        : (tensor<complex<f64>>, tensor<?xcomplex<f64>>, tensor<complex<f64>>) -> tensor<?xcomplex<f64>>
      %2 = stablehlo.compare LT, %x, %y, FLOAT
        : (tensor<?xcomplex<f64>>, tensor<?xcomplex<f64>>) -> tensor<?xi1>
      return %0, %1, %2 : tensor<?xcomplex<f64>>, tensor<?xcomplex<f64>>, tensor<?xi1>
    }"""
    rng = np.random.default_rng(3)
    x, y = (rng.integers(0, 3, (2, 40)) + 1j * rng.integers(0, 3, (2, 40))).astype(np.complex128)
    largest, clamped, below = shlo_disc.compile(text)(x, y, np.complex128(1 + 1j))
    order = [tuple(p) < tuple(q) for p, q in zip(x.view("f8").reshape(-1, 2), y.view("f8").reshape(-1, 2), strict=True)]
    assert np.asarray(below).tolist() == order
    assert np.asarray(largest).tolist() == np.where(order, y, x).tolist()
    assert np.asarray(clamped).tolist() == [1 + 1j] * 40


def test_every_kind_of_argument() -> None:
    executable = compile_function(lambda x, s: x * s, [("n, 2", "complex64"), ("", "complex64")])
    x = random_array((3, 2), "complex64")
    want = x * np.complex64(2j)
    swapped = x.astype(x.dtype.newbyteorder())
    for argument in (x, np.asfortranarray(x), swapped, jnp.asarray(x), np.repeat(x, 2, 1)[:, ::2]):
        for scalar in (2j, np.complex64(2j), jnp.complex64(2j)):
            assert_same(executable(argument, scalar), want, ulps=1)
    assert_same(executable(x, 2), x * 2)
    assert_same(executable(x, 2.5), x * np.complex64(2.5))
    with pytest.raises(shlo_disc.errors.ArgumentTypeError, match="expected complex64 and called with complex128"):
        executable(x.astype(np.complex128), 1j)
    with pytest.raises(shlo_disc.errors.ArgumentTypeError, match="a Python bool"):
        executable(x, True)
    floats = compile_function(lambda x: x, [("", "float32")])
    with pytest.raises(shlo_disc.errors.ArgumentTypeError, match="a Python complex number"):
        floats(1j)


def test_results_are_shared_as_jax_arrays_and_artifacts() -> None:
    executable = compile_function(lambda x: x + 1, [("n", "complex128")])
    x = random_array((5,), "complex128")
    result = executable(jnp.asarray(x)) if jax.config.jax_enable_x64 else executable(x)
    assert_same(result, x + 1)
    loaded = shlo_disc.runtime.Client().load(executable.artifact, trust=True)
    assert_same(loaded(x), x + 1)


def test_map_with_a_complex_body() -> None:
    text = """
    func.func @main(%x: tensor<?xcomplex<f32>>, %y: tensor<?xcomplex<f32>>) -> tensor<?xf32> {
      %0 = "stablehlo.map"(%x, %y) <{dimensions = array<i64: 0>}> ({
        ^bb0(%a: tensor<complex<f32>>, %b: tensor<complex<f32>>):
          %c = stablehlo.constant dense<(0.5, -0.25)> : tensor<complex<f32>>
          %p = stablehlo.multiply %a, %b : tensor<complex<f32>>
          %s = stablehlo.add %p, %c : tensor<complex<f32>>
          %r = stablehlo.imag %s : (tensor<complex<f32>>) -> tensor<f32>
          stablehlo.return %r : tensor<f32>
      }) : (tensor<?xcomplex<f32>>, tensor<?xcomplex<f32>>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }"""
    executable = shlo_disc.compile(text)
    for n in (1, 17):
        x, y = random_array((n,), "complex64", 1), random_array((n,), "complex64", 2)
        assert_same(executable(x, y), (x * y + np.complex64(0.5 - 0.25j)).imag, ulps=2, floor=4)


def test_loops_and_branches_carry_complex_numbers() -> None:
    def function(x: Any, n: Any) -> Any:
        looped = lax.fori_loop(0, n[0], lambda i, z: z * z * 0.5 + x, x)
        final, steps = lax.scan(lambda c, row: (c * row + 1, c), x[0], x)
        return looped, final, steps, lax.cond(n[1] > 0, jnp.conj, lambda z: z * 2j, x), jnp.sort(x, axis=0)

    def inputs(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        return random_array(shape, dtype, seed) if dtype.startswith("complex") else np.array([3, seed % 2], np.int32)

    check(function, [("n, 3", "complex64"), ("2", "int32")], SIZES[1:3], inputs=inputs, ulps=32)
