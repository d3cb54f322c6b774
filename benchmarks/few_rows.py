# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of few rows with a square matrix of weights, against jax.jit: decoding with small batches.

`python -m benchmarks.few_rows` prints, for each layout and origin of the weights, milliseconds of ours and the ratios
to jax.jit's, and writes JSON. Weights are arguments, computed by the program, or bound. Both sides get jax.Arrays, take
turns in one process, with a pause for the other's threads to stop spinning, and the least time of each counts.
"""

from __future__ import annotations

import argparse
import functools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.tables import geometric_mean, table
from benchmarks.timing import environment, limit_threads

ROWS = tuple(range(1, 19))
SIZES = (512, 1024, 2048, 4096)
PAUSE = 0.002
"""Seconds."""
LIMIT = 1.05
"""Above this ratio, a product counts as slower."""

Call = Callable[[], Any]
Function = Callable[..., Any]

LAYOUTS: dict[str, tuple[Function, str]] = {
    "plain": (lambda x, w: x @ w, "b, {n}"),
    "transposed": (lambda x, w: x @ w.T, "b, {n}"),
    "columns": (lambda x, w: w @ x, "{n}, b"),
}
"""A product of x and square weights, and the shape of x."""

ORIGINS = ("passed", "computed", "bound")


def backends(layout: str, origin: str, size: int, dtype: str, threads: int) -> tuple[Function, Function, Any]:
    """Functions of x, ours and jax.jit's, with the weights already given; and the weights."""
    import shlo_disc

    product, shape = LAYOUTS[layout]
    w = jnp.asarray(np.random.default_rng(size).standard_normal((size, size)), dtype)
    options = shlo_disc.Options(threads=threads)
    specs: tuple[tuple[str, str], ...] = ((f"{size}, {size}", dtype), (shape.format(n=size), dtype))
    if origin == "computed":
        scale = jnp.asarray(0.5, dtype)
        scaled = functools.partial(_scaled, product)
        ours = shlo_disc.compile(scaled, args=(*specs, ("", dtype)), options=options)
        jitted = jax.jit(scaled)
        return lambda x: ours(w, x, scale), lambda x: jitted(w, x, scale), w * scale
    flipped = functools.partial(_flipped, product)
    ours, jitted = shlo_disc.compile(flipped, args=specs, options=options), jax.jit(flipped)
    if origin == "bound":
        return ours.bind(w), lambda x: jitted(w, x), w
    return lambda x: ours(w, x), lambda x: jitted(w, x), w


def _flipped(product: Function, w: Any, x: Any) -> Any:
    return product(x, w)


def _scaled(product: Function, w: Any, x: Any, scale: Any) -> Any:
    return product(x, w * scale)


def measure(
    layout: str, origin: str, size: int, rows: Iterable[int], options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Seconds of both at each number of rows, and the largest difference relative to the largest result."""
    ours, jitted, w = backends(layout, origin, size, options.dtype, options.threads)
    for b in rows:
        shape = (size, b) if layout == "columns" else (b, size)
        x = jnp.asarray(np.random.default_rng(b).standard_normal(shape), options.dtype)
        exact = LAYOUTS[layout][0](np.asarray(x, np.float64), np.asarray(w, np.float64))
        calls = {"ours": functools.partial(ours, x), "jit": functools.partial(jitted, x)}
        error = np.abs(np.asarray(calls["ours"](), np.float64) - exact).max() / np.abs(exact).max()
        least = _least(calls, options.turns, options.budget)
        yield {"rows": b, "size": size, **least, "ratio": least["ours"] / least["jit"], "error": float(error)}


def _least(calls: Mapping[str, Call], turns: int, budget: float) -> dict[str, float]:
    """The least seconds of each call, which take turns."""
    least = dict.fromkeys(calls, float("inf"))
    order = list(calls)
    for _ in range(turns):
        for name in order:
            time.sleep(PAUSE)
            least[name] = min(least[name], *_timed(calls[name], budget))
        order.reverse()
    return least


def _timed(call: Call, budget: float) -> list[float]:
    """Seconds of each of several calls; the first two do not count."""
    times: list[float] = []
    end = time.perf_counter() + budget
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        jax.block_until_ready(call())
        times.append(time.perf_counter() - start)
    return times[2:]


def report(name: str, found: list[dict[str, Any]]) -> str:
    """The tables of one layout and origin: a line for each number of rows, a column for each size."""
    rows, sizes = sorted({f["rows"] for f in found}), sorted({f["size"] for f in found})
    at = {(f["rows"], f["size"]): f for f in found}
    cells = [
        [str(b), *(f"{at[b, n]['ours'] * 1e3:.3f}" for n in sizes), *(f"{at[b, n]['ratio']:.2f}" for n in sizes)]
        for b in rows
    ]
    lines = [f"{name}:", table(["rows", *(f"{n} ms" for n in sizes), *(f"{n} ratio" for n in sizes)], cells)]
    slow = [(f["rows"], f["size"]) for f in found if f["ratio"] > LIMIT]
    mean, greatest = geometric_mean(f["ratio"] for f in found), max(f["ratio"] for f in found)
    lines.append(
        f"geometric mean {mean:.2f}, greatest {greatest:.2f}, "
        f"above {LIMIT} at {slow or 'none'}, error at most {max(f['error'] for f in found):.1e}"
    )
    if {1, 3} <= set(rows):
        lines.append("3 rows over 1: " + ", ".join(f"{at[3, n]['ours'] / at[1, n]['ours']:.2f} at {n}" for n in sizes))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.few_rows", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=tuple(LAYOUTS))
    parser.add_argument("--origins", nargs="+", choices=ORIGINS, default=ORIGINS)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=6, help="of each side at a shape (6)")
    parser.add_argument("--budget", type=float, default=0.01, help="seconds a turn (0.01)")
    parser.add_argument("--small", action="store_true", help="a few small shapes: does it run?")
    parser.add_argument("--output", type=Path, default=Path("build/few_rows.json"), help="the JSON file to write")
    options = parser.parse_args()
    limit_threads(options.threads)
    if options.small:
        options.rows, options.sizes, options.turns = (1, 3), (64,), 1
    everything = {}
    for layout in options.layouts:
        for origin in options.origins:
            found = [f for n in options.sizes for f in measure(layout, origin, n, options.rows, options)]
            everything[f"{layout}, {origin}"] = found
            print(report(f"{layout}, {origin}", found), flush=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"environment": environment(), **everything}, indent=1) + "\n")


if __name__ == "__main__":
    main()
