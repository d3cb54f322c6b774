# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order of kernels by the least times that `explain` states, beside that by the times that they take.

`python -m benchmarks.estimates` compiles works, measures each kernel at a few shapes, and prints by kind of kernel the
rank correlation (Spearman, 1904) of the estimates with the times, and the share of the estimate in the time.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.tables import table
from benchmarks.timing import limit_threads
from benchmarks.works import all_works

WORKS = ("bert", "seq2seq", "dien", "asr", "crnn", "vit", "transformer_train", "gpt2_decode", "softmax", "layernorm",
         "gelu_bias", "rmsnorm_rope", "cross_entropy", "softmax_gradient", "layernorm_gradient")  # fmt: skip
SHAPES = 4


class Sample(NamedTuple):
    """One kernel at one shape: its kind, and seconds."""

    kind: str
    estimated: float
    measured: float


def measure(name: str, threads: int, small: bool) -> Iterator[Sample]:
    """The kernels of a work at shapes from all of its stream; those without a time or an estimate are left out."""
    import shlo_disc

    work = all_works()[name](small)
    executable = shlo_disc.compile(work.export(), options=shlo_disc.Options(threads=threads))
    symbols = [symbol.strip() for symbol in work.dims.split(",")]
    for shape in work.shapes[:: max(1, len(work.shapes) // SHAPES)][:SHAPES]:
        for kernel in executable.explain(**dict(zip(symbols, shape, strict=True))).kernels:
            if kernel.seconds and kernel.estimated_seconds:
                yield Sample(kernel.kind, kernel.estimated_seconds, kernel.seconds)


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's, equal values having their mean rank; NaN where one side has one value only."""
    ranks = [_ranks(values) for values in (first, second)]
    if len(first) < 2 or any(len(set(own)) == 1 for own in ranks):
        return math.nan
    return statistics.correlation(*ranks)


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=lambda number: values[number])
    ranks = [0.0] * len(values)
    begin = 0
    while begin < len(order):
        end = begin
        while end < len(order) and values[order[end]] == values[order[begin]]:
            end += 1
        for number in order[begin:end]:
            ranks[number] = (begin + end - 1) / 2
        begin = end
    return ranks


def report(samples: Sequence[Sample]) -> str:
    """A line for each kind of kernel, and one for all."""
    groups: dict[str, list[Sample]] = {"all": list(samples)}
    for sample in samples:
        groups.setdefault(sample.kind, []).append(sample)
    rows = []
    for kind, own in groups.items():
        correlation = rank_correlation([s.estimated for s in own], [s.measured for s in own])
        share = statistics.median(s.estimated / s.measured for s in own)
        rows.append([kind, str(len(own)), "-" if math.isnan(correlation) else f"{correlation:.3f}", f"{share:.2f}"])
    return table(["kind", "kernels", "rank correlation", "median estimate / time"], rows)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.estimates", description=__doc__)
    parser.add_argument("works", nargs="*", default=WORKS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--small", action="store_true", help="small configurations: does it run?")
    options = parser.parse_args()
    limit_threads(options.threads)
    samples: list[Sample] = []
    for name in options.works:
        samples += measure(name, options.threads, options.small)
        print(f"{name}: {len(samples)} kernels so far", flush=True)
    print(report(samples))


if __name__ == "__main__":
    main()
