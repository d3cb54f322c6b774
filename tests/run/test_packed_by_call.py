# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of many rows with matrices that are not packed: a call packs their panels, several together or each alone.

Such a product adds in the same order as one with a packed matrix, so their results are the same bits. Sizes make one
window and several, pieces of 384 along k, panels of 16 and 32 columns, the last one of them filled up, and matrices
around the half of a megabyte from where on calls pack.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import shlo_disc
from shlo_disc import Options

SIZES = [(383, 384), (385, 352), (700, 3001), (1100, 4000), (2100, 1025), (8200, 40)]
"""k and n."""
NARROW = (ml_dtypes.bfloat16, np.float16, np.int8)
ROWS = (129, 145, 169, 338)
"""Up to 128 are multiplied by other kernels."""


def numbers(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    values = np.random.default_rng([seed, *shape]).standard_normal(shape)
    return (4 * values if np.issubdtype(dtype, np.integer) else values).astype(dtype)


def agree(function: Callable[..., Any], weights: tuple[np.ndarray, ...], rows: tuple[int, ...], **options: Any) -> None:
    """Results with weights that are passed, once each, are those with bound weights, and near those of XLA."""
    specs = tuple((", ".join(map(str, w.shape)), w.dtype.name) for w in weights)
    k, dtype = weights[0].shape[0], weights[0].dtype
    options = {"guard_pages": True} | options
    executable = shlo_disc.compile(function, args=(*specs, (f"m, {k}", dtype.name)), options=Options(**options))
    bound = executable.bind(*weights)
    for m in rows:
        x = numbers((m, k), dtype, m)
        got, want = executable(*(w.copy() for w in weights), x), bound(x)
        for one, other, ref in zip(*map(jax.tree.leaves, (got, want, jax.jit(function)(*weights, x))), strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
            scale = np.abs(np.asarray(ref, np.float64)).max()
            bits = ml_dtypes.finfo(ref.dtype).eps if jnp.issubdtype(ref.dtype, jnp.floating) else 0
            np.testing.assert_allclose(
                np.asarray(one, np.float64), np.asarray(ref, np.float64), 0, float(bits) * np.sqrt(k) * scale
            )


@pytest.mark.parametrize(("k", "n"), SIZES)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_windows(k: int, n: int, threads: int) -> None:
    agree(lambda w, x: x @ w, (numbers((k, n)),), ROWS, threads=threads)


@pytest.mark.parametrize("dtype", [np.float64, *NARROW], ids=lambda d: np.dtype(d).name)
def test_element_types(dtype: Any) -> None:
    with jax.enable_x64(dtype is np.float64):
        wide = {"preferred_element_type": jnp.int32} if dtype is np.int8 else {}
        agree(lambda w, x: jnp.matmul(x, w, **wide), (numbers((1101, 3001), dtype),), (129, 170))


@pytest.mark.parametrize("dtype", [np.float32, *NARROW], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize(("n", "k"), [(3001, 700), (47, 1101), (129, 3), (33, 513)])
def test_dense_columns(n: int, k: int, dtype: Any) -> None:
    """Columns are read along k, also those that are widened, of which some have fewer elements than a chunk."""
    wide = {"preferred_element_type": jnp.int32} if dtype is np.int8 else {}
    name, options = np.dtype(dtype).name, Options(guard_pages=True)
    executable = shlo_disc.compile(
        lambda w, x: jnp.matmul(x, w.T, **wide), args=((f"{n}, {k}", name), (f"m, {k}", name)), options=options
    )
    w = numbers((n, k), dtype)
    for m in (129, 170):
        x = numbers((m, k), dtype)
        got, want = np.asarray(executable(w, x)), np.asarray(executable.bind(w)(x))
        np.testing.assert_array_equal(got, want)
        exact = x.astype(np.float64) @ w.astype(np.float64).T
        bits = 0 if dtype is np.int8 else float(ml_dtypes.finfo(dtype).eps) * np.sqrt(k)
        np.testing.assert_allclose(got.astype(np.float64), exact, 0, bits * np.abs(exact).max())


@pytest.mark.parametrize("n", [352, 3001])
def test_epilogues_of_tiles_and_rows(n: int) -> None:
    """Epilogues of elements take tiles of sums, and those of whole rows wait for the last window."""
    weights = numbers((1100, n)), numbers((1, n))
    agree(lambda w, b, x: jnp.tanh(x @ w / 30 + b), weights, (129, 170))
    agree(lambda w, b, x: jax.nn.softmax(x @ w / 30 + b, axis=-1), weights, (129, 170))


def test_products_of_one_matrix() -> None:
    """Their panels share windows; a small one is read in place, a large one takes several windows."""
    weights = tuple(numbers((900, n)) for n in (2000, 33, 1500, 1501))
    agree(lambda a, b, c, d, x: (x @ a, x @ b, jnp.exp(-jnp.abs(x @ c) / 30), x @ d), weights, ROWS)


def test_some_are_packed_before() -> None:
    """A product has one matrix in a packed form, and another in a window."""
    first, second = numbers((900, 2000)), numbers((900, 3000), seed=1)
    both = shlo_disc.compile(
        lambda a, b, x: (x @ a, x @ b), args=(("900, 2000", "float32"), ("900, 3000", "float32"), ("m, 900", "float32"))
    )
    half, whole = both.bind(first), both.bind(first, second)
    for m in (129, 170):
        x = numbers((m, 900))
        for one, other in zip(half(second.copy(), x), whole(x), strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_a_computed_matrix() -> None:
    """There is no packed form of it before the call."""
    executable = shlo_disc.compile(
        lambda w, x: x @ jnp.cumsum(w, 0), args=(("700, 3001", "float32"), ("m, 700", "float32"))
    )
    w, x = numbers((700, 3001)), numbers((130, 700))
    want = x.astype(np.float64) @ np.cumsum(w, 0, dtype=np.float64)
    np.testing.assert_allclose(np.asarray(executable(w, x)), want, 0, 1e-5 * np.abs(want).max())
