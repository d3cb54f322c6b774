# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""First calls of small functions outside of `jax.jit`: `python -m benchmarks.first_calls [--rounds N]`.

Each platform runs in processes of its own, one after the other in turn, without caches on disk: XLA's CPU client, the
plugin that compiles all programs, and the plugin as it is. Prints the medians of milliseconds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.tables import table

PLATFORMS: dict[str, dict[str, str]] = {
    "jax.jit": {"JAX_PLATFORMS": "cpu"},
    "all compiled": {"JAX_PLATFORMS": "shlo_disc", "SHLO_DISC_INTERPRETED_MICROSECONDS": "0"},
    "plugin": {"JAX_PLATFORMS": "shlo_disc"},
}


def steps() -> dict[str, Callable[[], Any]]:
    """Functions, in the order in which they are called."""
    import jax
    import jax.numpy as jnp

    key, x = jax.random.key(0), jnp.arange(12.0).reshape(3, 4)
    return {
        "ones": lambda: jnp.ones((5, 4)),
        "normal, 5": lambda: jax.random.normal(key, (5,)),
        "normal, 7": lambda: jax.random.normal(key, (7,)),
        "normal, 9": lambda: jax.random.normal(key, (9,)),
        "split": lambda: jax.random.split(key, 3),
        "sin": lambda: jnp.sin(x),
        "sum": lambda: x.sum(),
        "mean": lambda: x.mean(0),
        "var": lambda: jnp.var(x),
        "product": lambda: x @ x.T,
        "softmax": lambda: jax.nn.softmax(x),
        "slice": lambda: x[1:, 2],
        "update": lambda: x.at[1].set(3.0),
        "where": lambda: jnp.where(x > 1, x, 0),
        "sort": lambda: jnp.sort(x),
        "concatenate": lambda: jnp.concatenate([x, x]),
        "linspace": lambda: jnp.linspace(0, 1, 7),
        "inverse": lambda: jnp.linalg.inv(x @ x.T + jnp.eye(3)),
    }


def measure() -> dict[str, float]:
    """Milliseconds of each step in this process."""
    import jax

    jax.block_until_ready(jax.numpy.zeros(3))
    found = {}
    for name, step in steps().items():
        start = time.perf_counter()
        jax.block_until_ready(step())
        found[name] = 1e3 * (time.perf_counter() - start)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_calls", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="processes for each platform")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure()))
        return
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in PLATFORMS}
    for number in range(options.rounds):
        for name, variables in PLATFORMS.items():
            print(f"round {number + 1} of {options.rounds}: {name}", file=sys.stderr)
            caches = {"SHLO_DISC_CACHE_DIR": "", "SHLO_DISC_CODE_CACHE_DIR": ""}
            command = [sys.executable, "-m", "benchmarks.first_calls", "--here"]
            done = subprocess.run(
                command, check=True, capture_output=True, text=True, env={**os.environ, **caches, **variables}
            )
            rounds[name].append(json.loads(done.stdout.splitlines()[-1]))
    medians = [{step: statistics.median(r[step] for r in of) for step in of[0]} for of in rounds.values()]
    rows = [[step, *(f"{of[step]:.1f}" for of in medians)] for step in medians[0]]
    rows.append(["all", *(f"{sum(of.values()):.0f}" for of in medians)])
    print(table(["ms", *PLATFORMS], rows))


if __name__ == "__main__":
    main()
