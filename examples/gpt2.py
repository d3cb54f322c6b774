# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GPT-2 (Radford et al., 2019): pre-normalised decoder, causal mask, tanh GELU, tied output weights."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from examples.layers import Initializer, Params, attention, causal_bias, dense, gelu_tanh, init_mlp, layer_norm, mlp
from examples.model import export_function, symbolic_sizes

DIMS = "b, s"


@dataclass(frozen=True)
class Config:
    """Sizes of the decoder. `max_length` bounds the symbol s."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    max_length: int = 1024
    epsilon: float = 1e-5


BASE = Config(layers=12, width=768, heads=12, vocabulary=50257)
SMALL = Config(layers=2, width=64, heads=4, vocabulary=257, max_length=40)


def init(config: Config, seed: int | None = 0) -> Params:
    """Random weights from `seed`; 124 million numbers for BASE."""
    draw = Initializer(seed)
    return {
        "token": draw.normal(config.vocabulary, config.width),
        "position": draw.normal(config.max_length, config.width),
        "layers": [_init_layer(draw, config.width) for _ in range(config.layers)],
        "norm": draw.norm(config.width),
    }


def _init_layer(draw: Initializer, width: int) -> Params:
    return {
        "attention_norm": draw.norm(width),
        "qkv": draw.dense(width, 3 * width),
        "output": draw.dense(width, width),
        "mlp_norm": draw.norm(width),
        "mlp": init_mlp(draw, width, 4 * width),
    }


def forward(params: Params, tokens: jax.Array, *, config: Config) -> jax.Array:
    """Logits [b, s, vocabulary] of tokens [b, s]; position i sees tokens 0..i."""
    length = tokens.shape[1]
    x = params["token"][tokens] + params["position"][:length]
    bias = causal_bias(length)
    for layer in params["layers"]:
        x = _layer(layer, x, bias, config)
    return layer_norm(params["norm"], x, config.epsilon) @ params["token"].T


def _layer(params: Params, x: jax.Array, bias: jax.Array, config: Config) -> jax.Array:
    normed = layer_norm(params["attention_norm"], x, config.epsilon)
    query, key, value = jnp.split(dense(params["qkv"], normed), 3, axis=-1)
    x = x + dense(params["output"], attention(query, key, value, config.heads, bias))
    return x + mlp(params["mlp"], layer_norm(params["mlp_norm"], x, config.epsilon), gelu_tanh)


def make_inputs(config: Config, b: int, s: int, *, seed: int = 0) -> tuple[np.ndarray]:
    """Random int32 tokens [b, s]."""
    return (np.random.default_rng(seed).integers(0, config.vocabulary, (b, s), dtype=np.int32),)


def limits(config: Config) -> tuple[int, int]:
    """The largest b and s to try; s may not grow further, b may."""
    return 4, config.max_length


def export(config: Config, dims: str = DIMS) -> jax.export.Exported:
    """The program for symbolic (b, s), or for fixed sizes such as dims="2, 7"."""
    shape = symbolic_sizes(dims, [f"s <= {config.max_length}"])
    inputs = [jax.ShapeDtypeStruct(shape, jnp.int32)]
    return export_function(functools.partial(forward, config=config), init(config, None), inputs)
