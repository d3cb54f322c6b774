# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that move data, against jax.jit: transposes, slices, reversals, repetitions, paddings; and row kernels.

`python -m benchmarks.moves` prints milliseconds of both and their ratio, and writes JSON. One compile of ours serves
all sizes, one of jax.jit each; both get jax.Arrays and take turns in one process, and medians count. Results are
compared first. With `--cpu x86-64-v3`, start it under `XLA_FLAGS=--xla_cpu_max_isa=AVX2`.
"""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.tables import geometric_mean, table
from benchmarks.timing import environment, interleaved, limit_threads

SHAPES = ((1024, 1024), (1000, 760), (64, 512), (64, 16384))
ROUNDS = 21

Function = Callable[[Any], Any]


def _pairs_exchanged(x: Any) -> Any:
    """Rotary embeddings of neighbouring pairs."""
    return jnp.stack([-x[:, 1::2], x[:, ::2]], -1).reshape(x.shape)


def _normalised(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


MOVES: dict[str, Function] = {
    "transpose": lambda x: x.T,
    "exp, transposed": lambda x: jnp.exp(x).T,
    "transpose to bf16": lambda x: x.astype(jnp.bfloat16).T,
    "heads first": lambda x: x.reshape(x.shape[0], 8, -1).transpose(1, 0, 2),
    "reverse rows": lambda x: x[::-1],
    "reverse columns": lambda x: x[:, ::-1],
    "every second": lambda x: x[:, ::2] * 2,
    "pairs exchanged": _pairs_exchanged,
    "repeat columns": lambda x: jnp.repeat(x, 2, axis=1),
    "repeat rows": lambda x: jnp.repeat(x, 2, axis=0),
    "interleave": lambda x: jnp.stack([x, -x], -1).reshape(x.shape[0], -1),
    "windows of 4": lambda x: jnp.stack([x[:, i : x.shape[1] - 3 + i] for i in range(4)], -1),
    "concatenate rows": lambda x: jnp.concatenate([x, x * 2], 0),
    "concatenate columns": lambda x: jnp.concatenate([x, x * 2], 1),
    "pad": lambda x: jnp.pad(x, ((1, 1), (1, 1))),
    "pad between": lambda x: jax.lax.pad(x, 0.0, ((0, 0, 1), (0, 0, 1))),
    "pad pictures": lambda x: jnp.pad(x.reshape(4, -1, x.shape[1], 1), ((0, 0), (1, 1), (1, 1), (0, 0))),
    "softmax": lambda x: jax.nn.softmax(x),
    "softmax of tanh": lambda x: jax.nn.softmax(jnp.tanh(x)),
    "layer norm of GELU": lambda x: _normalised(jax.nn.gelu(x, approximate=False)),
}


def measure(name: str, threads: int, cpu: str, rounds: int) -> list[dict[str, Any]]:
    """Seconds of both sides at each shape. Raises AssertionError where the results differ."""
    import shlo_disc

    options = shlo_disc.Options(threads=threads, cpu=cpu)
    ours = shlo_disc.compile(MOVES[name], args=(("4*b, 8*s", "float32"),), options=options)
    theirs = jax.jit(MOVES[name])
    found = []
    for shape in SHAPES:
        x = jnp.asarray(np.random.default_rng(0).standard_normal(shape), jnp.float32)
        mine, other = np.asarray(ours(x)), np.asarray(theirs(x))
        error = 1e-5 if other.dtype == np.float32 else 1e-2
        np.testing.assert_allclose(mine.astype(np.float32), other.astype(np.float32), error, 1e-6)
        calls = {"ours": functools.partial(ours, x), "jit": functools.partial(theirs, x)}
        times = interleaved(calls, rounds, warmup=3)
        found.append({"shape": shape, **times, "ratio": times["ours"] / times["jit"]})
    return found


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.moves", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=MOVES, default=tuple(MOVES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cpu", default="host", help="a level of processors, such as x86-64-v3")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--output", type=Path, default=Path("build/moves.json"), help="the JSON file to write")
    options = parser.parse_args()
    limit_threads(options.threads)
    everything = {name: measure(name, options.threads, options.cpu, options.rounds) for name in options.only}
    rows = [
        [name, *(f"{f['ours'] * 1e3:.3f} / {f['jit'] * 1e3:.3f}, {f['ratio']:.2f}" for f in found)]
        for name, found in everything.items()
    ]
    print(table(["ours / jax.jit in ms, ratio", *(f"{m} x {n}" for m, n in SHAPES)], rows))
    print(f"geometric mean {geometric_mean(f['ratio'] for found in everything.values() for f in found):.2f}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"environment": environment(), **everything}, indent=1) + "\n")


if __name__ == "__main__":
    main()
