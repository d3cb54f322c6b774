# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One decoding step of the GPT-2 in `examples.gpt2`: a token in, logits and the keys and values grown by one out."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from examples.gpt2 import BASE, SMALL, Config, init
from examples.layers import Params, attention, dense, gelu_tanh, layer_norm, mlp
from examples.model import export_function, symbolic_sizes

DIMS = "b, c"


def forward(params: Params, token: jax.Array, cache: Any, *, config: Config) -> Any:
    """Logits [b, vocabulary] of the token that follows `token` [b], and the grown cache.

    cache holds, for each layer, a pair of keys and values [b, c, width] of the c tokens before.
    """
    position = cache[0][0].shape[1]
    x = (params["token"][token] + jax.lax.dynamic_index_in_dim(params["position"], position, keepdims=False))[:, None]
    grown = []
    for layer, before in zip(params["layers"], cache, strict=True):
        x, pair = _layer(layer, x, before, config)
        grown.append(pair)
    return layer_norm(params["norm"], x[:, 0], config.epsilon) @ params["token"].T, grown


def _layer(params: Params, x: jax.Array, before: Any, config: Config) -> Any:
    """The token [b, 1, width] through one layer, and the layer's keys and values with the token's own."""
    normed = layer_norm(params["attention_norm"], x, config.epsilon)
    query, *own = jnp.split(dense(params["qkv"], normed), 3, axis=-1)
    keys, values = (jnp.concatenate([old, new], axis=1) for old, new in zip(before, own, strict=True))
    x = x + dense(params["output"], attention(query, keys, values, config.heads, None))
    return x + mlp(params["mlp"], layer_norm(params["mlp_norm"], x, config.epsilon), gelu_tanh), (keys, values)


def make_inputs(config: Config, b: int, c: int, *, seed: int = 0) -> tuple[Any, ...]:
    """A random int32 token [b], and normal numbers for the keys and values of c tokens."""
    random = np.random.default_rng(seed)
    draw = lambda: random.standard_normal((b, c, config.width), dtype=np.float32)  # noqa: E731
    return random.integers(0, config.vocabulary, b, dtype=np.int32), [(draw(), draw()) for _ in range(config.layers)]


def limits(config: Config) -> tuple[int, int]:
    """The largest b and c to try; c may not grow further, b may."""
    return 4, config.max_length - 1


def export(config: Config, dims: str = DIMS) -> jax.export.Exported:
    """The program for symbolic (b, c), or for fixed sizes such as dims="2, 7"."""
    b, c = symbolic_sizes(dims, [f"c <= {config.max_length - 1}"])
    cache = [(jax.ShapeDtypeStruct((b, c, config.width), jnp.float32),) * 2] * config.layers
    inputs: list[Any] = [jax.ShapeDtypeStruct((b,), jnp.int32), cache]
    return export_function(functools.partial(forward, config=config), init(config, None), inputs)


__all__ = ["BASE", "DIMS", "SMALL", "Config", "export", "forward", "init", "limits", "make_inputs"]
