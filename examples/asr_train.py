# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One training step's loss and gradients of the speech encoder in `examples.asr`, convolutions included."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from examples import asr
from examples.asr import BASE, DIMS, SMALL, Config, init, limits
from examples.layers import Params
from examples.model import export_function


def loss(params: Params, frames: jax.Array, lengths: jax.Array, spoken: jax.Array, *, config: Config) -> jax.Array:
    """Mean cross-entropy in nats of the tokens `spoken` [b, t] at the steps of each utterance; a scalar."""
    chances = asr.forward(params, frames, lengths, config=config)
    chosen = jnp.take_along_axis(chances, spoken[..., None], axis=-1)[..., 0]
    present = jnp.arange(spoken.shape[1])[None, :] < lengths[:, None]
    return -jnp.sum(jnp.where(present, chosen, 0.0)) / jnp.sum(lengths).astype(jnp.float32)


def forward(params: Params, *inputs: jax.Array, config: Config) -> tuple[jax.Array, Params]:
    """The loss and its gradients, a pytree like `params`."""
    return jax.value_and_grad(functools.partial(loss, config=config))(params, *inputs)


def make_inputs(config: Config, b: int, t: int, *, seed: int = 0) -> tuple[np.ndarray, ...]:
    """The inputs of `examples.asr`, and random int32 tokens [b, t]."""
    spoken = np.random.default_rng(seed + 1).integers(0, config.tokens, (b, t), dtype=np.int32)
    return *asr.make_inputs(config, b, t, seed=seed), spoken


def export(config: Config, dims: str = DIMS) -> jax.export.Exported:
    """The program for symbolic (b, t), or for fixed sizes such as dims="2, 7"."""
    frames, lengths = asr.input_specs(config, dims)
    spoken = jax.ShapeDtypeStruct((frames.shape[0], frames.shape[1] // 4), jnp.int32)
    return export_function(functools.partial(forward, config=config), init(config, None), [frames, lengths, spoken])


__all__ = ["BASE", "DIMS", "SMALL", "Config", "export", "forward", "init", "limits", "loss", "make_inputs"]
