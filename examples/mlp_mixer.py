# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MLP-Mixer (Tolstikhin et al., 2021) on a varying number of images.

The token-mixing weights have one row a patch, so the image size belongs to the weights and only the batch is symbolic.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from examples.layers import Initializer, Params, dense, gelu_tanh, init_mlp, layer_norm, mlp
from examples.model import export_function, symbolic_sizes

DIMS = "b"


@dataclass(frozen=True)
class Config:
    """Sizes of the classifier; `image` and `patch` are edge lengths in pixels, and patch divides image."""

    layers: int
    width: int
    token_hidden: int
    channel_hidden: int
    classes: int
    image: int = 224
    patch: int = 16
    epsilon: float = 1e-6

    @property
    def grid(self) -> int:
        """Patches along one edge."""
        return self.image // self.patch


BASE = Config(layers=12, width=768, token_hidden=384, channel_hidden=3072, classes=1000)
SMALL = Config(layers=2, width=48, token_hidden=20, channel_hidden=96, classes=10, image=20, patch=4)


def init(config: Config, seed: int | None = 0) -> Params:
    """Random weights from `seed`; 60 million numbers for BASE."""
    draw = Initializer(seed)
    return {
        "patch": draw.dense(config.patch * config.patch * 3, config.width),
        "layers": [_init_layer(draw, config) for _ in range(config.layers)],
        "norm": draw.norm(config.width),
        "head": draw.dense(config.width, config.classes),
    }


def _init_layer(draw: Initializer, config: Config) -> Params:
    return {
        "token_norm": draw.norm(config.width),
        "token_mlp": init_mlp(draw, config.grid * config.grid, config.token_hidden),
        "channel_norm": draw.norm(config.width),
        "channel_mlp": init_mlp(draw, config.width, config.channel_hidden),
    }


def patchify(images: jax.Array, patch: int) -> jax.Array:
    """Cuts images [b, g * patch, g * patch, 3] into g * g patches, [b, g * g, patch * patch * 3]."""
    batch, edge, _, colours = images.shape
    grid = edge // patch
    tiles = images.reshape(batch, grid, patch, grid, patch, colours).transpose(0, 1, 3, 2, 4, 5)
    return tiles.reshape(batch, grid * grid, patch * patch * colours)


def forward(params: Params, images: jax.Array, *, config: Config) -> jax.Array:
    """Class logits [b, classes] of images [b, image, image, 3]."""
    x = dense(params["patch"], patchify(images, config.patch))
    for layer in params["layers"]:
        tokens = layer_norm(layer["token_norm"], x, config.epsilon).swapaxes(1, 2)
        x = x + mlp(layer["token_mlp"], tokens, gelu_tanh).swapaxes(1, 2)
        x = x + mlp(layer["channel_mlp"], layer_norm(layer["channel_norm"], x, config.epsilon), gelu_tanh)
    pooled = jnp.mean(layer_norm(params["norm"], x, config.epsilon), axis=1)
    return dense(params["head"], pooled)


def make_inputs(config: Config, b: int, *, seed: int = 0) -> tuple[np.ndarray]:
    """Random float32 images [b, image, image, 3]."""
    shape = (b, config.image, config.image, 3)
    return (np.random.default_rng(seed).standard_normal(shape, dtype=np.float32),)


def limits(config: Config) -> tuple[int]:
    """The largest b to try; it may grow further."""
    return (24,)


def export(config: Config, dims: str = DIMS) -> jax.export.Exported:
    """The program for symbolic b, or for a fixed size such as dims="7"."""
    (batch,) = symbolic_sizes(dims)
    inputs = [jax.ShapeDtypeStruct((batch, config.image, config.image, 3), jnp.float32)]
    return export_function(functools.partial(forward, config=config), init(config, None), inputs)
