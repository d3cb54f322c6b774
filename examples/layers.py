# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers shared by the example models: dense, layer normalisation, attention, GELU, and their random weights."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Params = dict[str, Any]


class Initializer:
    """Draws float32 weights from one NumPy generator, so that a seed fixes every bit of a model.

    Without a seed, weights have their shapes but no memory: all are one zero.
    """

    def __init__(self, seed: int | None):
        self._random = None if seed is None else np.random.default_rng(seed)

    def normal(self, *shape: int, scale: float = 0.02) -> np.ndarray:
        """Normal numbers of standard deviation `scale`."""
        if self._random is None:
            return np.broadcast_to(np.float32(0), shape)
        values = self._random.standard_normal(shape, dtype=np.float32)
        values *= np.float32(scale)
        return values

    def dense(self, inputs: int, outputs: int, bias: bool = True) -> Params:
        """Weights [inputs, outputs] of variance 1/inputs, and a small random bias so that tests notice its loss."""
        params = {"kernel": self.normal(inputs, outputs, scale=inputs**-0.5)}
        return params | {"bias": self.normal(outputs)} if bias else params

    def conv(self, height: int, width: int, inputs: int, outputs: int) -> np.ndarray:
        """Weights [height, width, inputs, outputs] of variance 2 / (height * width * inputs) (He et al., 2015)."""
        return self.normal(height, width, inputs, outputs, scale=(2.0 / (height * width * inputs)) ** 0.5)

    def moments(self, width: int) -> Params:
        """A normalisation with moments of its own: shift and mean near zero, scale and variance near one."""
        return self.norm(width) | {"mean": self.normal(width), "variance": 1.0 + np.abs(self.normal(width))}

    def norm(self, width: int) -> Params:
        """Scale near one and shift near zero, both random so that tests notice a mix-up of columns."""
        return {"scale": 1.0 + self.normal(width), "bias": self.normal(width)}


def dense(params: Params, x: jax.Array) -> jax.Array:
    """x [..., inputs] @ kernel [inputs, outputs], plus the bias when there is one."""
    y = x @ params["kernel"]
    return y + params["bias"] if "bias" in params else y


def conv(weights: jax.Array, x: jax.Array, stride: int, padding: int) -> jax.Array:
    """Convolution of [b, h, w, inputs] with weights [height, width, inputs, outputs], with zeros around the images."""
    around = ((padding, padding), (padding, padding))
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, weights, (stride, stride), around, dimension_numbers=layout)


def batch_norm(params: Params, x: jax.Array, epsilon: float) -> jax.Array:
    """Batch normalisation (Ioffe and Szegedy, 2015) over the last axis, by moments gathered in training."""
    factor = params["scale"] * jax.lax.rsqrt(params["variance"] + epsilon)
    return x * factor + (params["bias"] - params["mean"] * factor)


def layer_norm(params: Params, x: jax.Array, epsilon: float) -> jax.Array:
    """Layer normalisation (Ba et al., 2016) over the last axis."""
    mean = jnp.mean(x, axis=-1, keepdims=True)
    centred = x - mean
    variance = jnp.mean(centred * centred, axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + epsilon) * params["scale"] + params["bias"]


def gelu_exact(x: jax.Array) -> jax.Array:
    """x * Phi(x) by the error function (Hendrycks and Gimpel, 2016), as BERT has it."""
    return x * 0.5 * (1.0 + jax.lax.erf(x * 0.5**0.5))


def gelu_tanh(x: jax.Array) -> jax.Array:
    """The tanh approximation of GELU, as GPT-2 has it."""
    inner = (2.0 / np.pi) ** 0.5 * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1.0 + jnp.tanh(inner))


def attention(query: jax.Array, key: jax.Array, value: jax.Array, heads: int, bias: jax.Array | None) -> jax.Array:
    """Scaled dot-product attention (Vaswani et al., 2017) over `heads` equal slices of the last axis.

    query is [b, q, d], key and value are [b, k, d]; `bias` broadcasts against the scores [b, heads, q, k]. Returns
    [b, q, d].
    """
    batch, queries, width = query.shape
    split = lambda x: x.reshape(batch, x.shape[1], heads, width // heads)  # noqa: E731
    scores = jnp.einsum("bqhd,bkhd->bhqk", split(query), split(key)) * (width // heads) ** -0.5
    weights = jax.nn.softmax(scores if bias is None else scores + bias.astype(scores.dtype), axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, split(value)).reshape(batch, queries, width)


def causal_bias(length: Any) -> jax.Array:
    """Additive mask [length, length]: 0 where the key is not after the query, else -1e9. `length` may be symbolic."""
    position = jnp.arange(length)
    return jnp.where(position[None, :] <= position[:, None], np.float32(0.0), np.float32(-1e9))


def mlp(params: Params, x: jax.Array, activation: Any) -> jax.Array:
    """Two dense layers, "up" and "down", with an activation between them."""
    return dense(params["down"], activation(dense(params["up"], x)))


def init_mlp(draw: Initializer, width: int, hidden: int) -> Params:
    """The weights of `mlp` for inputs and outputs of `width`."""
    return {"up": draw.dense(width, hidden), "down": draw.dense(hidden, width)}
