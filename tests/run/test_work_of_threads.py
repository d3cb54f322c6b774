# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels whose items grow with the sizes of a call: how many threads share them is decided by the sizes that it has.

And work that is divided by blocks of columns: numbers are the same for any number of threads and of columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

import shlo_disc
from tests.run.op_check import small_integers

COLUMNS = (4, 15, 16, 31, 32, 33, 64, 65, 100)


def pool(x: jax.Array) -> jax.Array:
    return lax.reduce_window(x, -jnp.inf, lax.max, (2, 1), (2, 1), "VALID")


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sort": lambda x: jnp.sort(x, 1),
    "top_k": lambda x: lax.top_k(x, 3)[0],
    "cumulative sum": lambda x: jnp.cumsum(x, 1),
    "scatter": lambda x: jnp.zeros_like(x).at[(jnp.arange(x.shape[0]) * 7) % 5].add(x),
    "gradient of a maximum": lambda x: jax.grad(lambda y: (pool(y) ** 2).sum())(x),
    "update": lambda x: lax.dynamic_update_slice(jnp.zeros((x.shape[0] + 3, x.shape[1])), x, (2, 0)),
}


LARGE = {"scatter": (20_000, 64), "gradient of a maximum": (20_000, 64), "update": (16, 200_000)}
"""Sizes at which there are few items, each with much work; others have 16 long rows."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sizes_decide_on_threads(name: str) -> None:
    """Few items are shared where each has much work, whatever was guessed of the sizes."""
    executable = shlo_disc.compile(jax.export.export(jax.jit(FUNCTIONS[name]))(symbolic("a, b")))
    few, many = (outcomes(executable, a, b) for a, b in ((64, 8), LARGE.get(name, (16, 20_000))))
    assert "all threads" not in few, few
    assert "all threads" in many, many


def symbolic(spec: str) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(jax.export.symbolic_shape(spec, constraints=["b >= 4"]), jnp.float32)


def outcomes(executable: Any, a: int, b: int) -> list[str]:
    """The choices of the kernels of a call, as `explain` names them."""
    return [choice for kernel in executable.explain(a=a, b=b).kernels for choice in kernel.variant.split(", ")]


@pytest.mark.parametrize("name", ["scatter", "gradient of a maximum"])
def test_blocks_of_columns(name: str) -> None:
    """Rows enough for several threads, and columns on both sides of a vector and of a block."""
    function = FUNCTIONS[name]
    executable = shlo_disc.compile(jax.export.export(jax.jit(function))(symbolic("a, b")))
    for columns in COLUMNS:
        x = small_integers((20_000, columns), "float32", columns)
        np.testing.assert_array_equal(executable(x), jax.jit(function)(x))
