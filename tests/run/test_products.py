# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with epilogues and products of one left-hand side, against XLA and float64 NumPy.

Sizes lie on both sides of what the runtime decides at: few rows without a packed form (4), tiles (14 rows, 32 columns),
panels of sums kept together (256 rows of them), deep sums (4,096).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from tests.run.op_check import compile_function, run_xla, shape_of

ROWS = (1, 2, 3, 4, 13, 14, 15, 43, 200, 333)


def kinds(executable: shlo_disc.Executable) -> list[str]:
    return [kernel.kind for kernel in executable.kernels]


def check(function: Callable[..., Any], k: int, n: int, dtype: str, launches: int, *more: tuple[str, str]) -> None:
    """`function(x[b, k], w[k, n], c[n], *more)` at many b, as arguments and bound, in `launches` kernels.

    Each row of a result is of one row of x: the reference has all of them, and those of fewer rows are its first.
    """
    arguments = ((f"b, {k}", dtype), (f"{k}, {n}", dtype), (f"{n}", dtype), *more)
    executable = compile_function(function, arguments)
    assert len(executable.kernels) == launches, executable.kernels
    eps, rng = np.finfo(dtype).eps, np.random.default_rng(k)
    values = [rng.standard_normal(shape_of(dims, {"b": max(ROWS)})).astype(dtype) for dims, _ in arguments]
    wanted = jax.tree.leaves(run_xla(function, values))
    for b in ROWS:
        part = [
            value[:b] if dims.startswith("b,") else value for value, (dims, _) in zip(values, arguments, strict=True)
        ]
        for _ in range(2):
            for got, want in zip(jax.tree.leaves(executable(*part)), wanted, strict=True):
                assert (got.dtype, got.shape) == (want.dtype, want[:b].shape)
                np.testing.assert_allclose(got, want[:b], rtol=0, atol=4 * eps * max(k, 8))


def bias(x: Any, w: Any, c: Any) -> Any:
    return x @ w + c


def relu(x: Any, w: Any, c: Any) -> Any:
    return jax.nn.relu(x @ w)


def two_results(x: Any, w: Any, c: Any) -> Any:
    y = x @ w + c
    return jnp.tanh(y), y


def residual(x: Any, w: Any, c: Any, r: Any) -> Any:
    return r + jnp.tanh(x @ w + c)


def normalized(x: Any, w: Any, c: Any) -> Any:
    y = x @ w
    y = y - y.mean(-1, keepdims=True)
    return y * jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + 1) + c


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("k", "n"), [(7, 31), (64, 32), (33, 33), (65, 700)])
def test_loops_behind_a_product(k: int, n: int, dtype: str) -> None:
    check(bias, k, n, dtype, 1)
    check(residual, k, n, dtype, 1, (f"b, {n}", dtype))


@pytest.mark.parametrize(("k", "n"), [(1, 2), (33, 33)])
def test_one_dimensional_loops_and_several_results(k: int, n: int) -> None:
    check(relu, k, n, "float32", 1)
    check(two_results, k, n, "float32", 1)


@pytest.mark.slow
def test_deep_sums() -> None:
    check(bias, 5000, 70, "float32", 1)
    check(normalized, 5000, 70, "float32", 1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [2, 33, 257])
def test_rows_behind_a_product(n: int, dtype: str) -> None:
    check(normalized, 19, n, dtype, 1)


