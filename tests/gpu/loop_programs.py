# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs for GPUs with loops and branches, whose hosts read what they depend on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Loop(NamedTuple):
    """A program, its arguments as shape and dtype, and arguments for two sizes."""

    function: Callable[..., Any]
    arguments: tuple[tuple[str, str], ...]
    make: Callable[[int, int], tuple[Any, ...]]


def rows(b: int, s: int) -> np.ndarray:
    """Normal numbers."""
    return np.random.default_rng(b + s).standard_normal((b, s)).astype(np.float32)


def newton(x: Any, limit: Any) -> Any:
    """Square roots, for as long as the worst one is off."""

    def goes_on(state: Any) -> Any:
        step, root = state
        return (step < limit) & (jnp.abs(root * root - x).max() > 1e-3)

    return jax.lax.while_loop(goes_on, lambda state: (state[0] + 1, (state[1] + x / state[1]) / 2), (0, x))


def running(x: Any) -> Any:
    """A scan that stacks what it carries."""
    return jax.lax.scan(lambda carry, row: (jnp.tanh(carry + row), carry * 2), x[0] * 0, x)


def branches(x: Any, which: Any) -> Any:
    """A branch on data, and one on an argument."""
    cosine = jax.lax.cond(x.sum() > 0, jnp.cos, lambda v: v.max(0, keepdims=True) - v, x)
    return jax.lax.switch(which, [jnp.sin, jnp.negative, lambda v: v * v], cosine)


def sum_of_squares(x: Any) -> Any:
    """A loop over rows."""
    return jax.lax.fori_loop(0, x.shape[0], lambda i, total: total + x[i] ** 2, jnp.zeros_like(x[0]))


ROWS = (("b, s", "float32"),)
ROWS_AND_NUMBER = (*ROWS, ("", "int32"))
LOOPS = {
    "while": Loop(newton, ROWS_AND_NUMBER, lambda b, s: (np.abs(rows(b, s)) + 0.5, np.int32(40))),
    "while_stopped": Loop(newton, ROWS_AND_NUMBER, lambda b, s: (np.abs(rows(b, s)) + 0.5, np.int32(2))),
    "scan": Loop(running, ROWS, lambda b, s: (rows(b, s),)),
    "fori": Loop(sum_of_squares, ROWS, lambda b, s: (rows(b, s),)),
    "branch_0": Loop(branches, ROWS_AND_NUMBER, lambda b, s: (rows(b, s) + 5, np.int32(0))),
    "branch_1": Loop(branches, ROWS_AND_NUMBER, lambda b, s: (rows(b, s) - 5, np.int32(1))),
    "branch_2": Loop(branches, ROWS_AND_NUMBER, lambda b, s: (rows(b, s) - 5, np.int32(7))),
}
