# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of linear algebra whose results are unique: products of factors, not the factors themselves."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.gpu.loop_programs import Loop


def adjoint(a: Any) -> Any:
    """The conjugate transpose of matrices."""
    return jnp.swapaxes(a, -1, -2).conj()


def product(*matrices: Any) -> Any:
    """The product of matrices, with all bits."""
    return functools.reduce(functools.partial(jnp.matmul, precision="highest"), matrices)


def with_nan(a: Any) -> Any:
    """The matrices, of which the first one has a NaN."""
    return jnp.where(jnp.arange(a.shape[0])[:, None, None] == 0, jnp.nan, 1).astype(a.dtype) * a


def cholesky(a: Any) -> Any:
    """The factor, and that of matrices of which one in two is not positive, whose results are NaN."""
    signs = jnp.where(jnp.arange(a.shape[0]) % 2 == 0, 1, -1).astype(a.dtype)
    return jnp.linalg.cholesky(a), jnp.linalg.cholesky(a * signs[:, None, None])


def equations(a: Any) -> Any:
    """A solution, the inverse, and the logarithm of the determinant."""
    return jnp.linalg.solve(a, a[..., ::-1, :1]), jnp.linalg.inv(a), jnp.linalg.slogdet(a)


def triangles(a: Any) -> Any:
    """Solutions for both triangles, on both sides, of the matrix, its transpose and its adjoint."""
    kinds = ({}, {"transpose_a": True}, {"transpose_a": True, "conjugate_a": True}, {"unit_diagonal": True})
    b = a[..., :, :1] + 1
    return [
        lax.linalg.triangular_solve(a, b if left else jnp.swapaxes(b, -1, -2), left_side=left, lower=lower, **kind)
        for left in (True, False)
        for lower in (True, False)
        for kind in kinds
    ]


def qr(a: Any) -> Any:
    """Products of the factors, of the first columns only, too."""
    q, r = jnp.linalg.qr(a)
    first, rest = jnp.linalg.qr(a[..., :1])
    return product(q, r), product(adjoint(q), q), jnp.tril(r, -1), product(first, rest)


def complete_qr(a: Any) -> Any:
    """Products of the factors of one column, of which one has as many columns as rows."""
    q, r = jnp.linalg.qr(a[..., :1], mode="complete")
    return product(q, r), product(q, adjoint(q))


def eigenvalues(a: Any) -> Any:
    """Eigenvalues of hermitian matrices, the product of the factors, and those of a matrix with a NaN."""
    values, vectors = jnp.linalg.eigh(a)
    scaled = vectors * values[..., None, :]
    return values, product(scaled, adjoint(vectors)), jnp.linalg.eigvalsh(with_nan(a))


def singular_values(a: Any) -> Any:
    """Singular values of matrices of more rows, and of more columns, and the products of the factors."""
    found = []
    for given in (a, a[..., :1], a[..., :1, :]):
        for full in (False, True):
            u, values, vt = jnp.linalg.svd(given, full_matrices=full)
            least = values.shape[-1]
            scaled = u[..., :least] * values[..., None, :]
            found.append(
                (values, product(scaled, vt[..., :least, :]), product(adjoint(u), u), product(vt, adjoint(vt)))
            )
        found.append(jnp.linalg.svd(given, compute_uv=False))
    return found, jnp.linalg.svd(with_nan(a), compute_uv=False)


def _positive(b: int, s: int, dtype: str) -> np.ndarray:
    rng = np.random.default_rng(b + s)
    a = rng.standard_normal((b, s, s)) + (1j * rng.standard_normal((b, s, s)) if dtype.startswith("c") else 0)
    return (a @ a.conj().swapaxes(-1, -2) / s + np.eye(s)).astype(dtype)


FUNCTIONS: tuple[Callable[..., Any], ...] = (
    cholesky, equations, triangles, qr, complete_qr, eigenvalues, singular_values,
)  # fmt: skip
SOLVERS = {
    f"{function.__name__}_{dtype}": Loop(
        function, (("b, s, s", dtype),), lambda b, s, dtype=dtype: (_positive(b, s, dtype),)
    )
    for function in FUNCTIONS
    for dtype in ("float32", "complex64")
}
"""By a name."""
