# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fourier transforms against jax.jit: rows, columns, both axes, reals, primes and single long lines.

`python -m benchmarks.transforms` prints milliseconds of both and their ratio, and writes JSON. Both get jax.Arrays and
take turns in one process, and medians count. Results are compared first.
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

ROUNDS = 41

Function = Callable[[Any], Any]


def _columns(x: Any) -> Any:
    return jnp.fft.fft(x, axis=0)


TRANSFORMS: dict[str, tuple[Function, tuple[int, ...]]] = {
    "rows of 256": (jnp.fft.fft, (1000, 256)),
    "rows of 1000": (jnp.fft.fft, (256, 1000)),
    "rows of 1024": (jnp.fft.fft, (256, 1024)),
    "rows of a prime, 1009": (jnp.fft.fft, (64, 1009)),
    "columns of 1000": (_columns, (1000, 256)),
    "columns of 1024": (_columns, (1024, 256)),
    "both axes, 1000 and 256": (jnp.fft.fft2, (1000, 256)),
    "both axes, 512": (jnp.fft.fft2, (512, 512)),
    "one line of 65536": (jnp.fft.fft, (1 << 16,)),
    "one line of 1048576": (jnp.fft.fft, (1 << 20,)),
    "rows of 1000 reals": (jnp.fft.rfft, (64, 1000)),
    "rows of 1000 reals, inverse": (jnp.fft.irfft, (64, 501)),
    "one line of 200000 reals": (jnp.fft.rfft, (200000,)),
}


def measure(name: str, threads: int, wide: bool, rounds: int) -> dict[str, Any]:
    """Median seconds of both sides. Raises AssertionError where the results differ."""
    import shlo_disc

    function, shape = TRANSFORMS[name]
    rng = np.random.default_rng(0)
    values = rng.standard_normal(shape)
    if "rfft" not in function.__name__ or "irfft" in function.__name__:
        values = values + 1j * rng.standard_normal(shape)
    kind = np.dtype("complex128" if np.iscomplexobj(values) else "float64")
    dtype = kind if wide else np.dtype(f"{kind.kind}{kind.itemsize // 2}")
    x = jnp.asarray(values, dtype)
    spec = (", ".join(map(str, shape)), dtype.name)
    ours = shlo_disc.compile(function, args=(spec,), options=shlo_disc.Options(threads=threads))
    theirs = jax.jit(function)
    mine, other = np.asarray(ours(x)), np.asarray(theirs(x))
    assert np.linalg.norm(mine - other) <= 32 * np.finfo(dtype).eps * np.linalg.norm(other), name
    calls = {"ours": functools.partial(ours, x), "jit": functools.partial(theirs, x)}
    times = interleaved(calls, rounds, warmup=3)
    return {**times, "ratio": times["ours"] / times["jit"]}


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transforms", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=TRANSFORMS, default=tuple(TRANSFORMS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--output", type=Path, default=Path("build/transforms.json"), help="the JSON file to write")
    options = parser.parse_args()
    limit_threads(options.threads)
    jax.config.update("jax_enable_x64", True)
    found = {
        name: {
            bits: measure(name, options.threads, wide, options.rounds) for bits, wide in (("f32", False), ("f64", True))
        }
        for name in options.only
    }
    rows = [
        [name, *(f"{f['ours'] * 1e3:.3f} / {f['jit'] * 1e3:.3f}, {f['ratio']:.2f}" for f in both.values())]
        for name, both in found.items()
    ]
    print(table(["ours / jax.jit in ms, ratio", "f32", "f64"], rows))
    print(f"geometric mean {geometric_mean(f['ratio'] for both in found.values() for f in both.values()):.2f}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"environment": environment(), **found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
