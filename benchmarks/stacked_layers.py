# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers in a loop whose arrays lie in one: `python -m benchmarks.stacked_layers [--rounds N] [--avx2]`.

Prints times of `jax.lax.scan` over layers, compiled once for all sizes, and relative to them those of the same layers
behind one another, each with arrays of its own, and those of `jax.jit`, which compiles the loop for each size.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.tables import table
from benchmarks.timing import interleaved, limit_threads

LAYERS, WIDTH, HEADS = 12, 1024, 8
POSITIONS = 1024
"""The positions of a cache."""


def dense(x: Any, w: Any) -> Any:
    """A layer with a weight of f32."""
    return jnp.tanh(x @ w)


def narrow(x: Any, q: Any, s: Any) -> Any:
    """A layer with a weight of int8 and a scale for each column."""
    return jnp.tanh(x @ (q.astype(jnp.float32) * s))


def attend(q: Any, keys: Any, values: Any) -> Any:
    """One query of each sequence over cached keys and values."""
    weights = jax.nn.softmax(jnp.einsum("bhd,bthd->bht", q, keys) / 8)
    return jnp.tanh(jnp.einsum("bht,bthd->bhd", weights, values))


@dataclass(frozen=True)
class Work:
    """A layer, the shapes and dtypes of what it is given and of its arrays, over "m" rows, and the rows to time."""

    layer: Callable[..., Any]
    given: tuple[tuple[str, str], ...]
    rows: tuple[int, ...]


_F32 = "float32"
WORKS = {
    "f32 weights": Work(dense, ((f"m, {WIDTH}", _F32), (f"{WIDTH}, {WIDTH}", _F32)), (1, 4, 16, 64)),
    "f32 weights, 1 row": Work(dense, ((f"1, {WIDTH}", _F32), (f"{WIDTH}, {WIDTH}", _F32)), (1,)),
    "int8 weights": Work(
        narrow, ((f"m, {WIDTH}", _F32), (f"{WIDTH}, {WIDTH}", "int8"), (f"{WIDTH}", _F32)), (1, 4, 16, 64, 256)
    ),
    "caches": Work(attend, ((f"m, {HEADS}, 64", _F32), *[(f"m, {POSITIONS}, {HEADS}, 64", _F32)] * 2), (1, 4)),
}


def scanned(layer: Callable[..., Any], x: Any, *stacks: Any) -> Any:
    """The layers in a loop."""
    return lax.scan(lambda carried, arrays: (layer(carried, *arrays), None), x, stacks)[0]


def in_turn(layer: Callable[..., Any], x: Any, *arrays: Any) -> Any:
    """The layers behind one another; those of one are `LAYERS` apart."""
    for number in range(LAYERS):
        x = layer(x, *arrays[number::LAYERS])
    return x


def array(shape: str, dtype: str, m: int, seed: int) -> np.ndarray:
    """Numbers of a shape with so many rows: those of weights and scales leave rows about as large as they are."""
    rng, sizes = np.random.default_rng(seed), [m if size.strip() == "m" else int(size) for size in shape.split(",")]
    if dtype == "int8":
        return rng.integers(-127, 128, sizes).astype(np.int8)
    divisors = {(LAYERS, WIDTH, WIDTH): WIDTH**0.5, (LAYERS, WIDTH): 73 * WIDTH**0.5}
    divisor = divisors.get(tuple(sizes), 1)
    return (rng.standard_normal(sizes) / divisor).astype(dtype)


def compare_layers(threads: int, rounds: int, cpu: str) -> None:
    """Print the table of times."""
    import shlo_disc

    options, rows = shlo_disc.Options(threads=threads, output="buffer", cpu=cpu), []
    for name, work in WORKS.items():
        x, *own = work.given
        loop = partial(scanned, work.layer)
        stacks = [(f"{LAYERS}, {shape}", dtype) for shape, dtype in own]
        of_scan = shlo_disc.compile(loop, args=(x, *stacks), options=options)
        apart = [each for each in own for _ in range(LAYERS)]
        of_each = shlo_disc.compile(partial(in_turn, work.layer), args=(x, *apart), options=options)
        of_jax = jax.jit(loop)
        for m in work.rows:
            first = jnp.asarray(array(*x, m, 0))
            whole = [jnp.asarray(array(*stack, m, 1 + i)) for i, stack in enumerate(stacks)]
            parts = [jnp.asarray(np.array(stack[number])) for stack in whole for number in range(LAYERS)]
            calls = {
                "scan": partial(of_scan, first, *whole),
                "apart": partial(of_each, first, *parts),
                "jax.jit": partial(of_jax, first, *whole),
            }
            results = [np.asarray(call()) for call in calls.values()]
            for other in results[1:]:
                np.testing.assert_allclose(other, results[0], rtol=1e-3, atol=1e-4)
            times = interleaved(calls, rounds, warmup=3)
            ratios = (times["apart"] / times["scan"], times["jax.jit"] / times["scan"])
            rows.append([name, str(m), f"{times['scan'] * 1e3:.2f}", *(f"{ratio:.2f}" for ratio in ratios)])
    print(table(["layers", "rows", "scan ms", "arrays of their own", "jax.jit"], rows))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.stacked_layers", description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--avx2", action="store_true", help="ours without AVX-512; jax.jit keeps what it finds")
    options = parser.parse_args()
    limit_threads(options.threads)
    compare_layers(options.threads, options.rounds, "x86-64-v3" if options.avx2 else "host")


if __name__ == "__main__":
    main()
