# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`jax.checkpoint` and `optimization_barrier`: what is computed again is computed late, with the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from tests.run.op_check import assert_same, check, random_array, run_xla, shape_of

Layer = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
GUARDED = shlo_disc.Options(guard_pages=True)


def perceptron(x: jax.Array, first: jax.Array, second: jax.Array) -> jax.Array:
    """[b, d], [d, 4*d], [4*d, d] -> [b, d]."""
    return x + jnp.tanh(jnp.tanh(x @ first) * 2) @ second


def attending(x: jax.Array, first: jax.Array, second: jax.Array) -> jax.Array:
    """[b, d], [d, 4*d], [4*d, d] -> [b, d]; every row looks at those before it."""
    query, key, value, gate = jnp.split(x @ first, 4, axis=-1)
    row = jnp.arange(x.shape[0])
    scores = jnp.where(row[None, :] <= row[:, None], query @ key.T, -jnp.inf)
    mixed = jax.nn.softmax(scores, axis=-1) @ value
    return x + jnp.tanh(jnp.concatenate([mixed, gate, mixed * gate, value], axis=-1)) @ second


def gradients(layer: Layer, layers: int) -> Callable[..., Any]:
    """The gradients of a mean square behind some layers, by all weights and the input."""

    def loss(x: jax.Array, *weights: jax.Array) -> jax.Array:
        for i in range(layers):
            x = layer(x, weights[2 * i], weights[2 * i + 1])
        return jnp.mean(x**2)

    return jax.grad(loss, argnums=tuple(range(2 * layers + 1)))


def specs_of(width: int, layers: int) -> list[tuple[str, str]]:
    return [
        (f"b, {width}", "float32"),
        *[(f"{width}, {4 * width}", "float32"), (f"{4 * width}, {width}", "float32")] * layers,
    ]


def near(function: Callable[..., Any], specs: Sequence[tuple[str, str]], sizes: Sequence[dict[str, int]]) -> None:
    """Gradients agree with XLA's, measured by the largest one."""
    executable = shlo_disc.compile(function, args=specs, options=GUARDED)
    for size in sizes:
        arrays = [
            random_array(shape_of(text, size), dtype, i) * np.float32(0.5) for i, (text, dtype) in enumerate(specs)
        ]
        got, want = executable(*arrays), run_xla(function, arrays)
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=2e-5 * max(1e-3, float(np.abs(b).max())), err_msg=str(size))


def peak(function: Callable[..., Any], specs: Sequence[tuple[str, str]], **sizes: int) -> int:
    return int(shlo_disc.compile(function, args=specs).peak_memory(**sizes))


@pytest.mark.parametrize("layer", [perceptron, attending])
def test_a_checkpoint_of_every_layer_needs_less_memory(layer: Layer) -> None:
    specs = specs_of(16, 4)
    kept = peak(gradients(layer, 4), specs, b=256)
    again = peak(gradients(jax.checkpoint(layer), 4), specs, b=256)
    assert again < 0.7 * kept


def test_a_layer_more_costs_its_input_and_no_more() -> None:
    """A checkpoint keeps of a layer of the forward pass only the layer's input."""
    few, many = (peak(gradients(jax.checkpoint(perceptron), n), specs_of(16, n), b=4096) for n in (3, 7))
    assert many - few <= 4 * (4 * 4096 * 16 + 4 * 2 * 16 * 64)


@pytest.mark.parametrize("layer", [perceptron, attending])
def test_gradients_with_a_checkpoint(layer: Layer) -> None:
    near(gradients(jax.checkpoint(layer), 2), specs_of(8, 2), [{"b": b} for b in (1, 3, 17)])


def test_a_checkpoint_in_a_scan() -> None:
    def f(x: jax.Array, first: jax.Array, second: jax.Array) -> Any:
        def loss(x: jax.Array, first: jax.Array, second: jax.Array) -> jax.Array:
            layer = jax.checkpoint(perceptron, prevent_cse=True)
            return jnp.mean(jax.lax.scan(lambda y, w: (layer(y, *w), None), x, (first, second))[0] ** 2)

        return jax.grad(loss, argnums=(0, 1, 2))(x, first, second)

    specs = [("b, 8", "float32"), ("3, 8, 16", "float32"), ("3, 16, 8", "float32")]
    near(f, specs, [{"b": b} for b in (1, 17)])


