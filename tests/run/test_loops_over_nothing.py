# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops and branches over as many rows as data selects: none, one, some and all. What does not run requires nothing."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shlo_disc
import shlo_disc.numpy as sizes

OPTIONS = {
    "fused": shlo_disc.Options(guard_pages=True),
    "plain": shlo_disc.Options(guard_pages=True, max_fusions=0, reuse=False),
}
WEIGHTS = np.arange(9, dtype="f").reshape(3, 3) / 8


def _sum_of_rows(v: jax.Array) -> jax.Array:
    return lax.fori_loop(0, v.shape[0], lambda i, c: c + v[i], jnp.zeros(3))


def _first_row_again(v: jax.Array) -> jax.Array:
    return lax.fori_loop(0, v.shape[0], lambda i, c: c + v[0] @ jnp.asarray(WEIGHTS), jnp.zeros(3))


def _running_sum(v: jax.Array) -> jax.Array:
    return lax.scan(lambda c, row: (c + row, c + row), jnp.zeros(3), v)[1]


def _first_or_ones(v: jax.Array) -> jax.Array:
    return lax.cond(jnp.array(v.shape[0]) > 0, lambda: lax.dynamic_slice(v, (0, 0), (1, 3))[0], lambda: jnp.ones(3))


CASES: dict[str, tuple[Callable[[jax.Array], jax.Array], Callable[[np.ndarray], np.ndarray]]] = {
    "rows by index": (_sum_of_rows, lambda v: v.sum(0)),
    "the same row": (_first_row_again, lambda v: len(v) * (v[0] @ WEIGHTS) if len(v) else np.zeros(3, "f")),
    "scan": (_running_sum, lambda v: np.cumsum(v, 0)),
    "branch": (_first_or_ones, lambda v: v[0] if len(v) else np.ones(3, "f")),
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", CASES)
def test_rows_that_data_selects(name: str, options: str) -> None:
    function, reference = CASES[name]
    executable = shlo_disc.compile(
        lambda x: function(sizes.boolean_index(x, x[:, 0] > 0)), args=(("b, 3", "float32"),), options=OPTIONS[options]
    )
    for b in (1, 2, 3, 17):
        x = np.abs(np.random.default_rng(b).standard_normal((b, 3))).astype("f") + 0.1
        for selected in (np.zeros(b, bool), np.arange(b) == b // 2, np.arange(b) % 2 == 0, np.ones(b, bool)):
            signed = np.where(selected[:, None], x, -x)
            np.testing.assert_allclose(executable(signed), reference(signed[selected]), rtol=1e-5, atol=1e-5)


def test_the_gradient_of_a_recurrence_with_constant_weights() -> None:
    def loss(h: jax.Array, x: jax.Array) -> jax.Array:
        def step(h: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
            h = jnp.tanh(v + h @ jnp.full((16, 16), 0.1))
            return h, h

        return lax.scan(step, h, x)[1].sum()

    gradient = jax.grad(loss, argnums=(0, 1))
    executable = shlo_disc.compile(gradient, args=(("b, 16", "float32"), ("s, b, 16", "float32")))
    for b, s in ((1, 1), (2, 3), (17, 5)):
        rng = np.random.default_rng(b)
        arrays = rng.standard_normal((b, 16)).astype("f"), rng.standard_normal((s, b, 16)).astype("f")
        for got, want in zip(executable(*arrays), jax.jit(gradient)(*arrays), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
