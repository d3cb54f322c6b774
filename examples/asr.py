# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A speech encoder after the Speech-Transformer (Dong et al., 2018): what is said in each of t steps of four frames?

Two convolutions of stride 2 take four frames of a spectrogram to one step; transformer layers follow. Utterances of a
batch are padded to 4*t frames, and no step attends to those past its own utterance's end.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from examples.layers import Initializer, Params, attention, conv, dense, gelu_tanh, init_mlp, layer_norm, mlp
from examples.model import export_function, symbolic_sizes

DIMS = "b, t"


@dataclass(frozen=True)
class Config:
    """Sizes of the encoder. A frame has `bands` energies, a multiple of 4; `max_steps` bounds the symbol t."""

    layers: int
    width: int
    heads: int
    hidden: int
    bands: int
    channels: int
    tokens: int
    max_steps: int
    epsilon: float = 1e-5


BASE = Config(layers=12, width=256, heads=4, hidden=1024, bands=80, channels=64, tokens=1000, max_steps=400)
SMALL = Config(layers=1, width=32, heads=2, hidden=48, bands=12, channels=8, tokens=11, max_steps=33)


def init(config: Config, seed: int | None = 0) -> Params:
    """Random weights from `seed`; 11 million numbers for BASE."""
    draw = Initializer(seed)
    return {
        "convs": [draw.conv(3, 3, inputs, config.channels) for inputs in (1, config.channels)],
        "project": draw.dense(config.bands // 4 * config.channels, config.width),
        "position": draw.normal(config.max_steps, config.width),
        "layers": [_init_layer(draw, config) for _ in range(config.layers)],
        "norm": draw.norm(config.width),
        "head": draw.dense(config.width, config.tokens),
    }


def _init_layer(draw: Initializer, config: Config) -> Params:
    # Softmax ignores a shift of its row, so a key bias would only have rounding noise for a gradient: there is none.
    width = config.width
    return {
        "attention_norm": draw.norm(width),
        "query": draw.dense(width, width),
        "key": draw.dense(width, width, bias=False),
        "value": draw.dense(width, width),
        "output": draw.dense(width, width),
        "mlp_norm": draw.norm(width),
        "mlp": init_mlp(draw, width, config.hidden),
    }


def logits(params: Params, frames: jax.Array, lengths: jax.Array, config: Config) -> jax.Array:
    """The log-odds [b, t, tokens] of frames [b, 4*t, bands], of which the first 4 * `lengths` [b] are speech."""
    x = frames[..., None]
    for weights in params["convs"]:
        x = jax.nn.relu(conv(weights, x, stride=2, padding=1))
    batch, steps, bands, channels = x.shape
    x = dense(params["project"], x.reshape(batch, steps, bands * channels)) + params["position"][:steps]
    present = jnp.arange(steps)[None, :] < lengths[:, None]
    bias = jnp.where(present, np.float32(0.0), np.float32(-1e9))[:, None, None, :]
    for layer in params["layers"]:
        x = _layer(layer, x, bias, config)
    return dense(params["head"], layer_norm(params["norm"], x, config.epsilon))


def _layer(params: Params, x: jax.Array, bias: jax.Array, config: Config) -> jax.Array:
    normed = layer_norm(params["attention_norm"], x, config.epsilon)
    query, key, value = (dense(params[name], normed) for name in ("query", "key", "value"))
    x = x + dense(params["output"], attention(query, key, value, config.heads, bias))
    return x + mlp(params["mlp"], layer_norm(params["mlp_norm"], x, config.epsilon), gelu_tanh)


def forward(params: Params, frames: jax.Array, lengths: jax.Array, *, config: Config) -> jax.Array:
    """The logarithms [b, t, tokens] of the tokens' probabilities; the inputs are those of `make_inputs`."""
    return jax.nn.log_softmax(logits(params, frames, lengths, config), axis=-1)


def make_inputs(config: Config, b: int, t: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Random float32 frames [b, 4*t, bands], and int32 lengths of 1 to t steps [b]."""
    random = np.random.default_rng(seed)
    frames = random.standard_normal((b, 4 * t, config.bands), dtype=np.float32)
    return frames, random.integers(1, t + 1, b, dtype=np.int32)


def limits(config: Config) -> tuple[int, int]:
    """The largest b and t to try; t may not grow further, b may."""
    return 8, config.max_steps


def input_specs(config: Config, dims: str) -> list[jax.ShapeDtypeStruct]:
    """The inputs for symbolic (b, t), or for fixed sizes."""
    b, t = symbolic_sizes(dims, [f"t <= {config.max_steps}"])
    return [jax.ShapeDtypeStruct((b, 4 * t, config.bands), jnp.float32), jax.ShapeDtypeStruct((b,), jnp.int32)]


def export(config: Config, dims: str = DIMS) -> jax.export.Exported:
    """The program for symbolic (b, t), or for fixed sizes such as dims="2, 7"."""
    return export_function(functools.partial(forward, config=config), init(config, None), input_specs(config, dims))
