# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Flax, the older API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from corpus.registry import integers, key, normal, program, weights

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _applied(model: nn.Module, *inputs: Any, gradient: bool = False) -> Built:
    variables = weights(model.init, key(), *inputs)

    def apply(variables: Any, *inputs: Any) -> Any:
        return model.apply(variables, *inputs)

    def derived(variables: Any, *inputs: Any) -> Any:
        return jax.grad(lambda v: jnp.mean(jnp.square(model.apply(v, *inputs))))(variables)

    return derived if gradient else apply, (variables, *inputs)


class Classifier(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        return nn.Dense(3)(nn.relu(nn.Dense(16)(x)))


class Pictures(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.relu(nn.Conv(4, (3, 3), strides=2)(x))
        x = nn.max_pool(nn.Conv(8, (3, 3))(x), (2, 2), (1, 1))
        return nn.Dense(3)(jnp.mean(x, axis=(1, 2)))


class Encoder(nn.Module):
    @nn.compact
    def __call__(self, tokens: Any) -> Any:
        x = nn.Embed(20, 16)(tokens)
        x = x + nn.SelfAttention(num_heads=2)(nn.LayerNorm()(x))
        return nn.Dense(20)(nn.gelu(nn.Dense(32)(nn.LayerNorm()(x))))


@program()
def mlp(size: int) -> Built:
    return _applied(Classifier(), normal(size, 4))


@program()
def mlp_gradient(size: int) -> Built:
    return _applied(Classifier(), normal(size, 4), gradient=True)


@program()
def cnn(size: int) -> Built:
    return _applied(Pictures(), normal(2, size, size, 1))


@program()
def cnn_gradient(size: int) -> Built:
    return _applied(Pictures(), normal(2, size, size, 1), gradient=True)


@program()
def encoder(size: int) -> Built:
    return _applied(Encoder(), integers(20, 2, size))


@program()
def encoder_gradient(size: int) -> Built:
    return _applied(Encoder(), integers(20, 2, size), gradient=True)


@program()
def lstm(size: int) -> Built:
    return _applied(nn.RNN(nn.OptimizedLSTMCell(6)), normal(2, size, 3))


@program()
def batch_norm(size: int) -> Built:
    model = nn.BatchNorm(use_running_average=False)
    x = normal(size, 4)
    variables = weights(model.init, key(), x)

    def apply(variables: Any, x: Any) -> Any:
        return model.apply(variables, x, mutable=["batch_stats"])

    return apply, (variables, x)


@program()
def transposed_convolution(size: int) -> Built:
    return _applied(nn.ConvTranspose(3, (3, 3), strides=(2, 2)), normal(1, size, size, 2))


@program()
def dropout(size: int) -> Built:
    model = nn.Dropout(0.5, deterministic=False)

    def apply(seed: Any, x: Any) -> Any:
        return model.apply({}, x, rngs={"dropout": seed})

    return apply, (key(), normal(size, 4))
