# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""dot_general in every layout: where batch, contracting and free sizes stand, transposed results, sizes of 1 and 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

import shlo_disc
from tests.run.op_check import Sizes, Spec, assert_same, check, dtype_of, mlir_dtype, run_xla, small_integers

FLOAT_ULPS = {"float32": 16, "float64": 16, "float16": 2, "bfloat16": 2}
"""Allowed error in ulps of the product of magnitudes. Half floats are summed in f32 and rounded once."""

MATRIX_SIZES: list[Sizes] = [
    {"m": m, "n": n, "k": k}
    for m, n, k in [(1, 1, 1), (2, 2, 2), (1, 17, 33), (17, 1, 16), (5, 7, 1), (15, 16, 17), (16, 16, 16), (31, 33, 32),
                    (1, 300, 97), (97, 3, 300), (130, 70, 65)]
]  # fmt: skip

PLAIN: dict[str, tuple[Spec, Spec, Any]] = {
    "nn": (("m, k", ""), ("k, n", ""), (((1,), (0,)), ((), ()))),
    "nt": (("m, k", ""), ("n, k", ""), (((1,), (1,)), ((), ()))),
    "tn": (("k, m", ""), ("k, n", ""), (((0,), (0,)), ((), ()))),
    "tt": (("k, m", ""), ("n, k", ""), (((0,), (1,)), ((), ()))),
}


def with_dtype(specs: tuple[Spec, Spec], dtype: str) -> list[Spec]:
    return [(shape, dtype) for shape, _ in specs]


@pytest.mark.parametrize("dtype", ("float32", "float64", "bfloat16", "float16", "int32", "int8", "uint16", "int64"))
@pytest.mark.parametrize("layout", PLAIN)
def test_matrices(layout: str, dtype: str) -> None:
    lhs, rhs, numbers = PLAIN[layout]

    def function(a: jax.Array, b: jax.Array) -> tuple[jax.Array, ...]:
        c = lax.dot_general(a, b, numbers)
        return c, c.T

    sizes = MATRIX_SIZES if dtype in ("float32", "int32", "bfloat16") else MATRIX_SIZES[::3]
    is_float = dtype in FLOAT_ULPS
    check(function, with_dtype((lhs, rhs), dtype), sizes, ulps=FLOAT_ULPS.get(dtype, 0), scaled=is_float)


BATCHED: dict[str, tuple[str, str, Any]] = {
    "batch_first": ("b, m, k", "b, k, n", (((2,), (1,)), ((0,), (0,)))),
    "batch_last": ("m, k, b", "n, k, b", (((1,), (1,)), ((2,), (2,)))),
    "batch_middle": ("m, b, k", "k, b, n", (((2,), (0,)), ((1,), (1,)))),
    "batch_differs": ("b, k, m", "n, k, b", (((1,), (1,)), ((0,), (2,)))),
    "two_batches": ("b, 3, m, k", "b, 3, n, k", (((3,), (3,)), ((0, 1), (0, 1)))),
    "two_batches_swapped": ("b, 3, m, k", "3, b, k, n", (((3,), (2,)), ((0, 1), (1, 0)))),
    "heads": ("b, m, 3, k", "b, n, 3, k", (((3,), (3,)), ((0, 2), (0, 2)))),
    "two_contracted": ("m, k, 3", "k, 3, n", (((1, 2), (0, 1)), ((), ()))),
    "two_contracted_crossed": ("m, k, 3", "3, n, k", (((1, 2), (2, 0)), ((), ()))),
    "two_contracted_apart": ("k, m, 3", "3, k, n", (((0, 2), (1, 0)), ((), ()))),
    "all_contracted": ("m, k", "k, m", (((0, 1), (1, 0)), ((), ()))),
    "free_apart": ("m, k, 3", "k, n", (((1,), (0,)), ((), ()))),
    "free_on_both": ("3, m, k", "n, k, 2", (((2,), (1,)), ((), ()))),
    "outer": ("m, 2", "n, k", (((), ()), ((), ()))),
    "batch_only": ("b, m", "b, m", (((), ()), ((0, 1), (0, 1)))),
    "vectors": ("k", "k", (((0,), (0,)), ((), ()))),
    "rows_crossed": ("b, 3, k", "3, k, b", (((2,), (1,)), ((1, 0), (0, 2)))),
    "columns_of_both": ("k, b", "k, b", (((0,), (0,)), ((1,), (1,)))),
    "matrix_vector": ("m, k", "k", (((1,), (0,)), ((), ()))),
    "vector_matrix": ("k", "n, k", (((0,), (1,)), ((), ()))),
    "batch_of_vectors": ("b, k", "b, k", (((1,), (1,)), ((0,), (0,)))),
    "scalar_free": ("b, 1, k", "b, k, n", (((2,), (1,)), ((0,), (0,)))),
}  # fmt: skip

