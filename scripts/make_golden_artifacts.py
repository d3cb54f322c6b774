# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes compiled programs of this version, which later versions have to load, with arguments and results.

Run: `python -m scripts.make_golden_artifacts`. It writes `tests/golden/VERSION/`, and refuses to where that is there:
files of a version stay what they are. `tests/run/test_golden_artifacts.py` loads and calls them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import shlo_disc
import shlo_disc.numpy

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "golden"
LEVELS = ("x86-64-v3", "x86-64-v4")


def layers(p: dict[str, jax.Array], x: jax.Array) -> dict[str, jax.Array]:
    """Products, one with a constant, packed arguments, rows and reductions: f32[4, 32], f32[b, 4]."""
    table = jnp.asarray(_random(7, 32, 8))
    hidden = jax.nn.gelu(x @ p["w"] + p["b"])
    return {"y": jax.nn.softmax(hidden @ table), "norm": (hidden * hidden).sum(0)}


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Attention of queries f32[b, s, h, 16] to keys and values of as many positions."""
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


def positions(x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """A size that is read from data, a sort and a Fourier transform: f32[n]."""
    chosen = x[shlo_disc.numpy.flatnonzero(x > 0)]
    return jnp.cumsum(chosen), jnp.sort(x), jnp.abs(jnp.fft.rfft(jnp.tile(x[:1], 8) + jnp.arange(8.0)))


PROGRAMS: dict[str, tuple[Any, Any, tuple[str, ...]]] = {
    "layers": (layers, ({"w": ((4, 32), "float32"), "b": ((32,), "float32")}, ("b, 4", "float32")), LEVELS),
    "attention": (attention, (("b, s, h, 16", "float32"),) * 3, LEVELS[:1]),
    "positions": (positions, (("n", "float32"),), LEVELS[:1]),
}


def arguments_of(name: str) -> list[Any]:
    """Arguments of a program at two sizes."""
    if name == "layers":
        weights = {"w": _random(1, 4, 32), "b": _random(2, 32)}
        return [(weights, _random(b, b, 4)) for b in (3, 17)]
    if name == "attention":
        return [tuple(_random(seed, *shape) for seed in range(3)) for shape in ((1, 3, 2, 16), (2, 9, 1, 16))]
    return [(_random(n, n),) for n in (6, 33)]


def _random(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def main() -> int:
    """Writes the folder of this version; returns the exit status."""
    folder = FOLDER / shlo_disc.__version__
    if folder.exists():
        print(f"{folder} is there; files of a version stay what they are", file=sys.stderr)
        return 1
    folder.mkdir(parents=True)
    for name, (function, specs, cpu) in PROGRAMS.items():
        program = shlo_disc.compile(function, args=specs, options=shlo_disc.Options(cpu=cpu))
        program.save(folder / f"{name}.disc")
        calls = arguments_of(name)
        arrays: dict[str, Any] = {}
        for call, args in enumerate(calls):
            for kind, tree in (("argument", args), ("result", program(*args))):
                arrays |= {f"{call}-{kind}-{i}": leaf for i, leaf in enumerate(jax.tree.leaves(tree))}
        np.savez_compressed(folder / f"{name}.npz", **arrays)
        print(f"{name}: {(folder / f'{name}.disc').stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
