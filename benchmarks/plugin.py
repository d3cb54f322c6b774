# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plain `jax.jit` on the platform `shlo_disc`, over a stream of shapes: what a new shape costs, and how many compiles.

`python -m benchmarks.plugin bert transformer_train asr seq2seq` prints a row for each shape: JAX's tracing and
lowering, the rest of the first call (serialising and loading the program, the first run less a repeated one), the
repeated call, and the difference from XLA's result on the CPU. With `--call` it compares calls of a small jitted
function on both platforms.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any

import jax
import numpy as np

from benchmarks.tables import geometric_mean, table
from benchmarks.timing import environment, limit_threads, per_call
from benchmarks.works import MODELS, Work
from examples.model import relative_error

THREADS = 2
PLATFORM = "shlo_disc"


def place(tree: Any, platform: str) -> Any:
    """Copies of all arrays on a platform's first device."""
    device = jax.devices(platform)[0]
    return jax.tree.map(lambda leaf: jax.device_put(np.asarray(leaf), device), tree)


def counts() -> dict[str, int]:
    """The number of programs that the plugin was given so far, by the way it served them."""
    from shlo_disc.runtime import _native

    return dict(_native.plugin_programs().counts)


def milliseconds(start: float) -> float:
    """Since `start`."""
    return (time.perf_counter() - start) * 1e3


def run_shape(jitted: Any, arguments: Any) -> tuple[Any, list[float]]:
    """The results at a shape, and milliseconds: tracing and lowering, compiling, first call less a repeated one, it."""
    start = time.perf_counter()
    lowered = jitted.trace(*arguments).lower()
    front = milliseconds(start)
    start = time.perf_counter()
    compiled = lowered.compile()
    back = milliseconds(start)
    times = []
    for _ in range(4):
        start = time.perf_counter()
        results = jax.block_until_ready(compiled(*arguments))
        times.append(milliseconds(start))
    repeated = statistics.median(times[1:])
    return results, [front, back, times[0] - repeated, repeated]


def run_work(work: Work, count: int, check: bool) -> None:
    """The table of one work."""
    params = work.init()
    jitted = jax.jit(work.function)
    ours, theirs = place(params, PLATFORM), place(params, "cpu")
    rows, before = [], counts()
    for shape in work.shapes[:count]:
        inputs = work.make_inputs(*shape)
        known = counts()
        results, times = run_shape(jitted, (ours, *place(inputs, PLATFORM)))
        how = ", ".join(name for name, number in counts().items() if number > known[name])
        error = relative_error(results, jitted(theirs, *place(inputs, "cpu"))) if check else float("nan")
        rows.append((str(shape), *(f"{t:.2f}" for t in times), how, f"{error:.0e}"))
    print(table(("shape", "trace+lower ms", "compile ms", "first - repeated", "repeated", "how", "error"), rows))
    total = {name: number - before[name] for name, number in counts().items() if number > before[name]}
    print(f"{work.title}: {total}\n")


def run_call() -> None:
    """A jitted call on 8 floats: ours over XLA's."""

    def add_one(x: Any) -> Any:
        return x + 1

    calls = {}
    for platform in (PLATFORM, "cpu"):
        x, jitted = place(np.arange(8, dtype=np.float32), platform), jax.jit(add_one)
        jax.block_until_ready(jitted(x))
        calls[platform] = lambda jitted=jitted, x=x: jitted(x)
    times = [{name: per_call(call, 2000, 5) for name, call in calls.items()} for _ in range(7)]
    ratio = geometric_mean(t[PLATFORM] / t["cpu"] for t in times)
    shown = {name: f"{statistics.median(t[name] for t in times) * 1e6:.2f} us" for name in calls}
    print(f"x + 1 on 8 floats: {shown}; ratio {ratio:.2f}")


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("works", nargs="*", choices=[*MODELS, []], help="programs of the benchmarks")
    parser.add_argument("--shapes", type=int, default=24, help="how many shapes of each stream")
    parser.add_argument("--small", action="store_true", help="small models")
    parser.add_argument("--check", action="store_true", help="compare with XLA's results")
    parser.add_argument("--call", action="store_true", help="the cost of a call")
    options = parser.parse_args()
    jax.config.update("jax_platforms", f"{PLATFORM},cpu")
    limit_threads(THREADS)
    print(environment())
    if options.call:
        run_call()
    for name in options.works:
        run_work(MODELS[name](options.small), options.shapes, options.check)
    return 0


if __name__ == "__main__":
    sys.exit(main())
