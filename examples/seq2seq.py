# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One decoding step of a sequence-to-sequence transformer (Vaswani et al., 2017): a token in, logits and caches out.

The keys and values of the c tokens before are in a cache, which grows by one with every step; those of the source
sentence, of s tokens, were computed once by the encoder. One compile serves every step of every sentence.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from examples.layers import Initializer, Params, attention, dense, init_mlp, layer_norm, mlp
from examples.model import export_function, symbolic_sizes

DIMS = "b, c, s"


@dataclass(frozen=True)
class Config:
    """Sizes of the decoder. `max_length` bounds the symbol c, and is the longest source to try."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    max_length: int
    epsilon: float = 1e-5


BASE = Config(layers=6, width=512, heads=8, vocabulary=32000, max_length=256)
SMALL = Config(layers=2, width=32, heads=4, vocabulary=61, max_length=24)


def init(config: Config, seed: int | None = 0) -> Params:
    """Random weights from `seed`; 42 million numbers for BASE."""
    draw = Initializer(seed)
    return {
        "token": draw.normal(config.vocabulary, config.width),
        "position": draw.normal(config.max_length + 1, config.width),
        "layers": [_init_layer(draw, config.width) for _ in range(config.layers)],
        "norm": draw.norm(config.width),
    }


def _init_layer(draw: Initializer, width: int) -> Params:
    return {
        "self_norm": draw.norm(width),
        "qkv": draw.dense(width, 3 * width),
        "self_output": draw.dense(width, width),
        "cross_norm": draw.norm(width),
        "query": draw.dense(width, width),
        "cross_output": draw.dense(width, width),
        "mlp_norm": draw.norm(width),
        "mlp": init_mlp(draw, width, 4 * width),
    }


def forward(params: Params, token: jax.Array, cache: Any, source: Any, *, config: Config) -> Any:
    """Logits [b, vocabulary] of the token that follows `token` [b], and the grown cache.

    cache and source hold, for each layer, a pair of keys and values: [b, c, width] of the tokens before and [b, s,
    width] of the source.
    """
    position = cache[0][0].shape[1]
    x = (params["token"][token] + jax.lax.dynamic_index_in_dim(params["position"], position, keepdims=False))[:, None]
    grown = []
    for layer, before, encoded in zip(params["layers"], cache, source, strict=True):
        x, pair = _layer(layer, x, before, encoded, config)
        grown.append(pair)
    return layer_norm(params["norm"], x[:, 0], config.epsilon) @ params["token"].T, grown


def _layer(params: Params, x: jax.Array, before: Any, encoded: Any, config: Config) -> Any:
    """The token [b, 1, width] through one layer, and the layer's keys and values with the token's own."""
    query, *own = jnp.split(dense(params["qkv"], layer_norm(params["self_norm"], x, config.epsilon)), 3, axis=-1)
    keys, values = (jnp.concatenate([old, new], axis=1) for old, new in zip(before, own, strict=True))
    x = x + dense(params["self_output"], attention(query, keys, values, config.heads, None))
    query = dense(params["query"], layer_norm(params["cross_norm"], x, config.epsilon))
    x = x + dense(params["cross_output"], attention(query, encoded[0], encoded[1], config.heads, None))
    return x + mlp(params["mlp"], layer_norm(params["mlp_norm"], x, config.epsilon), jax.nn.relu), (keys, values)


def make_inputs(config: Config, b: int, c: int, s: int, *, seed: int = 0) -> tuple[Any, ...]:
    """A random int32 token [b], and normal numbers for the keys and values of c tokens and of a source of s."""
    random = np.random.default_rng(seed)
    draw = lambda length: random.standard_normal((b, length, config.width), dtype=np.float32)  # noqa: E731
    token = random.integers(0, config.vocabulary, b, dtype=np.int32)
    cache, source = ([(draw(length), draw(length)) for _ in range(config.layers)] for length in (c, s))
    return token, cache, source


def limits(config: Config) -> tuple[int, int, int]:
    """The largest b, c and s to try; c may not grow further, b and s may."""
    return 8, config.max_length, config.max_length


def export(config: Config, dims: str = DIMS) -> jax.export.Exported:
    """The program for symbolic (b, c, s), or for fixed sizes such as dims="2, 7, 9"."""
    b, c, s = symbolic_sizes(dims, [f"c <= {config.max_length}"])
    pair = lambda length: (jax.ShapeDtypeStruct((b, length, config.width), jnp.float32),) * 2  # noqa: E731
    inputs: list[Any] = [jax.ShapeDtypeStruct((b,), jnp.int32), [pair(c)] * config.layers, [pair(s)] * config.layers]
    return export_function(functools.partial(forward, config=config), init(config, None), inputs)
