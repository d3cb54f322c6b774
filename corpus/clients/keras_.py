# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers and models by Keras, on its backend for JAX."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ["KERAS_BACKEND"] = "jax"

import jax
import jax.numpy as jnp
import keras

from corpus.registry import integers, normal, program

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _applied(model: Any, *inputs: Any, gradient: bool = False) -> Built:
    """Weights that are the same each time: Keras draws others for each model."""
    model.build([x.shape for x in inputs] if len(inputs) > 1 else inputs[0].shape)
    weights = [0.3 * normal(*v.shape, seed=number) for number, v in enumerate(model.trainable_variables)]
    others = [v.value for v in model.non_trainable_variables]

    def apply(weights: Any, others: Any, *inputs: Any) -> Any:
        return model.stateless_call(weights, others, *inputs)[0]

    def derived(weights: Any, others: Any, *inputs: Any) -> Any:
        return jax.grad(lambda w: jnp.mean(model.stateless_call(w, others, *inputs, training=True)[0] ** 2))(weights)

    return derived if gradient else apply, (weights, others, *inputs)


def _sequential(*layers: Any) -> Any:
    return keras.Sequential(layers)


def _pictures() -> Any:
    return _sequential(
        keras.layers.Conv2D(4, 3, strides=2, padding="same", activation="relu"),
        keras.layers.BatchNormalization(),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(3),
    )


@program()
def dense(size: int) -> Built:
    return _applied(_sequential(keras.layers.Dense(16, activation="gelu"), keras.layers.Dense(3)), normal(size, 4))


@program()
def dense_gradient(size: int) -> Built:
    layers = keras.layers.Dense(16, activation="gelu"), keras.layers.Dense(3)
    return _applied(_sequential(*layers), normal(size, 4), gradient=True)


@program()
def pictures(size: int) -> Built:
    return _applied(_pictures(), normal(2, size, size, 1))


@program()
def pictures_gradient(size: int) -> Built:
    return _applied(_pictures(), normal(2, size, size, 1), gradient=True)


@program()
def lstm(size: int) -> Built:
    return _applied(_sequential(keras.layers.LSTM(6, return_sequences=True)), normal(2, size, 3))


@program()
def gru_gradient(size: int) -> Built:
    return _applied(_sequential(keras.layers.GRU(6)), normal(2, size, 3), gradient=True)


@program()
def embedding_and_convolution(size: int) -> Built:
    layers = (
        keras.layers.Embedding(20, 8),
        keras.layers.Conv1D(4, 3, padding="causal"),
        keras.layers.GlobalMaxPooling1D(),
    )
    return _applied(_sequential(*layers), integers(20, 2, size))


@program()
def upsampling(size: int) -> Built:
    layers = keras.layers.UpSampling2D(2), keras.layers.SeparableConv2D(3, 3, padding="same")
    return _applied(_sequential(*layers), normal(1, size, size, 2))
