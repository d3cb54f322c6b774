# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program of thousands of ops with symbolic sizes, for what has to stay usable at that length."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import export

WIDTH = 16
OPS_OF_A_LAYER = 17
"""Approximate number of ops that jax.export gives for a layer."""


def large_program(layers: int) -> Any:
    """The exported program: `layers` of products, softmaxes and elementwise ops that read several layers back."""

    def body(x: jax.Array, y: jax.Array, weights: jax.Array) -> jax.Array:
        seen = [x]
        for layer in range(layers):
            x = _layer(layer, seen, y, weights)
            seen.append(x)
        return x.sum(axis=-1)

    b, s, t = export.symbolic_shape("b, s, t", constraints=["s <= 256", "t <= 256"])
    return export.export(jax.jit(body))(
        jax.ShapeDtypeStruct((b, s, WIDTH), jnp.float32),
        jax.ShapeDtypeStruct((b, t, WIDTH), jnp.float32),
        jax.ShapeDtypeStruct((WIDTH, WIDTH), jnp.float32),
    )


def _layer(layer: int, seen: list[jax.Array], y: jax.Array, weights: jax.Array) -> jax.Array:
    x, before = seen[-1], seen[max(0, len(seen) - 4)]
    if layer % 3 == 0:
        x = x @ weights
    if layer % 7 == 3:
        scores = x @ jnp.swapaxes(y, 1, 2)
        x = jax.nn.softmax(scores, axis=-1) @ y
    x = jnp.tanh(x * 0.5 + before) - jnp.exp(-jnp.abs(x))
    mean = x.mean(axis=-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(jnp.square(x - mean).mean(axis=-1, keepdims=True) + 1e-5) + before
