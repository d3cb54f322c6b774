# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bodies of reductions, windows and scatters that have constants in them, on one lane and on many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shlo_disc

SHAPES = ((1, 2), (2, 3), (16, 16), (33, 47))


def check(function: Callable[[Any], Any], dtype: str = "float32", tolerance: float = 0.0) -> None:
    run = shlo_disc.compile(function, args=(("s, t", dtype),))
    for shape in SHAPES:
        x = jnp.asarray(np.random.default_rng(shape).normal(size=shape), dtype)
        got, want = (np.asarray(r).astype(np.float64) for r in (run(x), jax.jit(function)(x)))
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=str(shape))


@pytest.mark.parametrize("name", ["relu", "clip", "softplus", "constant"])
def test_rows_that_a_function_is_applied_to(name: str) -> None:
    functions = {
        "relu": jax.nn.relu, "clip": lambda a: jnp.clip(a, -1, 1), "softplus": jax.nn.softplus,
        "constant": lambda a: jnp.full_like(a, 3),
    }  # fmt: skip
    check(lambda x: x.at[0].apply(functions[name]), tolerance=2e-7)


def test_a_sum_with_a_limit() -> None:
    limit = np.float32(3)
    check(lambda x: lax.reduce(jnp.abs(x), np.float32(0), lambda a, b: jnp.minimum(a + b, limit), (0,)), tolerance=1e-6)
    check(
        lambda x: lax.reduce_window(x, np.float32(0), lambda a, b: jnp.minimum(a + b, 1e3), (3, 2), (1, 1), "SAME"),
        tolerance=1e-6,
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_floats(dtype: str) -> None:
    zero = np.asarray(0, jnp.dtype(dtype))
    check(lambda x: lax.reduce(jnp.abs(x), zero, lambda a, b: jnp.maximum(a, b) + zero, (0,)), dtype)


def test_a_body_that_is_a_constant() -> None:
    run = shlo_disc.compile(
        lambda x: lax.reduce(x, np.float32(0), lambda a, b: jnp.float32(7), (0,)), args=(("s, t", "float32"),)
    )
    for shape in SHAPES:
        np.testing.assert_array_equal(run(np.ones(shape, np.float32)), np.full(shape[1], 7, np.float32))


def test_results_past_the_caches_that_begin_in_a_cache_line() -> None:
    """With pages guarded they begin anywhere."""
    run = shlo_disc.compile(lambda x: x * 2 + 1, args=(("s", "float32"),), options=shlo_disc.Options(guard_pages=True))
    for length in (6 * 2**20, 6 * 2**20 + 1, 7 * 2**20 - 3):
        assert (run(np.ones(length, np.float32)) == 3).all()
