# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that are divided by other sizes: no stage evaluates them where the divisor is zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from tests.run.op_check import random_array

Divisor = Callable[[Any, Any], Any]

DIVISORS: dict[str, Divisor] = {
    "floordiv(h, k)": lambda h, k: h // k,
    "min(h, 7)": lambda h, k: jax.core.min_dim(h, 7),
    "h - k": lambda h, k: h - k,
    "mod(h, k)": lambda h, k: h % k,
    "k - 3": lambda h, k: k - 3,
}


def blocks_of(divisor: Divisor) -> Callable[[jax.Array, jax.Array], tuple[jax.Array, ...]]:
    """A function whose buffers have sizes with this divisor, in an order that does not follow from the facts."""

    def function(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        h = x.shape[0]
        d = divisor(h, y.shape[0])
        q = h // d
        a = jnp.cumsum(jnp.ones((q, d, 3)) * jnp.sum(x), axis=1)
        b = jnp.sort(jnp.transpose(a, (1, 0, 2)), axis=1)
        c = jnp.cumsum(b.reshape(d * q, 3), axis=0)
        e = jnp.sort(c[: h - d], axis=0)
        g = jnp.cumsum(jnp.transpose(jnp.ones((q, h - d + 1, 2)) * e.sum(), (1, 0, 2)), axis=0)
        return jnp.sort(g, axis=0), jnp.sort(e, axis=0) * 2 + jnp.cumsum(e, 0), jnp.sort(a, 0)

    return function


@pytest.mark.parametrize("name", DIVISORS)
def test_buffers_of_divided_sizes(name: str) -> None:
    function = blocks_of(DIVISORS[name])
    constraints = [f"{name} >= 1", f"h >= {name} + 1", f"floordiv(h, {name}) >= 1"]
    run = shlo_disc.compile(function, args=(("h, 4", "float32"), ("k", "float32")), constraints=constraints)
    for h, k in ((9, 5), (20, 6), (23, 4), (64, 11)):
        if DIVISORS[name](h, k) == 0:
            continue
        x, y = random_array((h, 4), "float32"), random_array((k,), "float32", 1)
        for got, want in zip(run(x, y), function(x, y), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
