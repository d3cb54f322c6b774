# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products that read pieces of arrays where they lie, at places that sizes and data say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shlo_disc

Function = Callable[..., Any]
Specs = Sequence[tuple[str, str]]
ROWS = (1, 3, 17, 64)
X, STACK, INDEX = ("m, 64", "float32"), ("3, 64, 64", "float32"), ("", "int32")
EXTREMES = (0, 2, -1, -3, 7, 2**31 - 1, -(2**31))


def random(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    rng = np.random.default_rng([seed, *shape])
    if dtype == "int8":
        return rng.integers(-127, 128, shape).astype(np.int8)
    return (rng.standard_normal(shape) / 6).astype(dtype)


def check(function: Function, specs: Specs, *calls: tuple[Any, ...]) -> str:
    """Compare with JAX; returns the entry function of the plan."""
    executable = shlo_disc.compile(function, args=tuple(specs), options=shlo_disc.Options(strict=True))
    for call in calls:
        wanted = jax.tree.leaves(jax.jit(function)(*call))
        for got, want in zip(jax.tree.leaves(executable(*call)), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    return executable.as_text("plan").partition("func.func private")[0]


def test_layers_in_a_loop() -> None:
    def layers(x: Any, w: Any, b: Any) -> Any:
        return lax.scan(lambda c, p: (jnp.tanh(c @ p[0] + p[1]), c.sum()), x, (w, b), reverse=True)

    plan = check(
        layers,
        [X, ("layers, 64, 64", "float32"), ("layers, 64", "float32")],
        *((random(m, 64), random(layers, 64, 64), random(layers, 64)) for m in ROWS for layers in (1, 2, 5)),
    )
    assert plan.count("disc.piece") == 2


def test_gradients_of_layers_in_a_loop() -> None:
    def loss(w: Any, x: Any) -> Any:
        return lax.scan(lambda c, layer: (jnp.tanh(c @ layer), None), x, w)[0].sum()

    check(jax.grad(loss), [STACK, X], *((random(3, 64, 64), random(m, 64)) for m in ROWS))


def test_narrow_weights_of_layers_in_a_loop() -> None:
    def layers(x: Any, q: Any, s: Any) -> Any:
        return lax.scan(lambda c, p: (jnp.tanh(c @ (p[0].astype(jnp.float32) * p[1])), None), x, (q, s))[0]

    specs = [X, ("3, 64, 64", "int8"), ("3, 64", "float32")]
    calls = ((random(m, 64), random(3, 64, 64, dtype="int8"), abs(random(3, 64)) / 20) for m in ROWS)
    plan = check(layers, specs, *calls)
    assert plan.count("disc.piece") == 2


def test_places_are_clamped() -> None:
    """JAX counts negative indices from the end, and what is then outside lies at the edge."""

    def indexed(x: Any, w: Any, i: Any) -> Any:
        return x @ w[i], x @ lax.dynamic_index_in_dim(w, i, keepdims=False), x @ w[2]

    plan = check(indexed, [X, STACK, INDEX], *((random(3, 64), random(3, 64, 64), np.int32(i)) for i in EXTREMES))
    assert plan.count("disc.piece") == 2


def test_rows_and_two_indices() -> None:
    def both(x: Any, w: Any, v: Any, i: Any, j: Any) -> Any:
        layer = lax.dynamic_slice(w, (i, j, 0, 0), (1, 1, 64, 48))[0, 0]
        return x @ layer + x @ lax.dynamic_slice_in_dim(v, j, 64)

    specs = [X, ("3, 5, 64, 48", "float32"), ("rows, 48", "float32"), INDEX, INDEX]
    places = ((0, 0), (2, 4), (1, 3), (9, 9), (-1, 2), (1, -7))
    calls = ((random(3, 64), random(3, 5, 64, 48), random(rows, 48), np.int32(i), np.int32(j))
             for i, j in places for rows in (64, 65, 70))  # fmt: skip
    executable = shlo_disc.compile(both, args=tuple(specs), constraints=["rows >= 64"])
    for call in calls:
        np.testing.assert_allclose(executable(*call), jax.jit(both)(*call), rtol=1e-4, atol=1e-4)


def test_an_array_that_changes_after_the_piece_was_cut() -> None:
    """The product runs after the update, and reads what was there before."""

    def updated(x: Any, w: Any) -> Any:
        def step(i: Any, carried: Any) -> Any:
            x, w = carried
            layer = lax.dynamic_index_in_dim(w, i % 3, keepdims=False)
            w = lax.dynamic_update_index_in_dim(w, x[:1].T @ x[:1] / 8, i % 3, 0)
            return jnp.tanh(x @ layer) + w[i % 3, :1], w

        return lax.fori_loop(0, 5, step, (x, w))

    check(updated, [X, STACK], *((random(m, 64), random(3, 64, 64)) for m in ROWS))


def test_an_index_that_changes_after_the_piece_was_cut() -> None:
    def counted(x: Any, w: Any) -> Any:
        def step(carried: Any) -> Any:
            i, x = carried
            layer, i = lax.dynamic_index_in_dim(w, i, keepdims=False), i + 1
            return i, jnp.tanh(x @ layer) + i

        return lax.while_loop(lambda c: c[0] < 3, step, (0, x))

    check(counted, [X, STACK], *((random(m, 64), random(3, 64, 64)) for m in ROWS))


def attend(q: Any, k: Any, v: Any) -> Any:
    weights = jax.nn.softmax(jnp.einsum("bhd,bthd->bht", q, k) / 4)
    return jnp.tanh(jnp.einsum("bht,bthd->bhd", weights, v))


@pytest.mark.parametrize("is_indexed", [False, True])
def test_caches_of_all_layers(is_indexed: bool) -> None:
    """Slices of a scan, and gathers of one layer by an index, of symbolic sizes."""

    def scanned(q: Any, k: Any, v: Any) -> Any:
        if is_indexed:
            return lax.fori_loop(0, k.shape[0], lambda i, c: attend(c, k[i], v[i]), q)
        return lax.scan(lambda c, kv: (attend(c, *kv), None), q, (k, v))[0]

    caches = ("3, b, t, 4, 16", "float32")
    calls = ((random(b, 4, 16), random(3, b, t, 4, 16, seed=1), random(3, b, t, 4, 16))
             for b in (1, 2) for t in (1, 5, 33))  # fmt: skip
    plan = check(scanned, [("b, 4, 16", "float32"), caches, caches], *calls)
    assert plan.count("disc.piece") == 2


def test_caches_that_each_layer_writes_to() -> None:
    def decoded(q: Any, k: Any, v: Any, w: Any, at: Any) -> Any:
        def layer(i: Any, carried: Any) -> Any:
            q, k, v = carried
            new = (q.reshape(-1, 64) @ w[i]).reshape(1, -1, 1, 4, 16)
            k = lax.dynamic_update_slice(k, new, (i, 0, at, 0, 0))
            v = lax.dynamic_update_slice(v, jnp.tanh(new), (i, 0, at, 0, 0))
            return attend(q, k[i], v[i]), k, v

        return lax.fori_loop(0, 3, layer, (q, k, v))

    caches = ("3, b, t, 4, 16", "float32")
    specs = [("b, 4, 16", "float32"), caches, caches, ("3, 64, 64", "float32"), INDEX]
    for b, t, at in ((1, 1, 0), (2, 5, 4), (2, 33, 7), (1, 8, 9)):
        cache, stack = random(3, b, t, 4, 16), random(3, 64, 64)
        check(decoded, specs, (random(b, 4, 16), cache, -cache, stack, np.int32(at)))


def whole(*shape: int, seed: int = 0) -> Any:
    """Whole numbers, whose sums are exact in any order."""
    return np.random.default_rng([seed, *shape]).integers(-3, 4, shape).astype(np.float32)


def random_program(seed: int) -> Function:
    """Steps in a loop or behind one another: products with pieces, and updates of the array that these are of."""

    def function(x: Any, w: Any, i: Any) -> Any:
        rng = np.random.default_rng(seed)

        def index(k: Any) -> Any:
            return (k * int(rng.integers(1, 4)) + i + int(rng.integers(0, 3))) % 3 if rng.random() < 0.7 else k

        def layer(w: Any, k: Any) -> Any:
            return lax.dynamic_index_in_dim(w, index(k), keepdims=False)

        def step(k: Any, carried: Any) -> Any:
            x, w = carried
            for _ in range(int(rng.integers(2, 6))):
                kind = rng.integers(0, 5)
                if kind <= 1:
                    x = (x @ layer(w, k)) % 7 - 3
                elif kind == 2:
                    read = layer(w, k)
                    w = lax.dynamic_update_index_in_dim(w, (read + x[:1]) % 5 - 2, index(k), 0)
                    x = (x @ read + x) % 7 - 3
                elif kind == 3:
                    w = lax.dynamic_update_index_in_dim(w, (x[:1].T @ x[:1]) % 5 - 2, index(k), 0)
                else:
                    x = (x + w[int(rng.integers(0, 3))].sum(0) + k) % 7 - 3
            return x, w

        if rng.random() < 0.6:
            return lax.fori_loop(0, 4, step, (x, w))
        return step(i, step(1, (x, w)))

    return function


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int) -> None:
    function = random_program(seed)
    executable = shlo_disc.compile(function, args=(X, STACK, INDEX), options=shlo_disc.Options(strict=True))
    for m in (1, 5, 33):
        for i in (0, 2):
            call = whole(m, 64, seed=seed), whole(3, 64, 64, seed=seed), np.int32(i)
            for got, want in zip(executable(*call), jax.jit(function)(*call), strict=True):
                np.testing.assert_array_equal(got, want)
