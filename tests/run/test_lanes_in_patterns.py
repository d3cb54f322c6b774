# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Moves by which lanes stand in a pattern in memory: steps, reversals, repetitions, interleavings, transposes.

The sizes lie on both sides of a vector, of the lanes that are worked on together, and of a tile of either.
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
from tests.run.op_check import check

LENGTHS = (1, 7, 8, 15, 16, 17, 33, 64, 65, 131)
SIZES = [{"m": m, "n": n} for m, n in zip((3, 1, 5, 2, 17, 16, 33) * 2, LENGTHS, strict=False)]
ELEMENTS = (
    "float32",
    "int8",
    "bool",
    *(pytest.param(d, marks=pytest.mark.slow) for d in ("bfloat16", "float64", "uint16", "int32")),
)

Function = Callable[..., Any]


def steps(x: jax.Array) -> tuple[jax.Array, ...]:
    m, n = x.shape
    wide = jnp.concatenate([x, x[::-1], x, x[:, ::-1]], axis=1)
    found = [lax.slice(wide, (0, begin), (m, 4 * n), (1, step)) for step in (2, 3, 4, 5, 7) for begin in (0, 1)]
    return (*found, *(lax.rev(part, (1,)) for part in found[:6]), lax.slice(wide, (0, 1), (m, 4 * n), (2, 2)))


def python_steps(x: jax.Array) -> tuple[jax.Array, ...]:
    """Written as gathers by JAX."""
    wide = jnp.concatenate([x, x, x], axis=1)
    return wide[:, ::-1], wide[::-1, ::3], wide[:, 1::3], wide[:, 2::3] + wide[:, ::3], wide[::-1], wide[:, ::-3]


def repetitions(x: jax.Array) -> tuple[jax.Array, ...]:
    m, n = x.shape
    by = (2, 3, 4, 8, 16, 32)
    return (
        *(jnp.repeat(x, k, axis=1) for k in by),
        *(jnp.broadcast_to(x[:, :, None], (m, n, k)) for k in by),
        jnp.broadcast_to(x[:, :, None, None], (m, n, 2, 2)),
        jnp.broadcast_to(x[:, None, :, None], (m, 2, n, 4)),
        jnp.broadcast_to(x[0, :, None], (n, 2)),
        jnp.broadcast_to(x[None, 0, None], (8, 2, n)).transpose(2, 0, 1),
    )


def interleavings(x: jax.Array) -> tuple[jax.Array, ...]:
    m, n = x.shape
    y = x[::-1]
    pairs = jnp.stack([x, y], -1)
    flat = pairs.reshape(m, 2 * n)
    odd, even = lax.slice(flat, (0, 1), (m, 2 * n), (1, 2)), lax.slice(flat, (0, 0), (m, 2 * n), (1, 2))
    return (
        flat,
        pairs,
        jnp.stack([odd, even], -1).reshape(m, 2 * n),
        jnp.stack([x, y, x], -1).reshape(m, 3 * n),
        jnp.stack([x, y, x, x], -1).reshape(-1),
        jnp.stack([x, y] * 4, -1),
        jnp.concatenate([pairs, x[:, :, None], x[:, :, None]], -1),
        lax.pad(x[:, :, None], x[0, 0], [(0, 0, 0), (0, 0, 0), (1, 2, 0)]),
        lax.pad(x, x[0, 0], [(0, 0, 0), (0, 1, 1)]).reshape(m, n, 2),
    )


def transposes(x: jax.Array) -> tuple[jax.Array, ...]:
    """Values and what is computed, with other operands beside them."""
    m, n = x.shape
    cube = jnp.stack([x, x[::-1], x, x[:, ::-1], x], axis=1)
    orders = ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    chosen = jnp.where(cube == cube[:, ::-1], cube, cube[:, :1])
    return (
        *(jnp.transpose(cube, order) for order in orders),
        *(jnp.transpose(chosen, order) for order in orders),
        jnp.where(x.reshape(n, m) == x.T, x.T, x.reshape(n, m)),
        jnp.where(x.T == x[::-1].T, x.T[:, ::-1], x[:, ::-1].T),
        jnp.pad(x, ((1, 0), (0, 2))).T,
        jnp.broadcast_to(x[:, None], (m, 3, n)).transpose(2, 1, 0),
    )


