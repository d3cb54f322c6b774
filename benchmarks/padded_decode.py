# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step of decoding for `jax.jit` on padded caches: that of `examples.gpt2_decode` with a mask of the valid keys."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from examples.gpt2 import Config
from examples.layers import Params, attention, dense, gelu_tanh, layer_norm, mlp


def forward(params: Params, token: jax.Array, lengths: jax.Array, cache: Any, *, config: Config) -> Any:
    """Logits [b, vocabulary] of the token that follows `token` [b], and for each layer its key and value [b, 1, width].

    cache holds, for each layer, a pair of keys and values [b, c, width], of which the first lengths[i] of row i are
    valid; lengths is int32 [b], at least 0 and at most c. What lies behind them has no influence if it is finite.
    """
    x = (params["token"][token] + params["position"][lengths])[:, None]
    is_valid = jnp.arange(cache[0][0].shape[1] + 1) < lengths[:, None]
    bias = jnp.where(is_valid.at[:, -1].set(True), np.float32(0), np.float32(-1e9))[:, None, None]
    own = []
    for layer, before in zip(params["layers"], cache, strict=True):
        normed = layer_norm(layer["attention_norm"], x, config.epsilon)
        query, *pair = jnp.split(dense(layer["qkv"], normed), 3, axis=-1)
        keys, values = (jnp.concatenate([old, new], axis=1) for old, new in zip(before, pair, strict=True))
        x = x + dense(layer["output"], attention(query, keys, values, config.heads, bias))
        x = x + mlp(layer["mlp"], layer_norm(layer["mlp_norm"], x, config.epsilon), gelu_tanh)
        own.append(pair)
    return layer_norm(params["norm"], x[:, 0], config.epsilon) @ params["token"].T, own


def padded(arrays: list[np.ndarray], rows: int, length: int) -> np.ndarray:
    """Arrays [b, n, ...] below each other in one [rows, length, ...], with zeros behind each row and below the last."""
    whole = np.zeros((rows, length, *arrays[0].shape[2:]), arrays[0].dtype)
    start = 0
    for array in arrays:
        whole[start : start + len(array), : array.shape[1]] = array
        start += len(array)
    return whole


__all__ = ["forward", "padded"]
