# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Five memory-bound programs over [n, d] float32, and their gradients: what stands between the dots of a transformer.

`PROGRAMS` has each by name. A gradient is the pullback of its program: it takes the program's inputs and a cotangent
of its result, and gives the cotangents of the inputs that the program is differentiated by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from examples.layers import layer_norm
from examples.model import symbolic_sizes

EPSILON = 1e-5


@dataclass(frozen=True)
class Program:
    """A function of a few arrays; `shapes` in terms of n and d, and how many leading inputs have gradients."""

    function: Callable[..., jax.Array]
    shapes: tuple[str, ...]
    result: str
    differentiated: int
    dims: str = "n, d"


def softmax(x: jax.Array) -> jax.Array:
    """Softmax along rows."""
    return jax.nn.softmax(x, axis=-1)


def layernorm(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    """Layer normalisation along rows (Ba et al., 2016)."""
    return layer_norm({"scale": scale, "bias": bias}, x, EPSILON)


def gelu_bias(x: jax.Array, bias: jax.Array) -> jax.Array:
    """GELU of a biased input, by the tanh approximation that is JAX's default."""
    return jax.nn.gelu(x + bias)


def rmsnorm_rope(x: jax.Array, scale: jax.Array, cos: jax.Array, sin: jax.Array) -> jax.Array:
    """Root-mean-square normalisation (Zhang and Sennrich, 2019), then rotary position embedding (Su et al., 2021).

    `cos` and `sin` are [n, d / 2]; the two halves of a row are the two coordinates that are rotated.
    """
    normed = x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + EPSILON) * scale
    first, second = jnp.split(normed, 2, axis=-1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """Cross-entropy in nats of each row with its int32 label; [n]."""
    chosen = jax.nn.one_hot(labels, logits.shape[-1]) * jax.nn.log_softmax(logits, axis=-1)
    return -jnp.sum(chosen, axis=-1)


PROGRAMS = {
    "softmax": Program(softmax, ("n, d",), "n, d", 1),
    "layernorm": Program(layernorm, ("n, d", "d", "d"), "n, d", 3),
    "gelu_bias": Program(gelu_bias, ("n, d", "d"), "n, d", 2),
    "rmsnorm_rope": Program(rmsnorm_rope, ("n, d", "d", "n, d / 2", "n, d / 2"), "n, d", 2, "n, 2*h"),
    "cross_entropy": Program(cross_entropy, ("n, d", "int n"), "n", 1),
}


def function(name: str, gradient: bool = False) -> Callable[..., Any]:
    """The program called `name`, or its gradient."""
    program = PROGRAMS[name]
    return _gradient(program) if gradient else program.function


def _gradient(program: Program) -> Callable[..., tuple[jax.Array, ...]]:
    def pullback(*inputs: jax.Array) -> tuple[jax.Array, ...]:
        *arguments, cotangent = inputs
        constant = arguments[program.differentiated :]
        _, pull = jax.vjp(lambda *values: program.function(*values, *constant), *arguments[: program.differentiated])
        return pull(cotangent)

    return pullback


def _sizes(text: str, n: Any, d: Any) -> tuple[Any, ...]:
    sizes = {"n": n, "d": d, "d / 2": d // 2}
    return tuple(sizes[part.strip()] for part in text.removeprefix("int ").split(","))


def _shapes(name: str, gradient: bool) -> tuple[str, ...]:
    program = PROGRAMS[name]
    return (*program.shapes, program.result) if gradient else program.shapes


def make_inputs(name: str, n: int, d: int, *, gradient: bool = False, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Normal numbers, and labels below d; d is even for `rmsnorm_rope`."""
    random = np.random.default_rng(seed)
    arrays = []
    for text in _shapes(name, gradient):
        if text.startswith("int"):
            arrays.append(random.integers(0, d, _sizes(text, n, d), np.int32))
        else:
            arrays.append(random.standard_normal(_sizes(text, n, d), np.float32))
    return tuple(arrays)


def specs(name: str, n: Any, d: Any, *, gradient: bool = False) -> list[jax.ShapeDtypeStruct]:
    """The shapes and dtypes of the inputs; sizes may be symbolic."""
    return [
        jax.ShapeDtypeStruct(_sizes(text, n, d), jnp.int32 if text.startswith("int") else jnp.float32)
        for text in _shapes(name, gradient)
    ]


def export(name: str, *, gradient: bool = False, dims: str | None = None) -> jax.export.Exported:
    """The program for symbolic sizes, or for fixed ones such as dims="3, 64"."""
    inputs = specs(name, *symbolic_sizes(dims or PROGRAMS[name].dims), gradient=gradient)
    return jax.export.export(jax.jit(function(name, gradient)), platforms=["cpu"])(*inputs)
