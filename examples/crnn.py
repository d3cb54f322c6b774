# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A reader of text lines, the CRNN of Shi et al. (2015): which character is at each of w places along the line?

Convolutions take an image 32 pixels high and 4*w wide to one feature vector for each place; two bidirectional LSTMs,
scans over the symbolic width from both ends, follow.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from examples.layers import Initializer, Params, batch_norm, conv, dense
from examples.model import export_function, symbolic_sizes

DIMS = "b, w"
HEIGHT = 32


@dataclass(frozen=True)
class Config:
    """Sizes of the reader: channels of the four stages of convolutions, width of an LSTM, characters and the blank."""

    channels: tuple[int, int, int, int]
    hidden: int
    characters: int
    widest: int
    epsilon: float = 1e-5


BASE = Config(channels=(64, 128, 256, 512), hidden=256, characters=37, widest=128)
SMALL = Config(channels=(4, 8, 12, 16), hidden=10, characters=7, widest=26)

POOLS = ((2, 2), (2, 2), (2, 1), (2, 1))
"""Height and width of the window of each stage's pooling."""


def init(config: Config, seed: int | None = 0) -> Params:
    """Random weights from `seed`; 8 million numbers for BASE."""
    draw = Initializer(seed)
    stages = []
    inputs = 1
    for stage, outputs in enumerate(config.channels):
        layers = []
        for _ in range(1 if stage < 2 else 2):
            layers.append({"conv": draw.conv(3, 3, inputs, outputs), "norm": draw.moments(outputs)})
            inputs = outputs
        stages.append(layers)
    lines = (2 * config.channels[-1], 2 * config.hidden)
    return {
        "stages": stages,
        "lstms": [{way: _init_lstm(draw, line, config.hidden) for way in ("right", "left")} for line in lines],
        "head": draw.dense(2 * config.hidden, config.characters),
    }


def _init_lstm(draw: Initializer, inputs: int, hidden: int) -> Params:
    return {"input": draw.dense(inputs, 4 * hidden), "state": draw.dense(hidden, 4 * hidden, bias=False)}


def forward(params: Params, images: jax.Array, *, config: Config) -> jax.Array:
    """The logarithms [b, w, characters] of the characters' probabilities in images [b, 32, 4*w, 1]."""
    x = images
    for layers, (height, width) in zip(params["stages"], POOLS, strict=True):
        for layer in layers:
            x = jax.nn.relu(batch_norm(layer["norm"], conv(layer["conv"], x, stride=1, padding=1), config.epsilon))
        window = (1, height, width, 1)
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")
    batch, height, places, channels = x.shape
    line = x.transpose(2, 0, 1, 3).reshape(places, batch, height * channels)
    for layer in params["lstms"]:
        ways = [lstm(layer[way], line, config.hidden, reverse=way == "left") for way in ("right", "left")]
        line = jnp.concatenate(ways, axis=-1)
    return jax.nn.log_softmax(dense(params["head"], line), axis=-1).transpose(1, 0, 2)


def lstm(params: Params, line: jax.Array, hidden: int, *, reverse: bool) -> jax.Array:
    """The states [w, b, hidden] of a long short-term memory (Hochreiter and Schmidhuber, 1997) along [w, b, d]."""

    def step(carried: tuple[jax.Array, jax.Array], inputs: jax.Array) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        state, memory = carried
        enter, forget, leave, candidate = jnp.split(inputs + dense(params["state"], state), 4, axis=-1)
        memory = jax.nn.sigmoid(forget) * memory + jax.nn.sigmoid(enter) * jnp.tanh(candidate)
        state = jax.nn.sigmoid(leave) * jnp.tanh(memory)
        return (state, memory), state

    start = jnp.zeros((line.shape[1], hidden), jnp.float32)
    return jax.lax.scan(step, (start, start), dense(params["input"], line), reverse=reverse)[1]


def make_inputs(config: Config, b: int, w: int, *, seed: int = 0) -> tuple[np.ndarray]:
    """Random float32 images [b, 32, 4*w, 1]."""
    return (np.random.default_rng(seed).standard_normal((b, HEIGHT, 4 * w, 1), dtype=np.float32),)


def limits(config: Config) -> tuple[int, int]:
    """The largest b and w to try; both may grow further."""
    return 8, config.widest


def export(config: Config, dims: str = DIMS) -> jax.export.Exported:
    """The program for symbolic (b, w), or for fixed sizes such as dims="2, 7"."""
    batch, places = symbolic_sizes(dims)
    inputs = [jax.ShapeDtypeStruct((batch, HEIGHT, 4 * places, 1), jnp.float32)]
    return export_function(functools.partial(forward, config=config), init(config, None), inputs)
