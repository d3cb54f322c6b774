# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Equal fusions are one function; those next to them, and those that a call describes otherwise, are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.shape_dialect.dialect.fusion import fusion_of
from shlo_disc.shape_dialect.mlir import func
from tests.unit.transforms.deciding import Function, compiled

WEIGHTS = np.random.default_rng(0).standard_normal((3, 8, 8)).astype(np.float32) / 3
KERNEL = np.random.default_rng(1).standard_normal((3, 3, 4, 4)).astype(np.float32) / 6


def kinds(function: Function, shape: str) -> Counter[str]:
    """The number of fused functions of each kind."""
    done, _ = compiled(function, shape)
    functions = (op for op in done.snapshots["fuse"].opview.body.operations if isinstance(op, func.FuncOp))
    return Counter(fusion_of(f).kind for f in functions if "disc.fusion" in f.attributes)


def right(function: Function, shape: str, *shapes: tuple[int, ...]) -> None:
    """Compare with jax.jit. Raises AssertionError."""
    made = shlo_disc.compile(function, args=((shape, "float32"),), options=shlo_disc.Options(strict=True))
    for sizes in shapes:
        x = np.random.default_rng(2).standard_normal(sizes).astype(np.float32)
        np.testing.assert_allclose(made(x), jax.jit(function)(x), 2e-5, 2e-5)


def layers(layer: Callable[[Any, int], Any], count: int = 3) -> Function:
    def run(x: jax.Array) -> jax.Array:
        for number in range(count):
            x = layer(x, number)
        return x

    return run


def test_layers_are_one_function() -> None:
    function = layers(lambda x, i: jnp.tanh(x @ WEIGHTS[i] + x))
    found = kinds(function, "b, 8")
    assert (found["dot"], found["epilogue"]) == (1, 1)
    right(function, "b, 8", (1, 8), (7, 8), (33, 8))


def test_lines_keep_functions_apart() -> None:
    def function(x: jax.Array) -> jax.Array:
        y = jnp.cumsum(jnp.tanh(x), axis=0)
        return jnp.cumsum(jnp.tanh(y), axis=0)

    assert kinds(function, "b, 8")["scan"] == 2
    right(function, "b, 8", (1, 8), (7, 8))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_loop_that_follows_a_product_once(order: tuple[int, ...]) -> None:
    """The same loop reads sums of a product, and an argument: only there it is an epilogue."""

    def function(x: jax.Array) -> jax.Array:
        found = [(lambda y: jnp.tanh(y) + 1.0)(y) for y in (x @ WEIGHTS[0], jnp.cumsum(x, axis=0))]
        return found[order[0]] - 2 * jnp.cumsum(found[order[1]], axis=0)

    right(function, "b, 8", (1, 8), (7, 8), (33, 8))


def test_rows_that_follow_products_and_not() -> None:
    def function(x: jax.Array) -> jax.Array:
        return sum(jax.nn.softmax(y, axis=-1) for y in (x @ WEIGHTS[0], x, jnp.cumsum(x, axis=0), x @ WEIGHTS[1]))

    right(function, "b, 8", (1, 8), (7, 8), (33, 8))


def test_convolutions_by_kernels_that_are_fixed_and_not() -> None:
    def function(x: jax.Array) -> jax.Array:
        computed, layout = KERNEL * jnp.max(x), ("NHWC", "HWIO", "NHWC")
        for kernel in (KERNEL, computed, KERNEL, computed):
            x = jnp.tanh(jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=layout))
        return x

    right(function, "b, h, 9, 4", (1, 5, 9, 4), (3, 8, 9, 4))


@pytest.mark.parametrize("causal", [(True, True), (True, False), (False, True)])
def test_attentions_with_masks_and_without(causal: tuple[bool, ...]) -> None:
    """Layers whose row kernels are equal; a mask bounds the rows of one alone."""

    def attention(x: jax.Array, hidden: bool) -> jax.Array:
        scores = jnp.einsum("bqd,bkd->bqk", x, x) / 3
        row, column = (jax.lax.broadcasted_iota(jnp.int32, scores.shape, axis) for axis in (1, 2))
        scores = jnp.where(column <= row, scores, -1e9) if hidden else scores
        return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores, axis=-1), x)

    def function(x: jax.Array) -> jax.Array:
        for hidden in causal:
            x = attention(x, hidden)
        return x

    right(function, "b, s, 8", (1, 1, 8), (2, 5, 8), (3, 17, 8))


def test_equal_fusions_inside_and_outside_of_loops() -> None:
    def function(x: jax.Array) -> jax.Array:
        def step(_: Any, y: jax.Array) -> jax.Array:
            return jnp.tanh(y @ WEIGHTS[0] + y)

        return step(0, jax.lax.fori_loop(0, 3, step, step(0, x)))

    found = kinds(function, "b, 8")
    assert (found["dot"], found["epilogue"]) == (1, 1)
    right(function, "b, 8", (1, 8), (7, 8))


def test_recurrences_keep_functions_of_their_own() -> None:
    """Two recurrences of one loop each may run as one, which changes the function of the first."""

    def scan(x: jax.Array) -> jax.Array:
        def step(h: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
            h = jnp.tanh(h @ WEIGHTS[0] + row)
            return h, h

        return jax.lax.scan(step, jnp.zeros(8), x)[1]

    def function(x: jax.Array) -> jax.Array:
        return scan(x) + scan(x[::-1]) + scan(2 * x)

    right(function, "t, 8", (1, 8), (7, 8))
