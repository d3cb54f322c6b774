# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Flax, the newer API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from flax import nnx

from corpus.registry import integers, normal, program, weights

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _applied(make: Callable[[nnx.Rngs], Any], *inputs: Any, gradient: bool = False) -> Built:
    graph = nnx.split(nnx.eval_shape(lambda: make(nnx.Rngs(0))))[0]
    state = weights(lambda: nnx.split(make(nnx.Rngs(0)))[1])

    def apply(state: Any, *inputs: Any) -> Any:
        return nnx.merge(graph, state)(*inputs)

    def derived(state: Any, *inputs: Any) -> Any:
        def loss(model: Any) -> Any:
            return jnp.mean(jnp.square(model(*inputs)))

        return nnx.state(nnx.grad(loss)(nnx.merge(graph, state)))

    return derived if gradient else apply, (state, *inputs)


class Layers(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.first, self.second = nnx.Linear(4, 16, rngs=rngs), nnx.Linear(16, 3, rngs=rngs)
        self.norm = nnx.LayerNorm(16, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.second(nnx.relu(self.norm(self.first(x))))


class Pictures(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.first = nnx.Conv(1, 4, (3, 3), strides=2, rngs=rngs)
        self.last = nnx.Linear(4, 3, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        x = nnx.avg_pool(nnx.relu(self.first(x)), (2, 2), strides=(1, 1))
        return self.last(jnp.mean(x, axis=(1, 2)))


class Attending(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.embed = nnx.Embed(20, 8, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(num_heads=2, in_features=8, decode=False, rngs=rngs)

    def __call__(self, tokens: Any) -> Any:
        mask = nnx.make_causal_mask(tokens)
        return self.attention(self.embed(tokens), mask=mask)


@program()
def mlp(size: int) -> Built:
    return _applied(Layers, normal(size, 4))


@program()
def mlp_gradient(size: int) -> Built:
    return _applied(Layers, normal(size, 4), gradient=True)


@program()
def cnn(size: int) -> Built:
    return _applied(Pictures, normal(2, size, size, 1))


@program()
def cnn_gradient(size: int) -> Built:
    return _applied(Pictures, normal(2, size, size, 1), gradient=True)


@program()
def causal_attention(size: int) -> Built:
    return _applied(Attending, integers(20, 2, size))


@program()
def causal_attention_gradient(size: int) -> Built:
    return _applied(Attending, integers(20, 2, size), gradient=True)


@program()
def lstm(size: int) -> Built:
    return _applied(lambda rngs: nnx.RNN(nnx.LSTMCell(3, 6, rngs=rngs)), normal(2, size, 3))
