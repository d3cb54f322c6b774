# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of narrow elements in programs: their kernels, epilogues, packed weights and batches, against exact sums.

Half floats are summed in f32 and rounded once, integers are exact (modulo 2**32, or what their type holds).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from tests.run.op_check import compile_function, dtype_of, random_array, run_xla

HALVES = ("bfloat16", "float16")
SUMS = {"bfloat16": "float32", "float16": "float32", "int8": "int32", "uint8": "uint32"}
ROWS = (1, 2, 3, 12, 13, 14, 15, 43, 200)
DEPTHS = [(0, 5), (1, 1), (2, 33), (3, 31), (5, 32), (127, 64), (129, 70), (2000, 17)]
"""k on both sides of words of 2 and 4 and of blocks of 64 words, n on both sides of tiles of 32 columns."""


def launches(executable: shlo_disc.Executable) -> list[str]:
    return [kernel.kind for kernel in executable.kernels]


def exact(x: np.ndarray, w: np.ndarray, result: str) -> tuple[np.ndarray, np.ndarray]:
    """The product, and the error that sums in f32 and one rounding may have."""
    if x.dtype.kind in "iu":
        sums = x.astype(np.int64) @ w.astype(np.int64)
        return sums.astype(result), np.zeros(sums.shape)
    left, right = x.astype(np.float64), w.astype(np.float64)
    sums, magnitudes = left @ right, np.abs(left) @ np.abs(right)
    error = 8 * float(jnp.finfo("float32").eps) * magnitudes
    if result != "float32":
        error += float(jnp.finfo(result).eps) / 2 * np.abs(sums)
    return sums, error


@pytest.mark.parametrize("wide", [False, True], ids=["same", "sums"])
@pytest.mark.parametrize("dtype", SUMS)
def test_every_size(dtype: str, wide: bool) -> None:
    result = SUMS[dtype] if wide else dtype

    def function(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.dot(x, w, preferred_element_type=dtype_of(result))

    for k, n in DEPTHS if wide else DEPTHS[2::3]:
        executable = compile_function(function, ((f"{k}, {n}", dtype), (f"b, {k}", dtype)))
        assert launches(executable) == ["dot"]
        w = random_array((k, n), dtype)
        bound = executable.bind(w)
        for b in ROWS:
            x = random_array((b, k), dtype, 1)
            want, error = exact(x, w, result)
            for got in (executable(w, x), bound(x)):
                assert got.dtype == dtype_of(result)
                assert (np.abs(np.asarray(got).astype(np.float64) - want) <= error).all(), (b, k, n)


def test_sums_of_extreme_bytes() -> None:
    """Every pair of extreme values, and sums that wrap."""
    executable = compile_function(
        lambda x, w: jnp.dot(x, w, preferred_element_type=jnp.int32), (("b, k", "int8"), ("k, n", "int8"))
    )
    for k in (1, 4, 7, 140_000):
        for x, w in ((-128, -128), (-128, 127), (127, 127)):
            a, b = np.full((5, k), x, np.int8), np.full((k, 33), w, np.int8)
            np.testing.assert_array_equal(executable(a, b), np.full((5, 33), np.int64(k * x * w).astype(np.int32)))


def bias(x: Any, w: Any, c: Any, r: Any) -> Any:
    return x @ w + c


def gelu(x: Any, w: Any, c: Any, r: Any) -> Any:
    return r + jax.nn.gelu(x @ w + c)


def two_results(x: Any, w: Any, c: Any, r: Any) -> Any:
    y = x @ w + c
    return jnp.tanh(y), y


def three_products(x: Any, w: Any, c: Any, v: Any, u: Any) -> Any:
    return x @ w + c, jnp.tanh(x @ v), jnp.dot(x, u, preferred_element_type=jnp.float32)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("function", [bias, gelu, two_results])
def test_epilogues(function: Callable[..., Any], dtype: str) -> None:
    """One kernel, as close to an evaluation in f32 as roundings allow."""
    for k, n in ((33, 31), (1300, 65)):
        specs = ((f"b, {k}", dtype), (f"{k}, {n}", dtype), (f"{n}", dtype), (f"b, {n}", dtype))
        executable = compile_function(function, specs)
        assert launches(executable) == ["dot"]
        for b in ROWS:
            values = [random_array(s, dtype, i) for i, s in enumerate(((b, k), (k, n), (n,), (b, n)))]
            compare(function, executable, values, 2)


def compare(function: Callable[..., Any], executable: Any, values: list[np.ndarray], ulps: float) -> None:
    """Results within some roundings, of the largest of them, of those of the function in f32."""
    eps = float(jnp.finfo(values[0].dtype).eps)
    exactly = jax.tree.leaves(function(*(jnp.asarray(v, jnp.float32) for v in values)))
    types = jax.tree.leaves(jax.eval_shape(function, *values))
    for got, want, type_ in zip(jax.tree.leaves(executable(*values)), exactly, types, strict=True):
        assert got.dtype == type_.dtype
        largest = 4 + float(np.abs(want).max())
        np.testing.assert_allclose(np.float32(got), np.float32(want), rtol=0, atol=ulps * eps * largest)


@pytest.mark.parametrize("dtype", HALVES)
def test_products_of_one_left_hand_side(dtype: str) -> None:
    shapes = ("b, 65", "65, 40", "40", "65, 31", "65, 80")
    executable = compile_function(three_products, [(shape, dtype) for shape in shapes])
    assert launches(executable) == ["dot"]
    for b in ROWS:
        values = [random_array(s, dtype, i) for i, s in enumerate(((b, 65), (65, 40), (40,), (65, 31), (65, 80)))]
        compare(three_products, executable, values, 2)


@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
def test_batches_and_layouts(dtype: str) -> None:
    def function(x: Any, y: Any) -> Any:
        wide = dtype_of(SUMS[dtype])
        first = jnp.einsum("bik,bjk->bij", x, y, preferred_element_type=wide)
        second = jnp.einsum("bik,bjk->bji", x, y)
        return first, second, jnp.einsum("bik,bij->bkj", x, x[..., :3], preferred_element_type=wide)

    executable = compile_function(function, (("b, s, 11", dtype), ("b, t, 11", dtype)))
    for b, s, t in ((1, 1, 1), (2, 3, 5), (3, 14, 33), (2, 40, 2), (2, 70, 90)):
        x, y = random_array((b, s, 11), dtype), random_array((b, t, 11), dtype, 1)
        for got, want in zip(executable(x, y), run_xla(function, [x, y]), strict=True):
            assert got.dtype == want.dtype
            if dtype == "int8":
                np.testing.assert_array_equal(got, want)
            else:
                tolerance = float(jnp.finfo(got.dtype).eps)
                np.testing.assert_allclose(np.float32(got), np.float32(want), rtol=tolerance, atol=1e-4)
