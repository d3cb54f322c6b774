# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ResNet-50 (He et al., 2015, with the stride in the 3x3 convolutions) on any number of square images of any size."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from examples.layers import Initializer, Params, batch_norm, conv, dense
from examples.model import export_function, symbolic_sizes

DIMS = "b, s"


@dataclass(frozen=True)
class Config:
    """Sizes of the classifier: blocks and inner width of each stage; a block's result is four times as wide."""

    blocks: tuple[int, ...]
    widths: tuple[int, ...]
    stem: int
    classes: int
    largest: int
    epsilon: float = 1e-5


BASE = Config(blocks=(3, 4, 6, 3), widths=(64, 128, 256, 512), stem=64, classes=1000, largest=224)
SMALL = Config(blocks=(1, 2), widths=(8, 12), stem=16, classes=10, largest=41)


def init(config: Config, seed: int | None = 0) -> Params:
    """Random weights from `seed`; 26 million numbers for BASE, the moments of the normalisations among them."""
    draw = Initializer(seed)
    stages = []
    inputs = config.stem
    for number, (count, width) in enumerate(zip(config.blocks, config.widths, strict=True)):
        stage = []
        for block in range(count):
            changes = block == 0 and (inputs != 4 * width or number > 0)
            stage.append(_init_block(draw, inputs, width, changes))
            inputs = 4 * width
        stages.append(stage)
    return {"stem": _init_unit(draw, 7, 3, config.stem), "stages": stages, "head": draw.dense(inputs, config.classes)}


def _init_block(draw: Initializer, inputs: int, width: int, changes: bool) -> Params:
    params = {
        "reduce": _init_unit(draw, 1, inputs, width),
        "space": _init_unit(draw, 3, width, width),
        "expand": _init_unit(draw, 1, width, 4 * width),
    }
    return params | {"shortcut": _init_unit(draw, 1, inputs, 4 * width)} if changes else params


def _init_unit(draw: Initializer, size: int, inputs: int, outputs: int) -> Params:
    return {"conv": draw.conv(size, size, inputs, outputs), "norm": draw.moments(outputs)}


def forward(params: Params, images: jax.Array, *, config: Config) -> jax.Array:
    """Class logits [b, classes] of images [b, s, s, 3]."""
    x = jax.nn.relu(_unit(params["stem"], images, config, stride=2, size=7))
    window, strides, padding = (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, strides, padding)
    for number, stage in enumerate(params["stages"]):
        for block, layer in enumerate(stage):
            x = _block(layer, x, config, stride=2 if number > 0 and block == 0 else 1)
    return dense(params["head"], jnp.mean(x, axis=(1, 2)))


def _block(params: Params, x: jax.Array, config: Config, stride: int) -> jax.Array:
    y = jax.nn.relu(_unit(params["reduce"], x, config))
    y = jax.nn.relu(_unit(params["space"], y, config, stride=stride, size=3))
    y = _unit(params["expand"], y, config)
    shortcut = _unit(params["shortcut"], x, config, stride=stride) if "shortcut" in params else x
    return jax.nn.relu(y + shortcut)


def _unit(params: Params, x: jax.Array, config: Config, stride: int = 1, size: int = 1) -> jax.Array:
    return batch_norm(params["norm"], conv(params["conv"], x, stride, size // 2), config.epsilon)


def make_inputs(config: Config, b: int, s: int, *, seed: int = 0) -> tuple[np.ndarray]:
    """Random float32 images [b, s, s, 3]."""
    return (np.random.default_rng(seed).standard_normal((b, s, s, 3), dtype=np.float32),)


def limits(config: Config) -> tuple[int, int]:
    """The largest b and s to try; both may grow further."""
    return 8, config.largest


def export(config: Config, dims: str = DIMS) -> jax.export.Exported:
    """The program for symbolic (b, s), or for fixed sizes such as dims="2, 7"."""
    batch, size = symbolic_sizes(dims)
    inputs = [jax.ShapeDtypeStruct((batch, size, size, 3), jnp.float32)]
    return export_function(functools.partial(forward, config=config), init(config, None), inputs)
