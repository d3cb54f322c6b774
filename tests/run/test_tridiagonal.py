# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tridiagonal systems: by LAPACK, and by loops where they may be singular."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.run.op_check import compile_function, dtype_of, run_xla
from tests.run.test_ops_linalg import complex_matrices, matrices, near


def test_tridiagonal() -> None:
    function = lambda a, b, c, d: lax.linalg.tridiagonal_solve(a, b, c, d)  # noqa: E731
    executable = compile_function(function, [("b, n", "float32")] * 3 + [("b, n, k", "float32")])
    for b, n, k in ((1, 3, 1), (4, 16, 5)):
        lower, upper, right = (matrices(s, "float32", i) for i, s in enumerate([(b, n), (b, n), (b, n, k)]))
        lower[:, 0], upper[:, -1] = 0, 0
        middle = np.float32(5) + np.abs(matrices((b, n), "float32", 4))
        near(executable(lower, middle, upper, right), run_xla(function, [lower, middle, upper, right]), 16)


def backward_error(lower: np.ndarray, diagonal: np.ndarray, upper: np.ndarray, b: np.ndarray, x: np.ndarray) -> float:
    """The least relative change of a system's elements that makes x its solution (Oettli and Prager, 1964)."""
    wide = np.complex128 if b.dtype.kind == "c" else np.float64
    position = np.arange(diagonal.shape[-1])
    rows = (np.where(position > 0, lower, 0), diagonal, np.where(position < position[-1], upper, 0))
    near_x = (np.roll(x, 1, -2), x, np.roll(x, -1, -2))
    terms = [row.astype(wide)[..., None] * y.astype(wide) for row, y in zip(rows, near_x, strict=True)]
    scale = sum(map(np.abs, terms)) + np.abs(b)
    return float((np.abs(sum(terms) - b) / scale).max())


def perturbed_solve(lower: Any, diagonal: Any, upper: Any, b: Any) -> Any:
    return lax.linalg.tridiagonal_solve(lower, diagonal, upper, b, perturb_singular=True)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_perturbed_tridiagonal(dtype: str) -> None:
    """Solves regular systems, up to rounding errors in their elements. Some need pivots from other rows, and the unused
    ends of diagonals hold anything."""
    vector = ("b, n", dtype)
    with jax.numpy_dtype_promotion("strict"):
        executable = compile_function(perturbed_solve, [vector, vector, vector, ("b, n, k", dtype)])
    for b, n, k in ((1, 1, 1), (3, 2, 2), (2, 9, 1), (5, 32, 3)):
        make = complex_matrices if dtype.startswith("complex") else matrices
        lower, diagonal, upper = (make((b, n), dtype, seed=i) for i in range(3))
        diagonal[:, ::2] *= dtype_of(dtype).type(1e-3)
        right = make((b, n, k), dtype, seed=3)
        got = np.asarray(executable(lower, diagonal, upper, right))
        assert got.shape == right.shape and got.dtype == right.dtype
        assert backward_error(lower, diagonal, upper, right, got) < 32 * float(jnp.finfo(dtype).eps)


def test_perturbed_tridiagonal_of_badly_scaled_systems() -> None:
    """Small pivots stay as they are where the quotient is a number, next to large ones and below the normal numbers."""
    executable = compile_function(perturbed_solve, [("n", "float32")] * 3 + [("n, 1", "float32")])
    zero, one = np.zeros(3, np.float32), np.ones((3, 1), np.float32)
    for small in (1e-3, 1e-9, -1e-30):
        diagonal = np.array([1, small, 1e3], np.float32)
        got = np.asarray(executable(zero, diagonal, zero, one))
        np.testing.assert_allclose(got[:, 0], 1 / diagonal, rtol=1e-6)


@pytest.mark.parametrize("systems", [[(0, 0, 0)], [(1, 0, 1), (0, 0, 0)], [(-1, 2, 1)]])
def test_perturbed_tridiagonal_of_singular_systems(systems: list[tuple[float, float, float]]) -> None:
    """Pivots of zero move by about an epsilon of the largest element; regular systems of the batch are not touched."""
    executable = compile_function(perturbed_solve, [("b, n", "float32")] * 3 + [("b, n, 1", "float32")])
    zero, one = np.zeros((len(systems), 3), np.float32), np.ones((len(systems), 3, 1), np.float32)
    diagonal = np.array(systems, np.float32)
    got, want = np.asarray(executable(zero, diagonal, zero, one)), run_xla(perturbed_solve, [zero, diagonal, zero, one])
    assert np.isfinite(got).all()
    np.testing.assert_allclose(got, want, rtol=1e-5)
    singular = executable(*(np.array([x], np.float32) for x in ([0, 1], [1, 3], [3, 0], [[1], [4]])))
    assert np.isfinite(singular).all() and np.abs(singular).min() > 1e6
