# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One training step's loss and gradients of the recommender in `examples.dien`: scans forward, and scans back."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from examples import dien
from examples.dien import BASE, DIMS, SMALL, Config, init, limits
from examples.layers import Params
from examples.model import export_function


def loss(params: Params, *inputs: jax.Array) -> jax.Array:
    """Mean cross-entropy in nats between the predictions and the last input, which says who clicked; a scalar."""
    *features, clicked = inputs
    odds = dien.logits(params, *features)
    return jnp.mean(jax.nn.softplus(odds) - odds * clicked)


def forward(params: Params, *inputs: jax.Array, config: Config) -> tuple[jax.Array, Params]:
    """The loss and its gradients, a pytree like `params`."""
    return jax.value_and_grad(loss)(params, *inputs)


def make_inputs(config: Config, b: int, t: int, *, seed: int = 0) -> tuple[np.ndarray, ...]:
    """The inputs of `examples.dien`, and 0 or 1 as float32 [b]."""
    clicked = np.random.default_rng(seed).integers(0, 2, b).astype(np.float32)
    return *dien.make_inputs(config, b, t, seed=seed), clicked


def export(config: Config, dims: str = DIMS) -> jax.export.Exported:
    """The program for symbolic (b, t), or for fixed sizes such as dims="2, 7"."""
    inputs = dien.input_specs(dims)
    clicked = jax.ShapeDtypeStruct(inputs[-1].shape, jnp.float32)
    return export_function(functools.partial(forward, config=config), init(config, None), [*inputs, clicked])


__all__ = ["BASE", "DIMS", "SMALL", "Config", "export", "forward", "init", "limits", "loss", "make_inputs"]
