# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of few rows by a matrix that is not packed, whose sums an epilogue takes: items of work run it.

Sizes make one part of the columns and several, on both sides of where other kernels take over: 3, 18 and 128 rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc import Options

ROWS = (1, 3, 4, 5, 8, 9, 18, 19, 48, 49, 128, 129)


def compare(
    function: Callable[..., Any], specs: list[str], calls: list[dict[str, int]], dtype: str, threads: int
) -> None:
    """Compare first calls, whose matrices are not packed, with XLA's; arrays end at unmapped pages."""
    with jax.enable_x64(dtype == "float64"):
        options = Options(guard_pages=True, threads=threads)
        executable = shlo_disc.compile(function, args=tuple((spec, dtype) for spec in specs), options=options)
        rng = np.random.default_rng(0)
        for values in calls:
            shapes = [[values.get(size, 0) or int(size) for size in spec.split(", ")] for spec in specs]
            arrays = [rng.standard_normal(shape).astype(dtype) / 8 for shape in shapes]
            wanted = jax.tree.leaves(jax.jit(function)(*arrays))
            tolerance = 2e-5 if dtype == "float32" else 1e-12
            for got, want in zip(jax.tree.leaves(executable(*arrays)), wanted, strict=True):
                np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def gated(x: Any, w: Any, b: Any) -> Any:
    return jax.nn.gelu(x @ w + b) * (x[:, :1] + 1)


def gated_columns(x: Any, w: Any, b: Any) -> Any:
    return jax.nn.gelu(x @ w.T + b) * (x[:, :1] + 1)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("k", "n"), [(300, 1000), (1100, 65), (130, 3001), (2000, 2049)])
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_rows(k: int, n: int, dtype: str, threads: int) -> None:
    compare(gated, [f"m, {k}", f"{k}, {n}", f"{n}"], [{"m": m} for m in ROWS], dtype, threads)


@pytest.mark.parametrize("threads", [1, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("k", "n"), [(300, 1000), (128, 65), (1100, 3001)])
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_columns(k: int, n: int, dtype: str, threads: int) -> None:
    """Dot products, whose sums an epilogue takes some columns at a time."""
    compare(gated_columns, [f"m, {k}", f"{n}, {k}", f"{n}"], [{"m": m} for m in ROWS], dtype, threads)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
def test_batches(columns: bool, threads: int) -> None:
    """Rows are counted through the batch."""
    equation, spec = ("bmk,bnk->bmn", "b, 700, 400") if columns else ("bmk,bkn->bmn", "b, 400, 700")

    def function(x: Any, w: Any, b: Any) -> Any:
        return jnp.tanh(jnp.einsum(equation, x, w) + b) - b

    calls = [{"m": m, "b": entries} for m in (1, 4, 17, 49) for entries in (1, 3)]
    compare(function, ["b, m, 400", spec, "b, m, 700"], calls, "float32", threads)


def test_some_results_are_of_rows() -> None:
    """An epilogue of whole rows waits for all parts of the columns."""

    def function(x: Any, w: Any) -> Any:
        return jax.nn.softmax(x @ w, axis=-1), jnp.exp(x @ w[::-1])

    compare(function, ["m, 520", "520, 2500"], [{"m": m} for m in (4, 20, 60)], "float32", 2)


@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("n", [96, 1056, 2112])
@pytest.mark.parametrize("threads", [1, 3])
def test_narrow_results(columns: bool, n: int, threads: int) -> None:
    """More results than sums fit a vector, and vectors are whole wherever a part ends."""

    def function(x: Any, w: Any) -> Any:
        sums = x @ (w.T if columns else w)
        return jnp.round(sums / 64).astype(jnp.int8), (sums / 8).astype(jnp.bfloat16)

    options = Options(guard_pages=True, threads=threads)
    w = f"{n}, 520" if columns else f"520, {n}"
    executable = shlo_disc.compile(function, args=(("m, 520", "float32"), (w, "float32")), options=options)
    rng = np.random.default_rng(1)
    for m in ROWS:
        arrays = rng.integers(-2, 3, (m, 520)), rng.integers(-2, 3, [int(size) for size in w.split(", ")])
        x, weight = (array.astype(np.float32) for array in arrays)
        for got, want in zip(executable(x, weight), jax.jit(function)(x, weight), strict=True):
            np.testing.assert_array_equal(np.asarray(got, np.float32), np.asarray(want, np.float32))
