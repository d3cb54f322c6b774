# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of 1 to 40 rows with one matrix of weights: is time monotone in the number of rows, and who is slower?

`python -m benchmarks.row_sweep` measures one program for all numbers of rows against oneDNN, with weights in the
layout that it chooses for each number, and against `jax.jit` compiled for each. Weights are bound, or passed with each
call (`--passed`). All results are in one process, by turns, and medians are compared:

- the slowest number of rows of a pair against the better of both peers,
- steps back: numbers of rows that take more than 1.1 times as long as a larger number,
- with `--memory`, 1 to 8 rows of matrices that no cache holds, as shares of the speed at which they can be read.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import AVX2
from benchmarks.products import THREADS, Call, medians, onednn
from benchmarks.tables import geometric_mean, table

MODELS = [(768, 768), (768, 2304), (768, 3072), (3072, 768), (36, 36), (36, 108), (108, 200), (200, 1)]
"""(k, n) of BERT-base and GPT-2: projections and both sides of the MLP; of DIEN: its attention and gates, and the
layers at its end."""
LARGE = [(4096, 4096), (4096, 11008), (11008, 4096)]
ROWS = range(1, 41)
FEW = range(1, 9)
LIMIT, STEP_BACK, SHARE = 1.05, 1.1, 0.9
UNCACHED = 320 << 20
"""Bytes of weights that are read in turn, of which no cache holds enough."""

Pair = tuple[int, int]


def random_pairs(count: int, seed: int = 0) -> list[Pair]:
    """(k, n), each evenly distributed in its logarithm from 16 to 4,096."""
    random = np.random.default_rng(seed)
    low, high = np.log(16), np.log(4096)
    return [(int(k), int(n)) for k, n in np.exp(random.uniform(low, high, (count, 2)))]


def ours(w: np.ndarray, passed: bool) -> Callable[[np.ndarray], Any]:
    """A function of x [m, k] for any m: its product with w [k, n]."""
    import shlo_disc

    k, n = w.shape
    options = shlo_disc.Options(threads=THREADS, output="buffer")
    specs = ((f"{k}, {n}", "float32"), (f"m, {k}", "float32"))
    program = shlo_disc.compile(lambda w, x: x @ w, args=specs, options=options)
    return (lambda x: program(w, x)) if passed else program.bind(w)


def xla(w: np.ndarray, x: np.ndarray) -> Call:
    """A call of a program that jax.jit has compiled for these shapes."""
    import jax

    arrays = jax.device_put(w), jax.device_put(x)
    program = jax.jit(lambda w, x: x @ w).lower(*arrays).compile()
    return lambda: program(*arrays).block_until_ready()


def in_turn(calls: Sequence[Call]) -> Call:
    """A call of one after the other."""
    endless = itertools.cycle(calls)
    return lambda: next(endless)()


def sweep(pair: Pair, rows: Sequence[int], options: argparse.Namespace) -> dict[str, Any]:
    """Times of a pair at all numbers of rows, and what is wrong with them."""
    random = np.random.default_rng(sum(pair))
    w = random.standard_normal(pair, dtype=np.float32)
    product = ours(w, options.passed)
    seconds = []
    for m in rows:
        x = random.standard_normal((m, pair[0]), dtype=np.float32)
        calls: dict[str, Call] = {"ours": partial(product, x), "onednn": onednn(x, w), "xla": xla(w, x)}
        results = [np.asarray(call()) for call in calls.values()]
        for result in results[1:]:
            np.testing.assert_allclose(results[0], result, rtol=1e-3, atol=1e-3 * np.sqrt(pair[0]))
        seconds.append(medians(calls, options.budget))
    ratios = [one["ours"] / min(one["onednn"], one["xla"]) for one in seconds]
    mine = [one["ours"] for one in seconds]
    back = [rows[i] for i in range(len(mine)) if mine[i] > STEP_BACK * min(mine[i:])]
    return {"pair": pair, "rows": list(rows), "seconds": seconds, "ratios": ratios, "back": back}


