# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Equinox: modules, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from corpus.registry import integers, key, normal, program, weights

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _applied(make: Callable[[Any], Any], *inputs: Any, call: Callable[..., Any] | None = None) -> Built:
    static = eqx.filter(eqx.filter_eval_shape(make, key()), lambda leaf: not isinstance(leaf, jax.ShapeDtypeStruct))
    arrays = weights(lambda seed: eqx.filter(make(seed), eqx.is_array), key())

    def apply(arrays: Any, *inputs: Any) -> Any:
        model = eqx.combine(arrays, static)
        return call(model, *inputs) if call else jax.vmap(model)(*inputs)

    return apply, (arrays, *inputs)


@program()
def mlp(size: int) -> Built:
    return _applied(lambda seed: eqx.nn.MLP(4, 2, 16, 2, key=seed), normal(size, 4))


@program()
def mlp_gradient(size: int) -> Built:
    def loss(model: Any, x: Any) -> Any:
        return eqx.filter_grad(lambda model: jnp.mean(jax.vmap(model)(x) ** 2))(model)

    return _applied(lambda seed: eqx.nn.MLP(4, 2, 16, 2, key=seed), normal(size, 4), call=loss)


@program()
def convolutions(size: int) -> Built:
    """Two layers with strides and a pooling: sizes are floors of halves."""

    def make(seed: Any) -> Any:
        a, b = jax.random.split(seed)
        layers = [
            eqx.nn.Conv2d(1, 4, 3, stride=2, padding=1, key=a),
            eqx.nn.Lambda(jax.nn.relu),
            eqx.nn.Conv2d(4, 8, 3, padding=1, key=b),
            eqx.nn.AvgPool2d(2, 1),
        ]
        return eqx.nn.Sequential(layers)

    return _applied(make, normal(2, 1, size, size))


@program()
def convolution_gradient(size: int) -> Built:
    def gradient(layer: Any, x: Any) -> Any:
        return eqx.filter_grad(lambda layer: jnp.sum(jax.vmap(layer)(x) ** 2))(layer)

    return _applied(
        lambda seed: eqx.nn.Conv1d(2, 3, 3, stride=2, padding=1, key=seed), normal(2, 2, size), call=gradient
    )


@program()
def attention(size: int) -> Built:
    def call(layer: Any, x: Any) -> Any:
        return layer(x, x, x)

    return _applied(lambda seed: eqx.nn.MultiheadAttention(2, 8, key=seed), normal(size, 8), call=call)


@program()
def gru_scan(size: int) -> Built:
    def call(cell: Any, x: Any) -> Any:
        return jax.lax.scan(lambda h, step: (cell(step, h),) * 2, jnp.zeros(5), x)

    return _applied(lambda seed: eqx.nn.GRUCell(3, 5, key=seed), normal(size, 3), call=call)


@program()
def embedding_and_norm(size: int) -> Built:
    return _applied(
        lambda seed: eqx.nn.Sequential([eqx.nn.Embedding(20, 8, key=seed), eqx.nn.LayerNorm(8)]), integers(20, size)
    )


@program()
def checked_error(size: int) -> Built:
    """error_if, on which much of Equinox's world stands."""

    def call(x: Any) -> Any:
        x = eqx.error_if(x, jnp.any(x > 100), "too large")
        return jnp.cumsum(x)

    return call, (normal(size),)


@program()
def bounded_while(size: int) -> Built:
    def call(x: Any) -> Any:
        def total(x: Any) -> Any:
            step = lambda c: (c[0] + 1, c[1] * 0.5 + jnp.sum(x))  # noqa: E731
            return eqx.internal.while_loop(lambda c: c[0] < 5, step, (0, x), max_steps=8, kind="checkpointed")[1]

        return jax.grad(lambda x: jnp.sum(total(x)))(x)

    return call, (normal(size),)
