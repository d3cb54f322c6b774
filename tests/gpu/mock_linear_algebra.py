# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Factorizations in place, as LAPACK and BLAS define them, for mocks of NVIDIA's libraries. They return `info`."""

from __future__ import annotations

import numpy as np


def _wide(a: np.ndarray) -> np.ndarray:
    return a.astype(np.result_type(a.dtype, np.float64))


def cholesky(a: np.ndarray, is_lower: bool) -> int:
    """A triangle becomes that of the factor. Only it is read and written. info: the minor that is not positive."""
    n = len(a)
    factor = np.tril(_wide(a)) if is_lower else np.triu(_wide(a)).conj().T
    info = 0
    for j in range(n):
        rest = factor[j:, j] - factor[j:, :j] @ factor[j, :j].conj()
        if not rest[0].real > 0:
            info = j + 1
            break
        factor[j:, j] = rest / np.sqrt(rest[0].real)
    part = np.tril_indices(n) if is_lower else np.triu_indices(n)
    a[part] = (factor if is_lower else factor.conj().T)[part]
    return info


def lu(a: np.ndarray, pivots: np.ndarray) -> int:
    """Both factors, and the rows that were exchanged, from 1. info: the first pivot that is zero."""
    wide, info = _wide(a), 0
    for j in range(min(a.shape)):
        row = j + int(np.argmax(abs(wide[j:, j].real) + abs(wide[j:, j].imag)))
        pivots[j] = row + 1
        wide[[j, row]] = wide[[row, j]]
        if wide[j, j] == 0:
            info = info or j + 1
            continue
        wide[j + 1 :, j] /= wide[j, j]
        wide[j + 1 :, j + 1 :] -= np.outer(wide[j + 1 :, j], wide[j, j + 1 :])
    a[...] = wide
    return info


def solve_triangle(
    a: np.ndarray, b: np.ndarray, *, is_left: bool, is_lower: bool, operation: str, has_ones: bool
) -> None:
    """b becomes op(a)^-1 b, or b op(a)^-1. Of a, one triangle is read, and its diagonal where that has no ones."""
    triangle = np.tril(_wide(a)) if is_lower else np.triu(_wide(a))
    if has_ones:
        np.fill_diagonal(triangle, 1)
    given = {"N": triangle, "T": triangle.T, "C": triangle.conj().T}[operation]
    is_lower = is_lower == (operation == "N")
    if not is_left:
        given, is_lower = given.T, not is_lower
    x = _wide(b if is_left else b.T)
    order = range(len(given)) if is_lower else range(len(given) - 1, -1, -1)
    with np.errstate(all="ignore"):
        for j in order:
            x[j] /= given[j, j]
            rest = slice(j + 1, None) if is_lower else slice(0, j)
            x[rest] -= np.outer(given[rest, j], x[j])
    b[...] = x if is_left else x.T


def qr(a: np.ndarray, tau: np.ndarray) -> None:
    """R, and below it the vectors of reflectors I - tau v v^H, whose first elements are 1."""
    wide = _wide(a)
    for j in range(min(a.shape)):
        first, rest = wide[j, j], wide[j + 1 :, j]
        if not rest.any() and first.imag == 0:
            tau[j] = 0
            continue
        beta = -np.copysign(np.hypot(abs(first), np.linalg.norm(rest)), first.real)
        factor = (beta - first) / beta
        tau[j] = factor
        v = np.concatenate([[1], rest / (first - beta)])
        wide[j:, j + 1 :] -= np.conj(factor) * np.outer(v, v.conj() @ wide[j:, j + 1 :])
        wide[j:, j] = beta, *v[1:]
    a[...] = wide


def _reflected(reflectors: np.ndarray, tau: np.ndarray, columns: int) -> np.ndarray:
    """The first columns of the product of reflectors."""
    wide = _wide(reflectors)
    q = np.eye(len(wide), columns, dtype=wide.dtype)
    for j in range(len(tau) - 1, -1, -1):
        v = np.concatenate([[1], wide[j + 1 :, j]])
        q[j:] -= tau[j] * np.outer(v, v.conj() @ q[j:])
    return q


def unitary(a: np.ndarray, tau: np.ndarray) -> None:
    """Reflectors become the columns of their product."""
    a[...] = _reflected(a, tau, a.shape[1])


def multiply(reflectors: np.ndarray, tau: np.ndarray, c: np.ndarray, *, is_left: bool, is_adjoint: bool) -> None:
    """c becomes q c, q^H c, c q or c q^H."""
    q = _reflected(reflectors, tau, len(reflectors))
    q = q.conj().T if is_adjoint else q
    c[...] = q @ c if is_left else c @ q


def eigenvalues(a: np.ndarray, values: np.ndarray, *, is_lower: bool, has_vectors: bool) -> int:
    """Ascending eigenvalues of a hermitian matrix, of which one triangle is read; its vectors take its place."""
    if not np.isfinite(a).all():
        return 1
    found, vectors = np.linalg.eigh(_wide(a), "L" if is_lower else "U")
    values[...] = found
    a[...] = vectors if has_vectors else np.nan
    return 0


def singular_values(a: np.ndarray, values: np.ndarray, vectors: tuple[np.ndarray, np.ndarray] | None) -> int:
    """Descending singular values; vectors: u, of as many columns as wanted, and vt. The matrix is destroyed."""
    if not np.isfinite(a).all():
        return 1
    u, found, vt = np.linalg.svd(_wide(a), full_matrices=vectors is not None and vectors[0].shape[1] > a.shape[1])
    values[...] = found
    a[...] = np.nan
    if vectors is not None:
        vectors[0][...], vectors[1][...] = u, vt
    return 0
