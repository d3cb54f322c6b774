# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that read the same array: which of them become one, and that the numbers stay right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

import shlo_disc
from shlo_disc.transforms.fusion.siblings import ARRAYS
from tests.run.op_check import check, random_array
from tests.unit.transforms.deciding import compiled, taken

Function = Callable[..., Any]

SIZES = [{"m": m, "n": n} for m, n in ((1, 1), (3, 15), (16, 16), (17, 17), (33, 64), (5, 131), (64, 1), (130, 33))]


def rows(x: jax.Array) -> tuple[jax.Array, ...]:
    return x.min(1), x.max(1), x.mean(1), jnp.argmax(x, 1)


def columns(x: jax.Array) -> tuple[jax.Array, ...]:
    return x.min(0), x.max(0, keepdims=True), x.mean(0), (x * x).sum(0)


def blocks_of_columns(x: jax.Array) -> tuple[jax.Array, ...]:
    return x.sum((0, 1)), jnp.abs(x).max((0, 1))


def whole(x: jax.Array) -> tuple[jax.Array, ...]:
    return x.min(), x.max(), x.sum()


def loops(x: jax.Array) -> tuple[jax.Array, ...]:
    return jnp.exp(-jnp.abs(x)), jnp.tanh(x), x > 0, x.astype(jnp.bfloat16)


def places(x: jax.Array) -> tuple[jax.Array, ...]:
    return jax.nn.softmax(x), x.max(1), jnp.argmin(x, 1), jnp.argmax(x, 1)


MERGED: dict[str, tuple[Function, int]] = {
    "rows": (rows, 1), "columns": (columns, 1), "whole": (whole, 1),
    "loops": (loops, 1), "places": (places, 1),
}  # fmt: skip


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    """Integers so small that their sums are exact."""
    values = random_array(shape, dtype, seed)
    return values % 100 if dtype == "int32" else values


@pytest.mark.parametrize("name", MERGED)
@pytest.mark.parametrize("dtype", ["float32", "int32", pytest.param("bfloat16", marks=pytest.mark.slow),
                                   pytest.param("float64", marks=pytest.mark.slow)])  # fmt: skip
def test_siblings_are_one_kernel(name: str, dtype: str) -> None:
    function, kernels = MERGED[name]
    if dtype == "int32" and name in ("loops", "places"):
        pytest.skip("of floats")
    check(function, [("m, n", dtype)], SIZES, inputs=numbers, ulps=16, scaled=True)
    if dtype == "float32":
        executable = shlo_disc.compile(function, args=(("m, n", dtype),))
        assert len([k for k in executable.kernels if "convert_divide" not in k.name or k.kind != "loop"]) == kernels


# ---- what is left as it is ----------------------------------------------------------------------------------------


def of_two_arrays(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    return x.sum(1), y.sum(1)


def along_two_axes(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    return x.sum(0), x.sum(1)


def of_a_row(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    """One row is all that both read."""
    return jnp.tanh(y) + x[0], jnp.exp(jnp.minimum(x, 1.0)) + x[0]


def around_a_product(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    first = jnp.tanh(x)
    return first, jnp.exp(jnp.minimum(x, 1.0)) * (first @ y.T).sum(1, keepdims=True)


def one_needs_the_other(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    total = lax.optimization_barrier(jnp.tanh(x).sum(0))
    return total, (x - total).max(0)


def in_order(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    """A reduction that is not known to be one that lanes can do apart keeps to itself."""
    largest = lax.reduce(x, np.float32(-np.inf), lambda a, b: jnp.where(a > b, a, b), (1,))
    return largest, x.min(1)


APART: dict[str, tuple[Function, str]] = {
    "two arrays": (of_two_arrays, ""),
    "two axes": (along_two_axes, ""),
    "a row": (of_a_row, ""),
    "around a product": (around_a_product, ""),
    "dependent": (one_needs_the_other, ""),
    "in order": (in_order, "merge-fusions.reduce-in-one-way"),
}


@pytest.mark.parametrize("name", APART)
def test_others_stay_apart(name: str) -> None:
    function, condition = APART[name]
    done, refused = compiled(function, "m, n", "m, n")
    assert not taken(done, "merge-siblings") and not taken(done, "merge-sibling-columns")
    assert not condition or condition in refused
    check(function, [("m, n", "float32")] * 2, SIZES, ulps=32, scaled=True)


def test_columns_of_several_axes() -> None:
    executable = check(blocks_of_columns, [("m, 3, n", "float32")], SIZES, ulps=16, scaled=True)
    assert len(executable.kernels) == 1


def test_too_many_arrays_stay_apart() -> None:
    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(jnp.sin(x * k) for k in range(2 * ARRAYS))

    done, refused = compiled(function, "m, n")
    assert "merge-siblings.has-few-arrays" in refused
    assert taken(done, "merge-siblings") > ARRAYS
    check(function, [("m, n", "float32")], SIZES[1:4], ulps=4)


STEPS: tuple[Callable[[jax.Array, jax.Array], jax.Array], ...] = (
    lambda a, b: jnp.tanh(a) + b,
    lambda a, b: a - b.mean(0),
    lambda a, b: a * b.max(1, keepdims=True),
    lambda a, b: a.sum(0) + b.min(0),
    lambda a, b: jnp.argmax(a, 1) + jnp.argmin(b, 1),
    lambda a, b: jnp.abs(a).max() + b.min(),
)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(s, marks=pytest.mark.slow) for s in range(2, 40))])
def test_random_programs(seed: int) -> None:
    """Sums, extremes and elementwise values of a few arrays, in any order, some of them of each other."""
    steps = np.random.default_rng(seed).integers(0, 8, (10, 3))

    def function(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        known, found = [x, y], []
        for kind, first, second in steps:
            value = STEPS[kind % len(STEPS)](known[first % len(known)], known[second % len(known)])
            (known if value.ndim == 2 else found).append(value)
        return (*known[2:], *found)

    check(function, [("m, n", "float32")] * 2, SIZES[1:6], ulps=64, floor=1.0)


def test_decisions_say_what_they_save() -> None:
    executable = shlo_disc.compile(rows, args=(("m, n", "float32"),))
    merged = [choice for pattern, choice, _ in executable.fusion_report().decisions if pattern == "merge-siblings"]
    assert merged and all(choice is not None and choice.gain >= 64 * 64 * 4 for choice in merged)
    assert "-1 kernels, -16384 bytes read" in str(merged[0])