BATCH_SIZES: list[Sizes] = [
    {"b": b, "m": m, "n": n, "k": k}
    for b, m, n, k in [(1, 1, 1, 1), (2, 3, 5, 7), (3, 16, 17, 15), (1, 33, 2, 16), (5, 1, 32, 33), (2, 31, 40, 1)]
]


@pytest.mark.parametrize("dtype", ("float32", "bfloat16", "int32"))
@pytest.mark.parametrize("layout", BATCHED)
def test_layouts(layout: str, dtype: str) -> None:
    lhs, rhs, numbers = BATCHED[layout]

    def function(a: jax.Array, b: jax.Array) -> jax.Array:
        return lax.dot_general(a, b, numbers)

    sizes = BATCH_SIZES if dtype == "float32" else BATCH_SIZES[1::2]
    scaled = dtype in FLOAT_ULPS
    check(function, [(lhs, dtype), (rhs, dtype)], sizes, ulps=FLOAT_ULPS.get(dtype, 0), scaled=scaled)


@pytest.mark.slow
def test_transposed_results_and_operands() -> None:
    def function(a: jax.Array, b: jax.Array) -> tuple[jax.Array, ...]:
        scores = jnp.einsum("bmhk,bnhk->bhmn", a, b)
        return (
            scores,
            jnp.einsum("bhmn,bnhk->bmhk", scores, b),
            jnp.einsum("bmhk,bnhk->mnhb", a, b),
            jnp.einsum("bmhk,bnhk->nbmh", a, b),
            jnp.einsum("bmhk,bmhj->kj", a, a),
            jnp.einsum("bmhk,bnhj->bjmk", a, b),
            jnp.einsum("bmhk->kmb", a),
            jnp.einsum("mk,nk->nm", a[0, :, 0], b[0, :, 0]),
        )

    specs = [("b, m, 2, k", "float32"), ("b, n, 2, k", "float32")]
    check(function, specs, BATCH_SIZES, ulps=64, scaled=True)


WIDENED = [("bfloat16", "float32"), ("float16", "float32"), ("int8", "int32"), ("float32", "float64"),
           ("uint8", "uint32"), ("bfloat16", "bfloat16")]  # fmt: skip


@pytest.mark.parametrize("narrow,wide", WIDENED)
def test_wider_results(narrow: str, wide: str) -> None:
    def function(a: jax.Array, b: jax.Array) -> jax.Array:
        return lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=dtype_of(wide))

    check(function, [("m, k", narrow), ("k, n", narrow)], MATRIX_SIZES[::2], inputs=small_integers)


def test_booleans_through_integers() -> None:
    def function(a: jax.Array, b: jax.Array) -> jax.Array:
        return lax.dot(a.astype(jnp.int32), b.astype(jnp.int32)) > 0

    check(function, [("m, k", "bool"), ("k, n", "bool")], MATRIX_SIZES[::2])


@pytest.mark.parametrize("dtype", ("float32", "float64", "bfloat16", "int32"))
def test_empty(dtype: str) -> None:
    """Nothing to contract gives zeros; nothing free gives an empty result."""
    kind = mlir_dtype(dtype)
    text = f"""func.func @main(%a: tensor<?x?x{kind}>, %b: tensor<?x?x{kind}>) -> tensor<?x?x{kind}> {{
      %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<?x?x{kind}>, tensor<?x?x{kind}>) -> tensor<?x?x{kind}>
      return %r : tensor<?x?x{kind}> }}"""
    executable = shlo_disc.compile(text)
    for m, k, n in [(3, 0, 5), (0, 4, 5), (3, 4, 0), (0, 0, 0), (1, 0, 1), (17, 0, 33), (2, 3, 4), (3, 0, 5)]:
        a, b = (small_integers(s, dtype) for s in ((m, k), (k, n)))
        want = (a.astype(np.float64) @ b.astype(np.float64)).astype(dtype_of(dtype))
        assert_same(executable(a, b), want)


@pytest.mark.slow
def test_dots_that_share_operands_and_feed_each_other() -> None:
    def function(x: jax.Array, w: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
        y = jax.nn.relu(x @ w + v)
        z = y @ w.T - x
        return y, z, z @ z.T, (y.T @ y).T, jnp.dot(z, v @ w.T)

    specs = [("m, k", "float32"), ("k, n", "float32"), ("n", "float32")]
    check(function, specs, MATRIX_SIZES[:8], ulps=64, scaled=True)


def test_special_values_propagate() -> None:
    """0 * inf and NaN are not skipped."""

    def function(a: jax.Array, b: jax.Array) -> jax.Array:
        return a @ b

    executable = shlo_disc.compile(function, args=(("m, k", "float32"), ("k, n", "float32")))
    for m, k, n in [(1, 4, 3), (17, 16, 33), (40, 40, 40)]:
        a, b = np.zeros((m, k), np.float32), np.ones((k, n), np.float32)
        b[0, 0], b[1, -1] = np.inf, np.nan
        want: Callable[..., Any] = run_xla(function, (a, b))
        assert_same(executable(a, b), want)