def test_products_of_one_left_hand_side() -> None:
    def three(x: Any, w: Any, c: Any, v: Any, u: Any) -> Any:
        return x @ w + c, jnp.tanh(x @ v) - c, x @ u

    for k, n in ((5, 3), (64, 32), (40, 75), (5000, 33)):
        check(three, k, n, "float32", 1, (f"{k}, {n}", "float32"), (f"{k}, {n + 40}", "float32"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("k", "e", "n"), [(63, 1, 1024), (200, 1, 2048), (130, 128, 24)])
def test_rows_of_weights_whole_pages_apart(k: int, e: int, n: int, dtype: str) -> None:
    """Three tiles of rows read copies of them: 13 to 18 rows where tiles have 6, 29 to 42 where they have 14."""

    def f(x: Any, w: Any) -> Any:
        return jnp.einsum("bk,ken->ebn", x, w)

    executable = compile_function(f, ((f"b, {k}", dtype), (f"{k}, {e}, {n}", dtype)))
    rng = np.random.default_rng(k)
    w = rng.standard_normal((k, e, n)).astype(dtype)
    for b in (12, 13, 15, 18, 19, 28, 29, 42, 43):
        x = rng.standard_normal((b, k)).astype(dtype)
        want = np.einsum("bk,ken->ebn", x.astype(np.float64), w.astype(np.float64), optimize=True)
        np.testing.assert_allclose(executable(x, w), want, rtol=0, atol=4 * np.finfo(dtype).eps * k)


@pytest.mark.slow
def test_a_batch_of_products() -> None:
    def f(x: Any, y: Any) -> Any:
        return jax.nn.softmax(jnp.einsum("bik,bjk->bij", x, y) * 0.1), jnp.exp(jnp.einsum("bik,bjk->bij", x, x) * 0.1)

    executable = shlo_disc.compile(f, args=(("b, s, 24", "float32"), ("b, t, 24", "float32")))
    assert kinds(executable) == ["dot"]
    for b, s, t in ((1, 1, 1), (2, 3, 5), (3, 14, 33), (2, 40, 2), (5, 1, 70), (2, 300, 90)):
        rng = np.random.default_rng(s)
        x, y = (rng.standard_normal((b, m, 24)).astype(np.float32) for m in (s, t))
        for got, want in zip(executable(x, y), f(x, y), strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


def test_a_product_of_no_terms_still_has_its_epilogue() -> None:
    executable = shlo_disc.compile(bias, args=(("b, 0", "float32"), ("0, 5", "float32"), ("5", "float32")))
    assert kinds(executable) == ["dot"]
    c = np.arange(5, dtype=np.float32)
    for b in (1, 3, 20):
        got = executable(np.zeros((b, 0), np.float32), np.zeros((0, 5), np.float32), c)
        np.testing.assert_array_equal(got, np.broadcast_to(c, (b, 5)))


def test_bound_weights() -> None:
    executable = shlo_disc.compile(
        lambda w, c, x: jnp.tanh(x @ w + c), args=(("70, 50", "float32"), ("50", "float32"), ("b, 70", "float32"))
    )
    rng = np.random.default_rng(0)
    w, c = rng.standard_normal((70, 50)).astype(np.float32), rng.standard_normal(50).astype(np.float32)
    bound = executable.bind(w, c)
    for b in ROWS:
        x = rng.standard_normal((b, 70)).astype(np.float32)
        np.testing.assert_allclose(bound(x), np.tanh(x.astype(np.float64) @ w + c), rtol=0, atol=2e-5)


SIDE_BY_SIDE = """func.func @main(%x: tensor<?x?xf32>, %w: tensor<?x?xf32>, %v: tensor<?x?xf32>)
    -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
    (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %1 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] :
    (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0, %1 : tensor<?x?xf32>, tensor<?x?xf32>
}"""

SUMMED = """func.func @main(%x: tensor<?x?xf32>, %w: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
    (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %1 = stablehlo.abs %0 : tensor<?x?xf32>
  %z = stablehlo.constant dense<2.0> : tensor<f32>
  %2 = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [1] :
    (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
  return %1, %2 : tensor<?x?xf32>, tensor<?xf32>
}"""


def integers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).integers(-4, 4, shape).astype(np.float32)


def test_products_of_one_left_hand_side_without_columns() -> None:
    """None, the first, the second or both of them have no columns; there may be no rows, or no depth."""
    run = shlo_disc.compile(SIDE_BY_SIDE)
    assert [kernel.kind for kernel in run.kernels] == ["dot"]
    for m, k, n, other in itertools.product((0, 1, 2, 40), (0, 1, 300), (0, 1, 40), (0, 1, 40)):
        x, w, v = integers(m, k), integers(k, n), integers(k, other)
        for got, want in zip(run(x, w, v), (x @ w, x @ v), strict=True):
            np.testing.assert_array_equal(got, want, err_msg=str((m, k, n, other)))


def test_rows_of_a_product_without_columns_are_folded() -> None:
    run = shlo_disc.compile(SUMMED)
    for m, k, n in itertools.product((0, 1, 2, 40), (0, 1, 300), (0, 1, 3, 40)):
        x, w = integers(m, k), integers(k, n)
        sums, rows = run(x, w)
        np.testing.assert_array_equal(sums, np.abs(x @ w))
        np.testing.assert_array_equal(rows, np.abs(x @ w).sum(1) + 2)


def test_all_of_a_product_without_elements_is_added() -> None:
    """Its rows are none, and the sum of all of it is one row as long as its rows are: of no elements."""

    def run(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.value_and_grad(lambda x: jnp.square(x.T @ x / 4).sum() + 3)(x)

    for n in (0, 1, 5):
        x = integers(1, n)
        total, slope = shlo_disc.compile(run, args=((f"1, {n}", "float32"),))(x)
        np.testing.assert_array_equal(total, np.square(x.T @ x / 4).sum() + 3)
        np.testing.assert_array_equal(slope, x @ (x.T @ x) / 4)
