# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Interpolation by interpax, in one and two dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import interpax
import jax
import jax.numpy as jnp

from corpus.registry import normal, program

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _of(method: str, size: int) -> Built:
    """Points at which to interpolate have the size."""

    def interpolate(xq: Any, x: Any, f: Any) -> Any:
        return interpax.interp1d(xq, jnp.sort(x), f, method=method, extrap=True)

    return interpolate, (normal(size), normal(9, seed=1), normal(9, 2, seed=2))


@program()
def linear(size: int) -> Built:
    return _of("linear", size)


@program(tolerance=1e-3)
def cubic(size: int) -> Built:
    return _of("cubic", size)


@program(tolerance=1e-3)
def spline_of_many_knots(size: int) -> Built:
    """Knots have the size."""

    def interpolate(xq: Any, f: Any) -> Any:
        knots = jnp.arange(f.shape[0], dtype=jnp.float32)
        return interpax.interp1d(xq * f.shape[0], knots, f, method="cubic2", extrap=True)

    return interpolate, (abs(normal(4)) % 1, normal(size, seed=1))


@program(tolerance=1e-3)
def akima(size: int) -> Built:
    return _of("akima", size)


@program(tolerance=1e-3)
def monotonic(size: int) -> Built:
    return _of("monotonic", size)


@program(tolerance=1e-3)
def planes(size: int) -> Built:
    def interpolate(xq: Any, yq: Any, f: Any) -> Any:
        x, y = jnp.arange(5.0), jnp.arange(6.0)
        return jax.grad(lambda q: interpax.interp2d(q, yq, x, y, f, method="cubic", extrap=True).sum())(xq)

    return interpolate, (4 * abs(normal(size)) % 4, 5 * abs(normal(size, seed=1)) % 5, normal(5, 6, seed=2))
