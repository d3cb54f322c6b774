# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory-bound programs of `examples.micro`, and their gradients, over 20 shapes: shlo_disc against jax.jit.

`python -m benchmarks.micro` prints the tables and writes JSON. jax.jit compiles each shape and has its own arrays; ours
takes NumPy arrays, and in another column jax.Arrays. "static" is our own compile for the one shape. "of copy" is what a
call reads and writes at least, over the time it takes, as a share of the bandwidth of a copy in the same run.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.tables import duration, geometric_mean, table
from benchmarks.timing import environment, interleaved, limit_threads, rounds_for, seconds
from examples import micro
from examples.model import relative_error

THREADS = 2
SHAPES = [
    (1, 64), (1, 1024), (1, 16384), (3, 128), (7, 1000), (8, 64), (16, 256), (32, 768), (64, 32), (64, 1024),
    (100, 334), (128, 768), (128, 4096), (512, 512), (512, 3072), (1000, 778), (1024, 64), (2048, 1024), (2048, 4096),
    (4096, 4096),
]  # fmt: skip
SMALL_SHAPES = [(1, 64), (7, 20), (33, 130)]
LARGE = 64 << 20
"""Bytes read and written from which on a call is compared with the bandwidth of a copy."""

Result = dict[str, Any]


def copy_bandwidth(bytes_copied: int = 128 << 20, rounds: int = 9) -> float:
    """Bytes a second, read plus written, of a copy by as many threads as the backends have; the best of some."""
    source, target = np.ones(bytes_copied, np.uint8), np.zeros(bytes_copied, np.uint8)
    parts = list(zip(np.array_split(target, THREADS), np.array_split(source, THREADS), strict=True))
    with ThreadPoolExecutor(THREADS) as pool:
        times = [seconds(lambda: list(pool.map(lambda part: np.copyto(*part), parts))) for _ in range(rounds)]
    return 2 * bytes_copied / min(times)


def bytes_moved(name: str, n: int, d: int, gradient: bool) -> int:
    """The bytes of all inputs and results: what a kernel that keeps everything else in cache moves."""
    inputs = micro.specs(name, n, d, gradient=gradient)
    results = jax.tree.leaves(jax.eval_shape(micro.function(name, gradient), *inputs))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in (*inputs, *results))


def run_program(name: str, gradient: bool, shapes: list[tuple[int, int]], budget: float) -> list[Result]:
    """Medians of all backends at each shape."""
    import shlo_disc

    options = shlo_disc.Options(threads=THREADS)
    executable = shlo_disc.compile(micro.export(name, gradient=gradient), options=options)
    jitted = jax.jit(micro.function(name, gradient))
    rows = []
    for n, d in shapes:
        arrays = micro.make_inputs(name, n, d, gradient=gradient)
        inputs = [jax.numpy.asarray(array) for array in arrays]
        static = shlo_disc.compile(
            micro.export(name, gradient=gradient, dims=f"{n}, {d}"), options=shlo_disc.Options(threads=THREADS)
        )
        calls = {
            "ours": functools.partial(executable, *arrays),
            "jit": functools.partial(jitted, *inputs),
            "static": functools.partial(static, *arrays),
            "ours, jax.Arrays": functools.partial(executable, *inputs),
        }
        error = relative_error(calls["ours"](), calls["jit"]())
        rounds = rounds_for(seconds(calls["jit"]), budget, least=9, most=301)
        medians = interleaved(calls, rounds, warmup=3)
        moved = bytes_moved(name, n, d, gradient)
        rows.append({"n": n, "d": d, "bytes": moved, "error": error, "bandwidth": moved / medians["ours"], **medians})
    return rows


def report(name: str, gradient: bool, rows: list[Result], copy: float) -> str:
    """One program's table and its geometric means."""
    others = ["jit", "static"]
    head = ("n", "d", "ours", *others, *(f"/{who}" for who in others), "jax.Arrays/jit", "of copy", "error")
    lines = [
        (
            str(row["n"]),
            str(row["d"]),
            *(duration(row[who]) for who in ("ours", *others)),
            *(f"{row['ours'] / row[who]:.2f}" for who in others),
            f"{row['ours, jax.Arrays'] / row['jit']:.2f}",
            f"{row['bandwidth'] / copy:.2f}" if row["bytes"] >= LARGE else "",
            f"{row['error']:.0e}",
        )
        for row in rows
    ]
    means = ", ".join(f"{who} {geometric_mean(row['ours'] / row[who] for row in rows):.3f}" for who in others)
    with_jax = geometric_mean(row["ours, jax.Arrays"] / row["jit"] for row in rows)
    title = (
        f"{name}{', gradient' if gradient else ''}: geometric means of ours over {means}; of jax.Arrays {with_jax:.3f}"
    )
    return f"{table(head, lines)}\n{title}\n"


def main(arguments: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="small shapes: a smoke test, not a measurement")
    parser.add_argument("--programs", nargs="*", default=list(micro.PROGRAMS), choices=list(micro.PROGRAMS))
    parser.add_argument("--only", choices=("forward", "gradient"), help="leave the others out")
    parser.add_argument("--budget", type=float, default=0.5, help="seconds for jax.jit at one shape (default: 0.5)")
    parser.add_argument("--output", type=Path, default=Path("build/micro.json"), help="the JSON file to write")
    options = parser.parse_args(arguments)
    limit_threads(THREADS)
    copy = copy_bandwidth(1 << 20 if options.small else 128 << 20)
    result: Result = {"environment": environment(), "threads": THREADS, "copy_bandwidth": copy, "programs": {}}
    print(f"{result['environment']}; copy {copy / 1e9:.1f} GB/s")
    for gradient in (False, True):
        if options.only == ("forward" if gradient else "gradient"):
            continue
        for name in options.programs:
            rows = run_program(name, gradient, SMALL_SHAPES if options.small else SHAPES, options.budget)
            result["programs"][f"{name}{'_gradient' if gradient else ''}"] = rows
            print(report(name, gradient, rows, copy), flush=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
