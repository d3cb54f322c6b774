# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of linear algebra, of distinct elements, and of special functions."""

from __future__ import annotations

from typing import Any

import torch

from tests.pytorch.ops import Case, Function

L = torch.linalg
S = torch.special


def _of(function: Function, *shapes: str, **others: Any) -> Case:
    return Case(function, shapes, **others)


def _matrix(x: Any) -> Any:
    """A matrix that has an inverse and is not symmetric, of the size of the last axis."""
    return x.mT @ x.sin() + 9 * torch.eye(x.shape[-1], dtype=x.dtype)


def _positive(x: Any) -> Any:
    return x.mT @ x + torch.eye(x.shape[-1], dtype=x.dtype)


_F64 = (torch.float64, torch.float64)
_INT = (torch.int64, torch.int64)


def _solutions(x: Any, y: Any) -> Any:
    a = _matrix(x)
    return (
        L.inv(a), L.solve(a, y), L.solve(a, y[:, 0]), L.solve(a.mT, y), L.solve(a, y.mT, left=False),
        L.solve(a.mT, y.mT, left=False), torch.inverse(a.mT), L.matrix_power(a, -2),
    )  # fmt: skip


def _factors(x: Any, y: Any) -> Any:
    a = _matrix(x)
    both, pivots = L.lu_factor(a)
    return (
        both, pivots, L.lu(a), L.lu(y), L.lu_solve(both, pivots, y), L.lu_solve(both, pivots, y, adjoint=True),
        L.lu_solve(both, pivots, y.mT, left=False), torch.lu_unpack(both, pivots),
    )  # fmt: skip


def _cholesky(x: Any, y: Any) -> Any:
    a = _positive(x)
    lower, upper = L.cholesky(a), L.cholesky(a, upper=True)
    return (
        lower, upper, torch.cholesky_solve(y, lower), torch.cholesky_solve(y, upper, upper=True),
        torch.cholesky_inverse(lower), L.cholesky_ex(a), torch.cholesky(a),
    )  # fmt: skip


def _triangles(x: Any, y: Any) -> Any:
    a = _matrix(x)
    return (
        L.solve_triangular(a, y, upper=True), L.solve_triangular(a, y, upper=False),
        L.solve_triangular(a, y.mT, upper=True, left=False),
        L.solve_triangular(a / 9, y, upper=False, unitriangular=True),
        torch.triangular_solve(y, a)[0], torch.triangular_solve(y, a, transpose=True)[0],
    )  # fmt: skip


def _values(x: Any) -> Any:
    u, s, v = L.svd(x, full_matrices=False)
    whole = L.svd(x)
    return L.svdvals(x), u * s.unsqueeze(-2) @ v, whole[1], whole[0] @ whole[0].mT, whole[2] @ whole[2].mT, L.pinv(x)


def _eigenvalues(x: Any) -> Any:
    a = _positive(x)
    values, vectors = L.eigh(a)
    return values, vectors * values @ vectors.mT, L.eigvalsh(a, UPLO="U"), L.eigvals(a).real.sort()[0]


def _distinct(x: Any, y: Any) -> Any:
    return (
        torch.unique(x), torch.unique(x, return_inverse=True, return_counts=True),
        torch.unique(y.round(), return_inverse=True), torch.unique((y > 0), return_counts=True),
        torch.unique_consecutive(x, return_inverse=True, return_counts=True), torch.unique_consecutive(y.round()),
    )  # fmt: skip


def _distinct_rows(x: Any) -> Any:
    return (
        torch.unique(x, dim=0, return_inverse=True, return_counts=True),
        torch.unique(x.mT, dim=1, return_inverse=True), torch.unique_consecutive(x, dim=0, return_counts=True),
    )  # fmt: skip


def _counts(x: Any, y: Any) -> Any:
    return torch.bincount(x.abs()), torch.bincount(x.abs(), minlength=9), torch.bincount(x.abs(), y, minlength=2)


def _repeated(x: Any, times: Any) -> Any:
    own = times.abs()
    return (
        x.repeat_interleave(own, dim=0), torch.repeat_interleave(own), x.repeat_interleave(3, dim=1),
        x.repeat_interleave(torch.full_like(own, 2), dim=0, output_size=2 * x.shape[0]),
    )  # fmt: skip


def _windows(x: Any) -> Any:
    windows = (torch.hann_window, torch.hamming_window, torch.blackman_window, torch.bartlett_window)
    return x, *(w(n, periodic=p) for w in (*windows, torch.kaiser_window) for n in (1, 8) for p in (True, False))


