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
from shlo_disc.transforms.fusion.shared_functions import SharedFunctions
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


# Functions that differ in little, each pair on one line, as functions of different lines are never shared.
# fmt: off
NEAR = {
    "constants": (lambda x: x * 2.0 + 1.0, lambda x: x * 3.0 + 1.0),
    "signs of zero": (lambda x: jnp.maximum(x * 0.0, 0.0) + 0.0, lambda x: jnp.maximum(x * 0.0, -0.0) + -0.0),
    "ops": (lambda x: jnp.sin(x) + x, lambda x: jnp.cos(x) + x),
    "operands": (lambda x: jnp.sin(x) - x, lambda x: x - jnp.sin(x)),
    "directions of comparisons": (lambda x: jnp.where(x > 0.1, x, 0.0), lambda x: jnp.where(x < 0.1, x, 0.0)),
    "branches of selects": (lambda x: jnp.where(x > 0.1, x, -x), lambda x: jnp.where(x > 0.1, -x, x)),
    "reductions": (lambda x: jnp.sum(x, axis=1) * 2.0, lambda x: jnp.max(x, axis=1) * 2.0),
    "axes of reductions": (lambda x: jnp.sum(x * x, axis=0), lambda x: jnp.sum(x * x, axis=1)),
    "starts of reductions": (lambda x: jnp.sum(x, axis=1, initial=1.0), lambda x: jnp.sum(x, axis=1, initial=2.0)),
    "axes of iotas": (lambda x: x + jax.lax.broadcasted_iota(jnp.float32, x.shape, 0), lambda x: x + jax.lax.broadcasted_iota(jnp.float32, x.shape, 1)),  # noqa: E501
    "axes of broadcasts": (lambda x: x * x[0], lambda x: x * x[:, :1]),
    "read again or not": (lambda x: x * jax.lax.rev(x, (0,)), lambda x: jax.lax.rev(x, (0,)) * jax.lax.rev(x, (0,))),
    "axes of reverses": (lambda x: jax.lax.rev(x, (0,)) * 2.0, lambda x: jax.lax.rev(x, (1,)) * 2.0),
    "transposes": (lambda x: x.T * 2.0 + x, lambda x: x * 2.0 + x.T),
    "slices": (lambda x: x[1:] * 2.0, lambda x: x[:-1] * 2.0),
    "paddings": (lambda x: jnp.pad(x, ((1, 0), (0, 0))), lambda x: jnp.pad(x, ((0, 1), (0, 0)))),
    "values of paddings": (lambda x: jnp.pad(x, 1), lambda x: jnp.pad(x, 1, constant_values=2.0)),
    "orders of pieces": (lambda x: jnp.concatenate([x, -x]), lambda x: jnp.concatenate([-x, x])),
    "axes of scans": (lambda x: jnp.cumsum(x, axis=0), lambda x: jnp.cumsum(x, axis=1)),
    "directions of scans": (lambda x: jnp.cumsum(x, axis=1), lambda x: jax.lax.cumsum(x, axis=1, reverse=True)),
    "axes of gathers": (lambda x: jnp.take(x, jnp.array([0, 0]), axis=0), lambda x: jnp.take(x, jnp.array([0, 0]), axis=1)),  # noqa: E501
    "indices of gathers": (lambda x: x[jnp.array([0, -1])], lambda x: x[jnp.array([-1, 0])]),
    "element types": (lambda x: (x * 3.0).astype(jnp.int32), lambda x: (x * 3.0).astype(jnp.int16)),
    "precisions": (lambda x: jax.lax.reduce_precision(x, 5, 10), lambda x: jax.lax.reduce_precision(x, 8, 7)),
    "results": (lambda x: [(y := jnp.sin(x)), (y + 1.0) * 2.0], lambda x: [(y := jnp.sin(x)) + 1.0, (y + 1.0) * 2.0]),
    "sizes": (lambda x: x / x.shape[0], lambda x: x / (x.shape[0] + 1)),
    "sides of products": (lambda x: x @ (x * 0.5), lambda x: (x * 0.5) @ x),
    "axes of products": (lambda x: jnp.einsum("ik,kj->ij", x, x * 2.0), lambda x: jnp.einsum("ik,jk->ij", x, x * 2.0)),
    "orders of sorts": (lambda x: jnp.sort(x, axis=1), lambda x: jnp.sort(x, axis=1, descending=True)),
    "windows": (lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (2, 1), (1, 1), "SAME"), lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 2), (1, 1), "SAME")),  # noqa: E501
}
# fmt: on


@pytest.mark.parametrize("name", NEAR)
def test_fusions_that_differ_in_little(name: str) -> None:
    """Each is computed twice, so that there is something to share; either is the first."""
    both = jax.jit(lambda x: [near(x) for near in NEAR[name]])
    arrays = [np.random.default_rng(n).standard_normal((4, n, n)).astype(np.float32) for n in (1, 2, 9)]
    wanted = [[both(x) for x in four] for four in arrays]
    for order in ((0, 1), (1, 0)):

        def function(*arrays: jax.Array, order: tuple[int, int] = order) -> list[Any]:
            return [NEAR[name][which](x) for which, x in zip(2 * order, arrays, strict=True)]

        made = shlo_disc.compile(function, args=(("n, n", "float32"),) * 4, options=shlo_disc.Options(strict=True))
        for four, results in zip(arrays, wanted, strict=True):
            jaxs = [result[which] for which, result in zip(2 * order, results, strict=True)]
            for ours, other in zip(jax.tree.leaves(made(*four)), jax.tree.leaves(jaxs), strict=True):
                np.testing.assert_allclose(ours, other, 2e-5, 2e-5)


@pytest.mark.parametrize("name", NEAR)
def test_equal_bodies_are_found_before_they_are_built(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The function that a body would become is the one that is called in its place."""
    once, shared = SharedFunctions.once, 0
    making = False

    def checked(self: SharedFunctions, key: Any, make: Callable[[], func.FuncOp]) -> func.FuncOp:
        nonlocal making, shared
        if making:
            return once(self, key, make)
        making = True
        built = make()
        making = False
        shared += key in self._known
        found = once(self, key, lambda: built)
        assert found is built
        return found

    def function(*arrays: jax.Array) -> list[Any]:
        return [NEAR[name][i % 2](x) for i, x in enumerate(arrays)]

    monkeypatch.setattr(SharedFunctions, "once", checked)
    compiled(function, *["n, n"] * 4)
    assert shared >= 2