def reading(pair: Pair, options: argparse.Namespace) -> dict[str, Any]:
    """Shares of the speed of reading that products with matrices reach that no cache holds."""
    import torch

    torch.set_num_threads(THREADS)
    random = np.random.default_rng(sum(pair))
    count = max(2, UNCACHED // (4 * pair[0] * pair[1]) + 1)
    weights = [random.standard_normal(pair, dtype=np.float32) for _ in range(count)]
    products = [ours(w, options.passed) for w in weights]
    tensors = [torch.from_numpy(w) for w in weights]
    found = []
    for m in FEW:
        x = random.standard_normal((m, pair[0]), dtype=np.float32)
        calls: dict[str, Call] = {
            "ours": in_turn([partial(product, x) for product in products]),
            "reading": in_turn([partial(torch.sum, tensor) for tensor in tensors]),
        }
        found.append(medians(calls, options.budget * 30))
    return {"pair": pair, "seconds": found, "shares": [one["reading"] / one["ours"] for one in found]}


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.row_sweep", description=__doc__)
    parser.add_argument("--random", type=int, default=40, help="how many random pairs (40)")
    parser.add_argument("--budget", type=float, default=0.01, help="seconds a backend and number of rows (0.01)")
    parser.add_argument("--passed", action="store_true", help="pass the weights with each call")
    parser.add_argument("--memory", action="store_true", help="instead, matrices that no cache holds")
    parser.add_argument("--avx2", action="store_true", help="hold ours and the peers to AVX2")
    parser.add_argument("--small", action="store_true", help="a few shapes: does it run?")
    parser.add_argument("--output", type=Path, default=Path("build/row_sweep.json"), help="the JSON file to write")
    options = parser.parse_args()
    os.environ.update(AVX2 if options.avx2 else {})
    from benchmarks.timing import environment, limit_threads

    limit_threads(THREADS)
    if options.memory:
        found = [reading(pair, options) for pair in LARGE[: 1 if options.small else None]]
        _print_reading(found)
    else:
        pairs = [*MODELS, *random_pairs(options.random)]
        found = [_logged(sweep(pair, ROWS, options)) for pair in (pairs[:1] if options.small else pairs)]
        _print_sweep(found)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"environment": environment(), "pairs": found}, indent=1) + "\n")


def _logged(row: dict[str, Any]) -> dict[str, Any]:
    print(f"{row['pair']}: at most {max(row['ratios']):.2f} of the better peer", flush=True)
    return row


def _print_sweep(found: list[dict[str, Any]]) -> None:
    cells = []
    for row in sorted(found, key=lambda row: -max(row["ratios"])):
        worst = int(np.argmax(row["ratios"]))
        slower = [m for m, ratio in zip(row["rows"], row["ratios"], strict=True) if ratio > LIMIT]
        mean = geometric_mean(row["ratios"])
        cells.append([
            str(row["pair"]), f"{mean:.2f}", f"{row['ratios'][worst]:.2f}", str(row["rows"][worst]), str(len(slower)),
            " ".join(map(str, row["back"])) or "none",
        ])  # fmt: skip
    head = ["(k, n)", "ours / better peer, mean", "worst", "at rows", f"above {LIMIT}", "steps back"]
    print(table(head, cells))
    ratios = [ratio for row in found for ratio in row["ratios"]]
    mean = geometric_mean(ratios)
    print(f"geometric mean {mean:.3f}, {sum(r > LIMIT for r in ratios)} of {len(ratios)} above {LIMIT}, "
          f"{sum(len(row['back']) for row in found)} steps back of more than {STEP_BACK}")  # fmt: skip


def _print_reading(found: list[dict[str, Any]]) -> None:
    cells = [[str(row["pair"]), *(f"{share:.2f}" for share in row["shares"])] for row in found]
    print(table(["(k, n)", *(f"{m} rows" for m in FEW)], cells))
    shares = [share for row in found for share in row["shares"]]
    print(f"{sum(share < SHARE for share in shares)} of {len(shares)} below {SHARE} of the speed of reading")


if __name__ == "__main__":
    main()
