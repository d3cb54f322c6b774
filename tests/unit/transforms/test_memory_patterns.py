# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conditions for a value to lie where another one is, in programs that meet all other conditions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from tests.unit.transforms.deciding import Function, compiled, taken

# ---- loops that start where a value is ------------------------------------------------------------------------------


def powers(x: jax.Array, length: int = 3) -> jax.Array:
    return lax.fori_loop(0, length, lambda i, v: jnp.tanh(v @ v), x)


def from_what_a_loop_carries(x: jax.Array) -> Any:
    step = lambda i, c: (jnp.sin(c[1]) @ c[1], powers(c[0]))  # noqa: E731
    return lax.fori_loop(0, 4, step, (jnp.tanh(x), jnp.cos(x)))


def in_a_branch(x: jax.Array) -> Any:
    y = jnp.tanh(x)
    return lax.cond(x[0, 0] > 0, lambda: powers(y), lambda: jnp.sin(y) @ y)


def two_from_one_value(x: jax.Array) -> Any:
    y = jnp.tanh(x) @ x
    return lax.fori_loop(0, 4, lambda i, c: (jnp.tanh(c[1] @ c[0]), c[0] + c[1]), (y, y))


def read_afterwards(x: jax.Array) -> Any:
    y = jnp.tanh(x) @ x
    return powers(y) @ y


STARTS: list[tuple[str, Function, int]] = [
    ("is-local", from_what_a_loop_carries, 2),
    ("is-local", in_a_branch, 0),
    ("dies-at-the-loop", read_afterwards, 1),
]


@pytest.mark.parametrize(("condition", "function", "count"), STARTS)
def test_loops_that_start_somewhere_else(condition: str, function: Function, count: int) -> None:
    done, failed = compiled(function, "n, n", last="plan", strict=True)
    assert f"take-over.{condition}" in failed
    assert taken(done, "take-over") == count


def test_one_of_two_that_start_from_a_value_lies_there() -> None:
    assert taken(compiled(two_from_one_value, "n, n", last="plan", strict=True)[0], "take-over") == 2
