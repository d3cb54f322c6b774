# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX functions at many shapes on the plugin; prints, for each, the worst error and how the programs were served.

Run as a program with JAX_PLATFORMS=shlo_disc,cpu: one line of JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback

from shlo_disc.runtime.native_module import plugin_programs

SHAPES = [(b, s) for b in (2, 3, 1, 5) for s in (8, 16, 7, 33)]


def draw(*shape: int) -> np.ndarray:
    """Normal numbers."""
    return np.random.default_rng(len(shape)).standard_normal(shape, dtype=np.float32)


def loss(w: dict[str, Any], x: Any, y: Any) -> Any:
    hidden = jnp.tanh(x @ w["in"])
    return jnp.mean((hidden @ w["out"] - y) ** 2)


def train_step(w: dict[str, Any], x: Any, y: Any) -> Any:
    value, gradient = jax.value_and_grad(loss)(w, x, y)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, w, gradient)


def recurrence(x: Any, u: Any) -> Any:
    return jax.lax.scan(lambda h, row: (h := jnp.tanh(row + h @ u), h), jnp.zeros((x.shape[0], 4)), x.swapaxes(0, 1))


def decode(cache: Any, x: Any) -> Any:
    cache = jnp.concatenate([cache, x], axis=1)
    return cache, jax.nn.softmax(jnp.einsum("bsd,btd->bst", x, cache)) @ cache


def with_callbacks(x: Any) -> Any:
    """A callback whose result has a size, one whose result has none, and one that others wait for."""
    doubled = jax.pure_callback(lambda a: 2 * np.asarray(a), jax.ShapeDtypeStruct(x.shape, x.dtype), x)
    io_callback(lambda a: None, None, x.sum(), ordered=True)
    return jnp.tanh(doubled), io_callback(lambda a: np.sum(a), jax.ShapeDtypeStruct((), x.dtype), x)


def solve(a: Any, x: Any) -> Any:
    """A call of LAPACK, which writes the result over an operand."""
    lower = jnp.tril(a) + 9 * jnp.eye(a.shape[0])
    return jax.vmap(lambda row: jax.scipy.linalg.solve_triangular(lower, row, lower=True))(x)


WEIGHTS = {"in": draw(6, 4), "out": draw(4, 3)}
STREAMS: dict[str, tuple[Callable[..., Any], Callable[[int, int], Iterable[Any]]]] = {
    "train step": (train_step, lambda b, s: (WEIGHTS, draw(b, s, 6), draw(b, s, 3))),
    "recurrence": (recurrence, lambda b, s: (draw(b, s, 4), draw(4, 4))),
    "decode": (decode, lambda b, s: (draw(b, s, 4), draw(b, 1, 4))),
    "callbacks": (with_callbacks, lambda b, s: (draw(b, s),)),
    "triangular solve": (solve, lambda b, s: (draw(s, s), draw(b, s))),
    "softmax": (jax.nn.softmax, lambda b, s: (draw(b, s),)),
}


def run(function: Callable[..., Any], make: Callable[[int, int], Iterable[Any]]) -> tuple[float, dict[str, int]]:
    """The largest error over all shapes, and how often programs were served each way."""
    before = plugin_programs().counts
    jitted, error = jax.jit(function), 0.0
    for shape in SHAPES:
        args = list(make(*shape))
        with jax.default_device(jax.devices("cpu")[0]):
            expected = jax.tree.leaves(jitted(*args))
        pairs = zip(jax.tree.leaves(jitted(*args)), expected, strict=True)
        error = max([error, *(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in pairs)])
    return error, {name: count - before[name] for name, count in plugin_programs().counts.items()}


if __name__ == "__main__":
    print(json.dumps({name: run(*stream) for name, stream in STREAMS.items()}))