FAMILIES = [steps, python_steps, repetitions, interleavings, transposes]


@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_matrix(family: Function, dtype: str) -> None:
    check(family, [("m, n", dtype)], SIZES if dtype == "float32" else SIZES[1::4])


SHUFFLED = {
    "a step of 2": lambda x: x[:, ::2],
    "a reversal": lambda x: x[:, ::-1],
    "a repetition": lambda x: jnp.repeat(x, 4, axis=1),
    "an interleaving": lambda x: jnp.stack([x, -x], -1),
    "windows": lambda x: jnp.stack([x[:, i : x.shape[1] - 3 + i] for i in range(4)], -1),
}


@pytest.mark.parametrize("name", SHUFFLED)
def test_whole_vectors_are_not_gathered(name: str) -> None:
    executable = shlo_disc.compile(SHUFFLED[name], args=(("m, 64*n", "float32"),))
    code = str(executable.listing("kernels"))
    whole = code.split("vector.create_mask")[0]  # what comes before the masked vector of a row
    assert "vector.shuffle" in whole and "vector.gather" not in whole


def test_transposes_are_shuffled() -> None:
    code = str(shlo_disc.compile(lambda x: x.T, args=(("m, n", "float32"),)).listing("kernels"))
    assert "vector.shuffle" in code


def test_results_past_the_caches() -> None:
    """Results so large that whole lines are written around the caches."""

    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        m, n = x.shape
        return x.T, jnp.stack([x, -x], -1).reshape(m, 2 * n), jnp.concatenate([x, x[::-1]])

    check(function, [("m, n", "float32")], [{"m": 1024, "n": 6400}, {"m": 1000, "n": 6401}])


def test_one_row_by_several_threads() -> None:
    """Blocks of one row begin at a multiple of the lanes, wherever they are cut."""

    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        return jnp.stack([x, -x], -1).reshape(-1), jnp.repeat(x, 4)

    check(function, [("n", "float32")], [{"n": n} for n in (1, 1023, 1024, 1025, 300_001)])


OUTSIDE = {
    "one before": lambda x, i: jnp.take(x, i - 1, axis=1, mode="clip"),
    "one behind": lambda x, i: jnp.take(x, i + 1, axis=1, mode="clip"),
    "twice as far": lambda x, i: jnp.take(x, 2 * i, axis=1, mode="clip"),
    "squares": lambda x, i: jnp.take(x, i * i, axis=1, mode="clip"),
    "backwards from the end": lambda x, i: jnp.take(x, x.shape[1] - i, axis=1, mode="clip"),
    "rows": lambda x, i: jnp.take(x, i, axis=0, mode="clip"),
    "in 8 bits": lambda x, i: jnp.take(x, (i * 3).astype(jnp.int8), axis=1, mode="clip"),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_gathers_that_are_no_slices(name: str) -> None:
    """Positions that are clamped, wrap around, or are not even."""

    def function(x: jax.Array) -> jax.Array:
        return OUTSIDE[name](x, jnp.arange(x.shape[1], dtype=jnp.int32))

    check(function, [("m, n", "float32")], SIZES)


@pytest.mark.parametrize(("text", "is_slice"), [("x[:, ::-1]", True), ("x[:, 1::2]", True), ("x[:, idx]", False)])
def test_what_becomes_a_slice(text: str, is_slice: bool) -> None:
    idx = np.array([0, 2, 4])

    def function(x: jax.Array) -> jax.Array:
        return eval(text, {"x": x, "idx": idx})  # noqa: S307

    executable = shlo_disc.compile(function, args=(("m, 2*n", "float32"),), constraints=["n >= 4"])
    names = " ".join(kernel.name for kernel in executable.kernels)
    assert ("gather" not in names) == is_slice


def test_last_axes_of_no_element() -> None:
    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        return -x, jnp.broadcast_to(x[:, :, None], (*x.shape, 2)), jnp.stack([x, x], -1).transpose(2, 1, 0)

    executable = shlo_disc.compile(function, args=(("m, 0", "float32"),))
    for m in (1, 3, 40):
        found = executable(np.zeros((m, 0), np.float32))
        assert [part.shape for part in found] == [(m, 0), (m, 0, 2), (2, 0, m)]