LINEAR: dict[str, Case] = {
    "solutions of equations": _of(_solutions, "b, t", "t, 3", kinds=_F64, least=1),
    "solutions of single precision": _of(lambda x, y: L.solve(_matrix(x), y), "9, t", "t, 3", low=-1, high=1, least=1),
    "solutions of batches": _of(
        lambda x, y: (L.inv(_matrix(x)), L.solve(_matrix(x), y)), "b, 4, t", "b, t, 2",
        kinds=_F64, least=1,
    ),
    "factors L and U": _of(_factors, "b, t", "t, 3", kinds=_F64, least=1),
    "Cholesky factors": _of(_cholesky, "b, t", "t, 3", kinds=_F64, least=1),
    "Cholesky factors of batches": _of(lambda x: L.cholesky(_positive(x)), "b, 9, t", kinds=_F64),
    "triangular matrices": _of(_triangles, "b, t", "t, 3", kinds=_F64, least=1),
    "determinants": _of(
        lambda x: (L.det(_matrix(x) / 20), L.det(_matrix(x).mT), L.slogdet(_matrix(x)), torch.logdet(_positive(x))),
        "b, t", kinds=_F64, least=1,
    ),
    "QR": _of(
        lambda x, y: (L.qr(x), L.qr(x, mode="complete"), L.qr(x, mode="r")[1], L.qr(y)), "t, 4", "b, 4, t", kinds=_F64,
        least=1,
    ),
    "singular values": _of(_values, "t, 5", kinds=_F64, least=6),
    "eigenvalues": _of(_eigenvalues, "b, t", kinds=_F64, least=1, low=0.0),
    "norms of matrices": _of(
        lambda x: (L.matrix_norm(x, "nuc"), L.matrix_norm(x, 2), L.cond(_positive(x))), "t, 5", kinds=_F64, least=5
    ),
    "distinct elements": _of(_distinct, "b", "b, t", kinds=(torch.int64, torch.float32)),
    "distinct rows": _of(_distinct_rows, "t, 2", kinds=_INT, low=0),
    "bincount": _of(_counts, "b", "b", kinds=(torch.int64, torch.float32), least=1),
    "repeated by a tensor": _of(_repeated, "b, 4", "b", kinds=(torch.float32, torch.int64), least=1),
    "gamma functions": _of(
        lambda x: (torch.digamma(x), torch.polygamma(0, x), torch.polygamma(1, x), torch.polygamma(3, x),
                   S.zeta(x + 1.5, 2.0), S.zeta(x + 1.5, x + 1), torch.mvlgamma(x + 1, 2)),
        "b, t", low=0.05,
    ),
    "digamma below 0": _of(lambda x: (torch.digamma(x - 0.3), torch.digamma(x.round())), "b, t", kinds=_F64),
    "Bessel functions": _of(
        lambda x: (torch.i0(x), S.i0e(x), S.i1(x), S.i1e(x), S.modified_bessel_i0(x / 3)), "b, t", low=-20, high=20,
        kinds=_F64,
    ),
    "common divisors": _of(
        lambda x, y: (torch.gcd(x, y), torch.lcm(x, y)), "b, t", "b, t", kinds=_INT, low=-30, high=30
    ),
    "nextafter": _of(torch.nextafter, "b, t", "b, t"),
    "isin": _of(
        lambda x, y: (torch.isin(x, y), torch.isin(x, torch.tensor([1, 2]), invert=True)), "b, t", "u", kinds=_INT
    ),
    "scatter by a name": _of(
        lambda x, i, s: (x.scatter(0, i.abs() % x.shape[0], s, reduce="add"),
                         x.scatter(0, i.abs() % x.shape[0], s, reduce="multiply")),
        "b, 3", "t, 3", "t, 3", kinds=(torch.float32, torch.int64), least=1, low=0,
    ),
    "index_reduce": _of(
        lambda x, i, s: tuple(
            x.index_reduce(0, i.abs() % 4, s, how, include_self=own)
            for how in ("prod", "mean", "amax", "amin") for own in (True, False)
        ),
        "4, 3", "t", "t, 3", kinds=(torch.float32, torch.int64),
    ),
    "windows": _of(_windows, "b"),
    "bits": _of(
        lambda x, y: (x.view(torch.int32), y.view(torch.float64)), "b", "t", kinds=(torch.float32, torch.int64)
    ),
}  # fmt: skip
"""By what they are of."""
