# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""BERT-base under a stream of shapes: shlo_disc against jax.jit, on the same inputs and the same two threads.

`python -m benchmarks.bert` prints the tables and writes JSON; `--small` is a smoke test of the benchmark itself.
"""

from __future__ import annotations

import argparse
import functools
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.timing import (
    duration,
    environment,
    geometric_mean,
    interleaved,
    limit_threads,
    per_call,
    rounds_for,
    seconds,
    shape_stream,
    table,
)
from examples import bert
from examples.model import function, relative_error

THREADS = 2
Shapes = list[tuple[int, int]]
Result = dict[str, Any]


def inputs_at(config: bert.Config, shape: tuple[int, int]) -> tuple[jax.Array, ...]:
    """The inputs of one shape; both contestants get the same."""
    return tuple(jnp.asarray(value) for value in bert.make_inputs(config, *shape))


def compiled(config: bert.Config) -> Any:
    """Our executable for all shapes."""
    import shlo_disc

    return shlo_disc.compile(bert.export(config))


def cold_stream(who: str, config: bert.Config, shapes: Shapes) -> float:
    """Seconds from nothing to the last result of the stream: trace, compile and one call a shape. Weights are given."""
    params = jax.block_until_ready(jax.tree.map(jnp.asarray, bert.init(config)))
    inputs = [inputs_at(config, shape) for shape in shapes]
    start = time.perf_counter()
    call = compiled(config) if who == "ours" else jax.jit(function(bert, config))
    for values in inputs:
        jax.block_until_ready(call(params, *values))
    return time.perf_counter() - start


def cold_streams(options: argparse.Namespace) -> Result:
    """`cold_stream` of both contestants, each in a fresh process."""
    result = {}
    for who in ("ours", "jit"):
        command = [sys.executable, "-m", "benchmarks.bert", "--cold", who, "--shapes", str(options.shapes)]
        command += ["--small"] if options.small else []
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        result[who] = float(output.splitlines()[-1])
    return result


def warm_shapes(executable: Any, config: bert.Config, shapes: Shapes, budget: float) -> list[Result]:
    """Per shape: first call, first call less a warm one, warm medians of both, and the error against jax.jit."""
    params = jax.tree.map(jnp.asarray, bert.init(config))
    jitted = jax.jit(function(bert, config))
    rows = []
    for shape in shapes:
        inputs = inputs_at(config, shape)
        ours = functools.partial(executable, params, *inputs)
        first = seconds(ours)
        error = relative_error(ours(), jitted(params, *inputs))
        calls = {"ours": ours, "jit": functools.partial(jitted, params, *inputs)}
        medians = interleaved(calls, rounds_for(first, budget))
        rows.append({"b": shape[0], "s": shape[1], "first_extra": first - medians["ours"], **medians, "error": error})
    return rows


def call_overhead(repeats: int) -> Result:
    """Seconds a call of x + 1 on 8 floats takes, with NumPy and with jax.Array inputs."""
    import shlo_disc

    def increment(x: jax.Array) -> jax.Array:
        return x + 1.0

    executable = shlo_disc.compile(increment, args=(("n", "float32"),))
    jitted = jax.jit(increment)
    result: Result = {}
    for kind, value in (("numpy", np.ones(8, np.float32)), ("jax", jnp.ones(8, jnp.float32))):
        contestants: dict[str, Callable[..., Any]] = {"ours": executable, "jit": jitted}
        result[kind] = {who: per_call(functools.partial(call, value), repeats) for who, call in contestants.items()}
    return result


def kernel_counts(executable: Any, layers: int) -> Result:
    """How many kernels one call launches, in all and a layer, and how many of each kind."""
    kinds = Counter(_kind(kernel) for kernel in executable.kernels)
    total = sum(kinds.values())
    return {"total": total, "per_layer": total / layers, "kinds": dict(kinds.most_common())}


def _kind(kernel: Any) -> str:
    """A launch's kind: its `kind` attribute, the second of a (name, kind) pair, or the text itself."""
    if hasattr(kernel, "kind"):
        return str(kernel.kind)
    return kernel if isinstance(kernel, str) else str(kernel[1])


def report(result: Result) -> str:
    """The result as tables."""
    head = ("b", "s", "ours", "jax.jit", "ratio", "first call extra", "error")
    rows = [
        (
            str(row["b"]),
            str(row["s"]),
            duration(row["ours"]),
            duration(row["jit"]),
            f"{row['ours'] / row['jit']:.3f}",
            duration(max(row["first_extra"], 0.0)),
            f"{row['error']:.1e}",
        )
        for row in result["warm"]
    ]
    cold, overhead = result["cold_seconds"], result["call_overhead_seconds"]
    stages = ", ".join(f"{name} {duration(value)}" for name, value in result["compile_seconds"].items())
    kernels = result["kernels"]
    return "\n".join(
        [
            table(head, rows),
            f"warm latency, geometric mean of ours/jax.jit: {result['geometric_mean_ratio']:.3f}",
            f"cold stream of {len(rows)} shapes: ours {duration(cold['ours'])}, jax.jit {duration(cold['jit'])}",
            *(
                f"call on 8 floats, {kind}: ours {duration(pair['ours'])}, jax.jit {duration(pair['jit'])}"
                for kind, pair in overhead.items()
            ),
            f"compiles: {result['compile_count']}; stages: {stages}",
            f"kernels: {kernels['total']} a call, {kernels['per_layer']:.1f} a layer {kernels['kinds']}",
        ]
    )


def run(options: argparse.Namespace, config: bert.Config, shapes: Shapes) -> Result:
    """All measurements of the benchmark."""
    cold = cold_streams(options)
    executable = compiled(config)
    warm = warm_shapes(executable, config, shapes, budget=0.05 if options.small else 2.0)
    return {
        "environment": environment(),
        "threads": THREADS,
        "cold_seconds": cold,
        "warm": warm,
        "geometric_mean_ratio": geometric_mean(row["ours"] / row["jit"] for row in warm),
        "call_overhead_seconds": call_overhead(200 if options.small else 5000),
        "compile_count": executable.compile_count,
        "compile_seconds": dict(executable.timings),
        "kernels": kernel_counts(executable, config.layers),
    }


def main(arguments: list[str] | None = None) -> int:
    """Entry point; `--cold` is how the benchmark starts its own fresh processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a small model: a smoke test, not a measurement")
    parser.add_argument("--shapes", type=int, default=24, help="how many different (b, s) to run (default: 24)")
    parser.add_argument("--output", type=Path, default=Path("build/bert.json"), help="the JSON file to write")
    parser.add_argument("--cold", choices=("ours", "jit"), help="time one contestant's cold stream and print seconds")
    options = parser.parse_args(arguments)
    limit_threads(THREADS)
    config = bert.SMALL if options.small else bert.BASE
    shapes = shape_stream(options.shapes, 8, config.max_length, 1024)
    if options.cold:
        print(cold_stream(options.cold, config, shapes))
        return 0
    result = run(options, config, shapes)
    print(f"{result['environment']}\n{report(result)}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
