# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vision transformer (Dosovitskiy et al., 2020) on a varying number of images and of patches an image."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from examples.layers import Initializer, Params, attention, dense, gelu_exact, init_mlp, layer_norm, mlp
from examples.model import export_function, symbolic_sizes

DIMS = "b, p"


@dataclass(frozen=True)
class Config:
    """Sizes of the classifier. A patch has `patch` by `patch` pixels of 3 colours; `max_patches` bounds p."""

    layers: int
    width: int
    heads: int
    hidden: int
    classes: int
    patch: int = 16
    max_patches: int = 196
    epsilon: float = 1e-6

    @property
    def patch_values(self) -> int:
        """Numbers in one patch."""
        return self.patch * self.patch * 3


BASE = Config(layers=12, width=768, heads=12, hidden=3072, classes=1000)
SMALL = Config(layers=2, width=48, heads=3, hidden=96, classes=10, patch=4, max_patches=31)


def init(config: Config, seed: int | None = 0) -> Params:
    """Random weights from `seed`; 86 million numbers for BASE."""
    draw = Initializer(seed)
    return {
        "patch": draw.dense(config.patch_values, config.width),
        "class": draw.normal(config.width),
        "position": draw.normal(config.max_patches + 1, config.width),
        "layers": [_init_layer(draw, config) for _ in range(config.layers)],
        "norm": draw.norm(config.width),
        "head": draw.dense(config.width, config.classes),
    }


def _init_layer(draw: Initializer, config: Config) -> Params:
    width = config.width
    return {
        "attention_norm": draw.norm(width),
        "qkv": draw.dense(width, 3 * width),
        "output": draw.dense(width, width),
        "mlp_norm": draw.norm(width),
        "mlp": init_mlp(draw, width, config.hidden),
    }


def forward(params: Params, patches: jax.Array, *, config: Config) -> jax.Array:
    """Class logits [b, classes] of patches [b, p, patch * patch * 3], read from the class token's final state."""
    batch, count, _ = patches.shape
    token = jnp.broadcast_to(params["class"], (batch, 1, config.width))
    x = jnp.concatenate([token, dense(params["patch"], patches)], axis=1) + params["position"][: count + 1]
    for layer in params["layers"]:
        x = _layer(layer, x, config)
    return dense(params["head"], layer_norm(params["norm"], x[:, 0], config.epsilon))


def _layer(params: Params, x: jax.Array, config: Config) -> jax.Array:
    normed = layer_norm(params["attention_norm"], x, config.epsilon)
    query, key, value = jnp.split(dense(params["qkv"], normed), 3, axis=-1)
    x = x + dense(params["output"], attention(query, key, value, config.heads, None))
    return x + mlp(params["mlp"], layer_norm(params["mlp_norm"], x, config.epsilon), gelu_exact)


def make_inputs(config: Config, b: int, p: int, *, seed: int = 0) -> tuple[np.ndarray]:
    """Random float32 patches [b, p, patch * patch * 3]."""
    return (np.random.default_rng(seed).standard_normal((b, p, config.patch_values), dtype=np.float32),)


def limits(config: Config) -> tuple[int, int]:
    """The largest b and p to try; p may not grow further, b may."""
    return 8, config.max_patches


def export(config: Config, dims: str = DIMS) -> jax.export.Exported:
    """The program for symbolic (b, p), or for fixed sizes such as dims="2, 7"."""
    batch, count = symbolic_sizes(dims, [f"p <= {config.max_patches}"])
    inputs = [jax.ShapeDtypeStruct((batch, count, config.patch_values), jnp.float32)]
    return export_function(functools.partial(forward, config=config), init(config, None), inputs)
