# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of products over a loop's iterations are one product behind it; what stays are rows of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from tests.run.op_check import Sizes, Spec, check

F = "float32"
SIZES: list[Sizes] = [{"t": t, "b": b} for t, b in [(1, 1), (2, 5), (3, 1), (6, 33)]]


def kinds(executable: Any) -> list[str]:
    return [kernel.kind for kernel in executable.kernels]


def gru(x: jax.Array, scale: jax.Array, w: jax.Array, *, reverse: bool = False) -> jax.Array:
    """A GRU over x [t, b, 3 * d] whose update gates are scaled by [t, b, 1]; small weights, for a stable gradient."""
    w = w * 0.2

    def step(h: jax.Array, row: tuple[jax.Array, jax.Array]) -> Any:
        (a, b, c), (p, q, r) = jnp.split(row[0], 3, axis=-1), jnp.split(h @ w, 3, axis=-1)
        z = jax.nn.sigmoid(a + p) * row[1]
        h = (1 - z) * h + z * jnp.tanh(c + jax.nn.sigmoid(b + q) * r)
        return h, h

    last, states = lax.scan(step, jnp.zeros((x.shape[1], w.shape[0]), x.dtype), (x, scale), reverse=reverse)
    return jnp.sum(last * last) + jnp.sum(states)


@pytest.mark.parametrize("reverse", (False, True))
@pytest.mark.parametrize(("d", "dtype"), [(5, F), (3, "float64")])
def test_the_gradient_of_a_gru(d: int, dtype: str, reverse: bool) -> None:
    def function(x: jax.Array, scale: jax.Array, w: jax.Array) -> Any:
        return jax.grad(lambda *args: gru(*args, reverse=reverse), (0, 1, 2))(x, scale, w)

    specs: list[Spec] = [(f"t, b, {3 * d}", dtype), ("t, b, 1", dtype), (f"{d}, {3 * d}", dtype)]
    executable = check(function, specs, SIZES, ulps=2000, floor=10)
    assert kinds(executable).count("recurrence") == 2, "the loop and its gradient's"
    assert "update" not in kinds(executable)


@pytest.mark.slow
def test_two_weights_of_one_step() -> None:
    """Factors that two sums share are written once."""

    def run(x: jax.Array, w: jax.Array, v: jax.Array) -> jax.Array:
        def step(h: jax.Array, row: jax.Array) -> Any:
            h = jnp.tanh(row + h @ w) * jax.nn.sigmoid(h @ v)
            return h, h

        return jnp.sum(lax.scan(step, jnp.ones_like(x[0]), x)[1])

    executable = check(jax.grad(run, (0, 1, 2)), [("t, b, 6", F), ("6, 6", F), ("6, 6", F)], SIZES, ulps=2000, floor=1)
    assert kinds(executable).count("recurrence") == 2


def moment(x: jax.Array, y: jax.Array) -> Any:
    """The plain sum, of two slices at the same place."""
    return lax.fori_loop(0, x.shape[0], lambda i, m: m + x[i].T @ y[i], jnp.ones((x.shape[2], y.shape[2]), x.dtype))


def opposite(x: jax.Array, y: jax.Array) -> Any:
    """The places differ: one factor has to be written in the other's order."""
    n = x.shape[0]
    return lax.fori_loop(0, n, lambda i, m: x[i].T @ y[n - 1 - i] + m, jnp.ones((x.shape[2], y.shape[2]), x.dtype))


def shared(x: jax.Array, y: jax.Array) -> Any:
    """Two sums share a factor, and take it in different orders."""
    n = x.shape[0]
    row = lambda x, i: lax.dynamic_index_in_dim(x, i, keepdims=False, allow_negative_indices=False)  # noqa: E731

    def step(i: jax.Array, carried: Any) -> Any:
        factor = jnp.tanh(y[0] * i.astype(F))
        return carried[0] + row(x, i).T @ factor, carried[1] + row(x, n - 1 - i).T @ factor

    start = jnp.zeros((x.shape[2], y.shape[2]), x.dtype)
    return lax.fori_loop(0, n, step, (start, start))


def clipped(x: jax.Array, y: jax.Array) -> Any:
    """Some rows are taken twice, and some never."""
    row = lambda x, i: lax.dynamic_index_in_dim(x, i, keepdims=False, allow_negative_indices=False)  # noqa: E731
    start = jnp.zeros((x.shape[2], y.shape[2]), x.dtype)
    return lax.fori_loop(0, x.shape[0], lambda i, m: m + row(x, jnp.clip(i, 1, 3)).T @ jnp.tanh(row(y, i)), start)


def watched(x: jax.Array, y: jax.Array) -> Any:
    """The sum is read in every iteration, so it has to be there."""

    def step(m: jax.Array, now: Any) -> Any:
        m = m + now[0].T @ now[1]
        return m, jnp.max(m)

    return lax.scan(step, jnp.zeros((x.shape[2], y.shape[2]), x.dtype), (x, y))


def fading(x: jax.Array, y: jax.Array) -> Any:
    """Not a plain sum."""
    start = jnp.ones((x.shape[2], y.shape[2]), x.dtype)
    return lax.fori_loop(0, x.shape[0], lambda i, m: m * 0.5 + x[i].T @ y[i], start)


@pytest.mark.parametrize("function", (moment, opposite, shared, clipped, watched, fading))
def test_sums_of_products(function: Callable[..., Any]) -> None:
    check(function, [("t, b, 4", F), ("t, b, 7", F)], SIZES, ulps=500, floor=1)
