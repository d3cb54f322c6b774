# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A multilayer perceptron on a batch of rows: dense layers with a tanh-approximated GELU between them."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from examples.layers import Initializer, Params, dense, gelu_tanh
from examples.model import export_function, symbolic_sizes

DIMS = "b"


@dataclass(frozen=True)
class Config:
    """Sizes of the rows, of the hidden layers and of the results."""

    inputs: int
    width: int
    layers: int
    outputs: int


SMALL = Config(inputs=9, width=16, layers=2, outputs=5)


def init(config: Config, seed: int | None = 0) -> Params:
    """Random weights from `seed`."""
    draw = Initializer(seed)
    widths = [config.inputs, *[config.width] * config.layers]
    return {
        "hidden": [draw.dense(*pair) for pair in zip(widths, widths[1:], strict=False)],
        "last": draw.dense(config.width, config.outputs),
    }


def forward(params: Params, x: jax.Array, *, config: Config) -> jax.Array:
    """Results [b, outputs] of rows [b, inputs]."""
    for layer in params["hidden"]:
        x = gelu_tanh(dense(layer, x))
    return dense(params["last"], x)


def make_inputs(config: Config, b: int, *, seed: int = 0) -> tuple[np.ndarray]:
    """Random float32 rows [b, inputs]."""
    return (np.random.default_rng(seed).standard_normal((b, config.inputs), dtype=np.float32),)


def limits(config: Config) -> tuple[int]:
    """The largest batch to try; it may grow further."""
    return (1024,)


def export(config: Config, dims: str = DIMS) -> jax.export.Exported:
    """The program for symbolic b, or for a fixed one such as dims="7"."""
    inputs = [jax.ShapeDtypeStruct((*symbolic_sizes(dims), config.inputs), jnp.float32)]
    return export_function(functools.partial(forward, config=config), init(config, None), inputs)