@pytest.mark.slow
def test_checkpoints_in_checkpoints_and_a_policy() -> None:
    def f(x: jax.Array, w: jax.Array) -> Any:
        saving = jax.checkpoint(lambda y: jnp.sin(y @ w), policy=jax.checkpoint_policies.dots_saveable)
        twice = jax.checkpoint(lambda y: saving(jnp.cos(saving(y))))
        return jax.value_and_grad(lambda y: jnp.sum(twice(twice(y)) * y))(x)

    near(f, [("b, 8", "float32"), ("8, 8", "float32")], [{"b": b} for b in (2, 17)])


@pytest.mark.slow
def test_random_numbers_and_integers_of_a_checkpoint() -> None:
    def f(x: jax.Array, places: jax.Array) -> Any:
        @jax.checkpoint
        def layer(y: jax.Array, key: jax.Array) -> jax.Array:
            return jnp.where(jax.random.bernoulli(key, 0.5, y.shape), jnp.sin(y[places]), 0) * y

        keys = jax.random.split(jax.random.key(3), 2)
        return jax.grad(lambda y: jnp.sum(layer(layer(y, keys[0]), keys[1])))(x)

    def inputs(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        return random_array(shape, dtype, seed) if dtype == "float32" else np.arange(shape[0], dtype=dtype)[::-1].copy()

    check(f, [("n", "float32"), ("n", "int32")], [{"n": n} for n in (2, 17)], inputs=inputs, ulps=64, floor=1.0)


def barriers(x: jax.Array, y: jax.Array, n: jax.Array, z: jax.Array) -> Any:
    """Values of all kinds through barriers: returned, returned twice, unread, complex, integers, made from nothing."""
    a, b, c, d = jax.lax.optimization_barrier((x, jnp.tanh(y), n + 1, z * 2))
    ones, e, wide = jax.lax.optimization_barrier((jnp.ones_like(x), a, jnp.broadcast_to(y[0], x.shape)))
    unread, f = jax.lax.optimization_barrier((jnp.exp(x), jnp.sin(b)))
    return x, a, e, e + ones, wide * x, jnp.cos(b) + x.sum(), b, c, d, f


def test_values_of_all_kinds() -> None:
    specs = [("n", "float32"), ("n", "float32"), ("n", "int32"), ("n", "complex64")]
    sizes = [{"n": n} for n in (1, 3, 17)]
    check(barriers, specs, sizes, ulps=8, floor=16.0)


def test_loops_and_branches() -> None:
    def f(x: jax.Array, y: jax.Array) -> Any:
        def body(_: Any, carried: Any) -> Any:
            u, v, w = jax.lax.optimization_barrier(carried)
            return v, u + jax.lax.optimization_barrier((jnp.sin(v), w))[0], w

        u, v, w = jax.lax.fori_loop(0, 3, body, jax.lax.optimization_barrier((x, x, y)))
        return jax.lax.cond(x.sum() > 0, lambda: jax.lax.optimization_barrier((u, v)), lambda: (v, w)), w

    for seed in (0, 1):
        arrays = [random_array((17,), "float32", seed + i) for i in range(2)]
        got = shlo_disc.compile(f, args=[("n", "float32")] * 2, options=GUARDED)(*arrays)
        assert_same(got, run_xla(f, arrays), ulps=8, floor=1.0)


def test_what_is_behind_a_barrier_is_one_kernel_still() -> None:
    def f(x: jax.Array, y: jax.Array) -> Any:
        a, b = jax.lax.optimization_barrier((x, y))
        return jnp.tanh(a * b + 1) / (1 + jnp.exp(b))

    executable = check(f, [("n", "float32")] * 2, [{"n": 33}], ulps=8)
    assert [k.kind for k in executable.kernels] == ["loop"]


def test_a_barrier_of_one_value_orders_nothing() -> None:
    def f(x: jax.Array) -> Any:
        return jnp.sin(jax.lax.optimization_barrier(jnp.exp(x))) + 1

    executable = check(f, [("n", "float32")], [{"n": 33}], ulps=8, floor=1.0)
    assert [k.kind for k in executable.kernels] == ["loop"]
