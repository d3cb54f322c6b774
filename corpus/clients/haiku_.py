# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks by Haiku."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp

from corpus.registry import integers, key, normal, program, weights

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _applied(network: Callable[..., Any], *inputs: Any, gradient: bool = False) -> Built:
    model = hk.without_apply_rng(hk.transform(network))
    found = weights(model.init, key(), *inputs)

    def apply(weights: Any, *inputs: Any) -> Any:
        return model.apply(weights, *inputs)

    def derived(weights: Any, *inputs: Any) -> Any:
        return jax.grad(lambda w: jnp.mean(model.apply(w, *inputs) ** 2))(weights)

    return derived if gradient else apply, (found, *inputs)


def _pictures(x: Any) -> Any:
    x = jax.nn.relu(hk.Conv2D(4, 3, stride=2)(x))
    x = hk.avg_pool(hk.Conv2D(4, 3)(x), 2, 1, "VALID")
    return hk.Linear(3)(jnp.mean(x, axis=(1, 2)))


def _attention(x: Any) -> Any:
    x = hk.LayerNorm(-1, True, True)(x)
    return x + hk.MultiHeadAttention(2, 4, w_init=hk.initializers.VarianceScaling(1.0), model_size=8)(x, x, x)


def _lstm(x: Any) -> Any:
    core = hk.LSTM(6)
    found, _ = hk.dynamic_unroll(core, x, core.initial_state(x.shape[1]))
    return found


@program()
def mlp(size: int) -> Built:
    return _applied(lambda x: hk.nets.MLP([16, 3])(x), normal(size, 4))


@program()
def mlp_gradient(size: int) -> Built:
    return _applied(lambda x: hk.nets.MLP([16, 3])(x), normal(size, 4), gradient=True)


@program()
def cnn(size: int) -> Built:
    return _applied(_pictures, normal(2, size, size, 1))


@program()
def cnn_gradient(size: int) -> Built:
    return _applied(_pictures, normal(2, size, size, 1), gradient=True)


@program()
def attention(size: int) -> Built:
    return _applied(_attention, normal(2, size, 8))


@program()
def lstm_gradient(size: int) -> Built:
    return _applied(_lstm, normal(size, 2, 3), gradient=True)


@program()
def group_norm_of_pictures(size: int) -> Built:
    return _applied(lambda x: hk.GroupNorm(2)(x), normal(2, size, size, 4))


@program()
def embedding(size: int) -> Built:
    return _applied(lambda t: hk.Linear(3)(hk.Embed(20, 8)(t)), integers(20, 2, size))
