# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""BERT under a stream of different shapes: shlo_disc compiles once, jax.jit once a shape. Run it with `make demo`."""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import shlo_disc
from benchmarks.tables import duration, geometric_mean
from benchmarks.timing import environment, interleaved, rounds_for, seconds, shape_stream
from examples import bert
from examples.model import Params, function, parameter_count, relative_error

HEAD = f"{'b':>3} {'s':>4} | {'first':>10} {'warm':>10} | {'compile':>10} {'warm':>10} | {'ratio':>6} {'error':>8}"


@dataclass(frozen=True)
class Row:
    """The times of one shape, in seconds: our first and warm call, jax.jit's compile and warm call; and the error."""

    first: float
    warm: float
    jit_compile: float
    jit_warm: float
    error: float

    @property
    def ratio(self) -> float:
        """Our warm latency over jax.jit's."""
        return self.warm / self.jit_warm


@dataclass
class Progress:
    """A line that is rewritten in place on a terminal and left out elsewhere."""

    total: int
    start: float

    def show(self, done: int, b: int, s: int, what: str) -> None:
        """Shows how far the stream is."""
        if sys.stderr.isatty():
            spent = time.perf_counter() - self.start
            sys.stderr.write(f"\r\x1b[K[{done}/{self.total}] {spent:.0f} s  b={b} s={s}: {what}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Removes the line."""
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


Calls = dict[str, Callable[[], Any]]


def measure(calls: Calls, budget: float, report: Callable[[str], None]) -> Row:
    """Times one shape: `calls` holds "ours" and "jit", each run here for the first time at that shape.

    jax.jit's compile time is its first call less a warm one, so it is the tracing and the compiling that a new shape
    costs a user. `budget` is how many seconds the warm calls of either may take.
    """
    report("shlo_disc, first call")
    first = seconds(calls["ours"])
    report("jax.jit, compiling")
    jit_first = seconds(calls["jit"])
    report("both, warm calls")
    error = relative_error(calls["ours"](), calls["jit"]())
    medians = interleaved(calls, rounds_for(first, budget))
    return Row(first, medians["ours"], max(jit_first - medians["jit"], 0.0), medians["jit"], error)


def format_row(shape: tuple[int, int], row: Row) -> str:
    """The row of the printed table."""
    ours = f"{duration(row.first):>10} {duration(row.warm):>10}"
    jit = f"{duration(row.jit_compile):>10} {duration(row.jit_warm):>10}"
    return f"{shape[0]:>3} {shape[1]:>4} | {ours} | {jit} | {row.ratio:>6.2f} {row.error:>8.1e}"


def memory_lines(executable: Any, config: bert.Config, params: Params, shapes: list[tuple[int, int]]) -> list[str]:
    """Peak memory at the shape that needs most: by formula, and as the allocator counted it over one call."""
    largest = max(shapes, key=lambda shape: executable.peak_memory(b=shape[0], s=shape[1]))
    predicted = executable.peak_memory(b=largest[0], s=largest[1])
    measured = executable.measure_peak_memory(params, *bert.make_inputs(config, *largest))
    return [
        f"peak memory:    {predicted / 1e6:.2f} MB by formula at b={largest[0]}, s={largest[1]}, "
        f"{measured / 1e6:.2f} MB measured",
        f"  formula:      {executable.peak_memory_formula}",
    ]


def summarise(executable: Any, rows: list[Row], memory: list[str], spent: float, folder: Path) -> str:
    """The closing lines: compiles, ratio, memory by formula and as measured, where the stages lie."""
    jit_total = sum(row.jit_compile for row in rows)
    lines = [
        f"compiles:       shlo_disc {executable.compile_count} ({duration(sum(executable.timings.values()))}), "
        f"jax.jit {len(rows)} ({duration(jit_total)})",
        f"warm latency:   {geometric_mean(row.ratio for row in rows):.3f} of jax.jit's (geometric mean of the ratios)",
        f"largest error:  {max(row.error for row in rows):.1e} of the output's largest magnitude",
        *memory,
        f"stages:         {folder}/ ({', '.join(executable.stages)})",
        f"whole demo:     {spent:.0f} s",
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Runs the demo; the exit status is 1 when an error exceeds 1e-5 or more than one compile was made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small model and short runs")
    parser.add_argument("--shapes", type=int, default=24, help="how many different (b, s) to run (default: 24)")
    parser.add_argument("--output", type=Path, default=Path("demo_out"), help="where the stages are written")
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    config = bert.SMALL if options.quick else bert.BASE
    print(environment())
    params = jax.tree.map(jnp.asarray, bert.init(config))
    print(f"BERT, {config.layers} layers of {config.width}, {parameter_count(params) / 1e6:.1f} million weights")
    exported = bert.export(config)
    compile_seconds, executable = _compile(exported)
    print(f"shlo_disc compiled it once for all (b, s <= {config.max_length}) in {duration(compile_seconds)}\n")
    shapes = shape_stream(options.shapes, 8, config.max_length, 1024)
    rows = _run_stream(executable, config, params, shapes, budget=0.05 if options.quick else 1.0)
    executable.dump(options.output)
    memory = memory_lines(executable, config, params, shapes)
    print("\n" + summarise(executable, rows, memory, time.perf_counter() - start, options.output))
    return int(executable.compile_count != 1 or max(row.error for row in rows) > 1e-5)


def _compile(exported: jax.export.Exported) -> tuple[float, Any]:
    start = time.perf_counter()
    executable = shlo_disc.compile(exported)
    return time.perf_counter() - start, executable


def _run_stream(
    executable: Any, config: bert.Config, params: Params, shapes: list[tuple[int, int]], budget: float
) -> list[Row]:
    progress = Progress(len(shapes), time.perf_counter())
    jitted = jax.jit(function(bert, config))
    print(f"{'':8} | {'shlo_disc':^21} | {'jax.jit':^21} |\n{HEAD}\n{'-' * len(HEAD)}")
    rows = []
    for done, (b, s) in enumerate(shapes):
        inputs = tuple(jnp.asarray(value) for value in bert.make_inputs(config, b, s, seed=done))
        calls: Calls = {
            "ours": functools.partial(executable, params, *inputs),
            "jit": functools.partial(jitted, params, *inputs),
        }
        report = functools.partial(progress.show, done, b, s)
        rows.append(measure(calls, budget, report))
        progress.clear()
        print(format_row((b, s), rows[-1]), flush=True)
    return rows


if __name__ == "__main__":
    sys.exit(main())
