# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear systems by Lineax: the number of unknowns has the size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np

from corpus.registry import normal, program

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _system(size: int) -> tuple[Any, Any]:
    a = normal(size, size)
    return a @ a.T + size * np.eye(size, dtype=np.float32), normal(size, seed=1)


def _solved(solver: Any, size: int, tags: Any = ()) -> Built:
    def solve(a: Any, b: Any) -> Any:
        return lx.linear_solve(lx.MatrixLinearOperator(a, tags), b, solver).value

    return solve, _system(size)


@program(tolerance=1e-3)
def lu(size: int) -> Built:
    return _solved(lx.LU(), size)


@program(tolerance=1e-3)
def cholesky(size: int) -> Built:
    return _solved(lx.Cholesky(), size, lx.positive_semidefinite_tag)


@program(tolerance=1e-3)
def qr(size: int) -> Built:
    return _solved(lx.QR(), size)


@program(tolerance=1e-3)
def svd(size: int) -> Built:
    return _solved(lx.SVD(), size)


@program(tolerance=1e-3)
def conjugate_gradients(size: int) -> Built:
    return _solved(lx.CG(rtol=1e-5, atol=1e-5), size, lx.positive_semidefinite_tag)


@program(tolerance=1e-3)
def gmres(size: int) -> Built:
    return _solved(lx.GMRES(rtol=1e-5, atol=1e-5), size)


@program(tolerance=1e-3)
def tridiagonal(size: int) -> Built:
    def solve(d: Any, low: Any, up: Any, b: Any) -> Any:
        return lx.linear_solve(lx.TridiagonalLinearOperator(d, low, up), b).value

    return solve, (normal(size) + 6, normal(size - 1), normal(size - 1, seed=1), normal(size, seed=2))


@program(tolerance=2e-3)
def solve_gradient(size: int) -> Built:
    def loss(a: Any, b: Any) -> Any:
        return jax.grad(lambda a: jnp.sum(lx.linear_solve(lx.MatrixLinearOperator(a), b).value ** 2))(a)

    return loss, _system(size)
