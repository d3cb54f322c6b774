# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values read along rows and along columns, and again later: fusion and reuse of buffers must not lose them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shlo_disc

SIZES = [(1, 1, 1), (2, 3, 4), (3, 2, 3), (16, 15, 17), (17, 33, 5), (31, 16, 64)]
SQUARE = [(n, k, n) for n, k in ((1, 1), (2, 5), (3, 2), (15, 16), (16, 3), (17, 31), (64, 7))]


def pairwise(x: Any) -> Any:
    n = (x * x).sum(1)
    d = n[:, None] + n[None, :] - 2 * (x @ x.T)
    far = d.max(1)
    return d, far - far.max()


def pairwise_columns(x: Any) -> Any:
    n = (x * x).sum(1)
    d = n[None, :] - 2 * (x @ x.T) + n[:, None]
    return d, d.min(0) - n, d.min(1) + n


def row_of_sums(w: Any, x: Any) -> Any:
    p = w + x.sum(0)
    r = p.sum(1)
    return p, r - r.max()


def column_of_sums(w: Any, x: Any) -> Any:
    p = w + x.sum(0)[:, None]
    r = p.sum(0)
    return p, r * x.sum(0)


def sinkhorn(c: Any) -> Any:
    f, g = jnp.zeros(c.shape[0]), jnp.zeros(c.shape[1])
    for _ in range(3):
        f = -jax.nn.logsumexp(g[None, :] - c, axis=1)
        g = -jax.nn.logsumexp(f[:, None] - c, axis=0)
    return jnp.exp(f[:, None] + g[None, :] - c)


def correlation(x: Any) -> Any:
    c = x.T @ x + jnp.eye(x.shape[1])
    d = jnp.sqrt(jnp.diagonal(c))
    r = c / d[:, None] / d[None, :]
    return r, r.max(1)


def doubly_normalised(x: Any) -> Any:
    c = jnp.exp(-jnp.abs(x @ x.T))
    c = c / c.sum(1)[:, None]
    return (c / c.sum(0)[None, :]).max(1)


def loop_row(x: Any, y: Any) -> Any:
    row = lax.fori_loop(0, 5, lambda i, c: c * 0.5 + jnp.sin(c), jnp.zeros(y.shape[1]) + x.sum() * 0.01)
    s = x @ y + row
    return s, s.sum(1), s.max()


def one_value_a_row(x: Any, y: Any, w: Any, v: Any) -> Any:
    """The product is one value a row of the kernel that reads it: three axes, of which two are its rows."""
    return ((x @ y)[:, :, None] + w + v[:, None, None]).sum(-1)


def transposed_reader(x: Any) -> Any:
    p = x @ x.T
    m = p.max(1)
    return p - m[None, :], p - m[:, None]


def vector_on_both_sides(x: Any, a: Any) -> Any:
    a = jnp.tanh(a)
    q = x @ x.T + a[:, None]
    s = q.max(1) * a
    t = q + a[None, :]
    return s, t.sum(1), t


def products_that_wait(x: Any, w1: Any, w2: Any) -> Any:
    a, b, c = x @ w1, x @ w2, x @ (w1 + w2)
    d = jax.nn.sigmoid(b + 1)
    e = jnp.tanh(c + d.sum())
    return a * jax.nn.sigmoid(d), e, x @ w1 + e


PROGRAMS: dict[str, tuple[Callable[..., Any], list[str], Sequence[tuple[int, ...]]]] = {
    "pairwise": (pairwise, ["n, k"], SQUARE),
    "pairwise_columns": (pairwise_columns, ["n, k"], SQUARE),
    "row_of_sums": (row_of_sums, ["n, m", "k, m"], SIZES),
    "row_of_sums_square": (row_of_sums, ["n, n", "k, n"], SQUARE),
    "column_of_sums_square": (column_of_sums, ["n, n", "k, n"], SQUARE),
    "sinkhorn": (sinkhorn, ["n, m"], SIZES),
    "sinkhorn_square": (sinkhorn, ["n, n"], SQUARE),
    "correlation": (correlation, ["k, n"], SQUARE),
    "doubly_normalised": (doubly_normalised, ["n, k"], SQUARE),
    "loop_row": (loop_row, ["n, k", "k, m"], SIZES),
    "loop_row_square": (loop_row, ["n, k", "k, n"], SQUARE),
    "one_value_a_row": (one_value_a_row, ["n, k", "k, m", "n, m, p", "n"], SIZES),
    "transposed_reader": (transposed_reader, ["n, k"], SQUARE),
    "vector_on_both_sides": (vector_on_both_sides, ["n, k", "n"], SQUARE),
    "products_that_wait": (products_that_wait, ["n, k", "k, m", "k, m"], SIZES),
}


def arrays(specs: Sequence[str], sizes: dict[str, int]) -> list[np.ndarray]:
    rng = np.random.default_rng(sum(sizes.values()))
    shapes = [tuple(sizes[name.strip()] for name in spec.split(",")) for spec in specs]
    return [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]


@pytest.mark.parametrize("name", PROGRAMS)
def test_agrees_with_xla(name: str) -> None:
    function, specs, shapes = PROGRAMS[name]
    options = shlo_disc.Options(guard_pages=True)
    executable = shlo_disc.compile(function, args=[(s, "float32") for s in specs], options=options)
    for n, k, m in shapes:
        given = arrays(specs, {"n": n, "k": k, "m": m, "p": 6})
        expected = jax.jit(function)(*given)
        for ours, theirs in zip(jax.tree.leaves(executable(*given)), jax.tree.leaves(expected), strict=True):
            scale = max(1.0, float(np.abs(theirs).max()))
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5 * scale)
