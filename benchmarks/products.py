# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products with constant right-hand sides against oneDNN: the shapes of BERT and GPT-2, and random ones.

`python -m benchmarks.products` prints GFLOP/s of both and writes JSON. oneDNN (as PyTorch ships it) gets the weights in
the layout that it chooses for the number of rows; ours packs them once for every number of rows. Both write to memory
of their own. The two take turns in one process, with a pause for the other's threads to stop spinning.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import geometric_mean, table
from benchmarks.timing import environment, limit_threads

THREADS = 2
LAYERS = [(768, 768), (768, 3072), (3072, 768), (768, 2304), (64, 512), (512, 64)]
"""(k, n) of BERT-base and GPT-2: projections, both sides of the MLP, fused projections, an attention's two products."""
ROWS = (1, 4, 13, 64, 128, 300, 512, 1024)
SMALL_ROWS = (1, 5)
TURNS = 4
PAUSE = 0.005
"""Seconds."""

Shape = tuple[int, int, int]
Call = Callable[[], Any]


def random_shapes(count: int, seed: int = 0) -> list[Shape]:
    """(m, n, k), each evenly distributed in its logarithm: m from 1 to 2,048, n and k from 16 to 4,096."""
    rng = np.random.default_rng(seed)
    low, high = np.log([1, 16, 16]), np.log([2048, 4096, 4096])
    return [tuple(np.exp(rng.uniform(low, high)).astype(int).tolist()) for _ in range(count)]


def ours(a: np.ndarray, b: np.ndarray) -> Call:
    """A call of the program for any m."""
    import shlo_disc

    k, n = b.shape
    options = shlo_disc.Options(threads=THREADS, output="buffer")
    specs = ((f"{k}, {n}", "float32"), (f"m, {k}", "float32"))
    bound = shlo_disc.compile(lambda w, x: x @ w, args=specs, options=options).bind(b)
    return lambda: bound(a)


def onednn(a: np.ndarray, b: np.ndarray) -> Call:
    """A call of oneDNN's inner product with weights in a blocked layout."""
    import torch

    torch.set_num_threads(THREADS)
    x = torch.from_numpy(a)
    weights = torch.ops.mkldnn._reorder_linear_weight(torch.from_numpy(np.ascontiguousarray(b.T)), a.shape[0])
    return lambda: torch.ops.mkldnn._linear_pointwise(x, weights, None, "none", [], "")


def measure(shape: Shape, budget: float) -> dict[str, Any]:
    """Medians of both, in GFLOP/s, and the largest difference of the results relative to the largest magnitude."""
    m, n, k = shape
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s, dtype=np.float32) for s in ((m, k), (k, n)))
    calls = {"ours": ours(a, b), "onednn": onednn(a, b)}
    results = {name: np.asarray(call()) for name, call in calls.items()}
    error = np.abs(results["ours"] - results["onednn"]).max() / np.abs(results["onednn"]).max()
    work = 2 * m * n * k / 1e9
    speed = {name: work / seconds for name, seconds in medians(calls, budget).items()}
    return {"shape": shape, **speed, "ratio": speed["ours"] / speed["onednn"], "error": float(error)}


def medians(calls: Mapping[str, Call], budget: float) -> dict[str, float]:
    """Seconds of a call of each, which take turns of `budget` seconds in all for each."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(TURNS):
        for name, call in calls.items():
            time.sleep(PAUSE)
            samples[name] += _timed(call, budget / TURNS)
    return {name: statistics.median(values) for name, values in samples.items()}


def _timed(call: Call, budget: float) -> list[float]:
    """Seconds of each of several calls; the first two do not count."""
    times: list[float] = []
    end = time.perf_counter() + budget
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times[2:]


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.products", description=__doc__)
    parser.add_argument("--random", type=int, default=200, help="how many random shapes (200)")
    parser.add_argument("--budget", type=float, default=0.1, help="seconds a backend and shape (0.1)")
    parser.add_argument("--small", action="store_true", help="a few shapes: does it run?")
    parser.add_argument("--output", type=Path, default=Path("build/products.json"), help="the JSON file to write")
    options = parser.parse_args()
    limit_threads(THREADS)
    layers = [(m, n, k) for k, n in (LAYERS[:1] if options.small else LAYERS)
              for m in (SMALL_ROWS if options.small else ROWS)]  # fmt: skip
    groups = {"models": layers, "random": random_shapes(3 if options.small else options.random)}
    found = {name: [measure(shape, options.budget) for shape in shapes] for name, shapes in groups.items()}
    for name, rows in found.items():
        ordered = sorted(rows, key=lambda row: row["ratio"])
        shown = rows if name == "models" else ordered[:10]
        cells = [[str(r["shape"]), f"{r['ours']:.0f}", f"{r['onednn']:.0f}", f"{r['ratio']:.2f}"] for r in shown]
        print(table(["(m, n, k)", "ours GFLOP/s", "oneDNN", "ratio"], cells))
        below = sum(row["ratio"] < 0.9 for row in rows)
        mean = geometric_mean(row["ratio"] for row in rows)
        print(f"{name}: geometric mean {mean:.3f}, least {ordered[0]['ratio']:.2f}, {below} of {len(rows)} below 0.9, "
              f"error at most {max(row['error'] for row in rows):.1e}\n")  # fmt: skip
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"environment": environment(), **found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
