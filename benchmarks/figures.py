# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The figures in the tables and pictures, computed from the JSON file of a run."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Any

from benchmarks.backends import BACKENDS

Result = dict[str, Any]

REFERENCE = "jit"
"""Whose latency is 1."""


@dataclass(frozen=True)
class Loss:
    """A shape at which a peer is faster; `ratio` is our latency over the peer's."""

    peer: str
    shape: tuple[int, ...]
    ratio: float


def title(name: str) -> str:
    """A backend's name for people."""
    return BACKENDS[name].title


def ran(work: Result) -> dict[str, Result]:
    """The backends that could do a work."""
    return {name: row for name, row in work["backends"].items() if "refused" not in row}


def peers(work: Result) -> list[str]:
    """The others that could do it at all shapes."""
    return [name for name in ran(work) if not BACKENDS[name].ours]


def rival(work: Result, peer: str) -> str:
    """The backend of ours that a peer is compared with, if both could do the work.

    Bound where the peer's compiler sees the weights, or there are none and the peer takes no jax.Arrays; else passed.
    """
    entry = BACKENDS[peer]
    bound = entry.freezes if work["weights"] else "jax" not in entry.needs
    return "ours_bound" if bound and "ours_bound" in ran(work) else "ours"


def ratios(work: Result, name: str, over: str) -> list[float]:
    """One backend's warm latency over another's, at each shape that both ran; empty when one of them ran none."""
    one, other = ran(work).get(name), ran(work).get(over)
    if one is None or other is None:
        return []
    others = dict(zip(other["shapes"], other["warm_seconds"], strict=False))
    pairs = zip(one["shapes"], one["warm_seconds"], strict=False)
    return [seconds / others[index] for index, seconds in pairs if index in others]


def mean_ratio(work: Result, name: str, over: str = REFERENCE) -> float:
    """The geometric mean of `ratios`; NaN for none."""
    values = ratios(work, name, over)
    return math.exp(statistics.fmean(map(math.log, values))) if values else math.nan


def best_peer(work: Result) -> str:
    """The peer that is fastest by the geometric mean over the shapes; empty when there is none."""
    return min(peers(work), key=lambda name: mean_ratio(work, name, peers(work)[0]), default="")


def against_best(work: Result) -> float:
    """Ours over the best peer, geometric mean over the shapes."""
    best = best_peer(work)
    return mean_ratio(work, rival(work, best), best) if best else math.nan


def against_each_best(work: Result) -> float:
    """Ours over the peer that is best at each shape, geometric mean over the shapes."""
    all_ratios = [ratios(work, rival(work, peer), peer) for peer in peers(work)]
    worst = [max(of_shape) for of_shape in zip(*all_ratios, strict=False)]
    return math.exp(statistics.fmean(map(math.log, worst))) if worst else math.nan


def losses(work: Result) -> list[Loss]:
    """Every shape and peer that ours is slower than, the worst first."""
    found = []
    for peer in peers(work):
        for shape, ratio in zip(work["shapes"], ratios(work, rival(work, peer), peer), strict=False):
            if ratio > 1.0:
                found.append(Loss(peer, tuple(shape), ratio))
    return sorted(found, key=lambda loss: -loss.ratio)


def new_shape_seconds(row: Result) -> float:
    """The cost of a shape's first call beyond a repeated one: the median over all shapes but the very first."""
    extra = [first - warm for first, warm in zip(row["first_seconds"], row["warm_seconds"], strict=False)][1:]
    return max(0.0, statistics.median(extra)) if extra else math.nan


def dynamism(work: Result) -> float:
    """The price of dynamism: our latency for one shape alone over that of the executable for all; 1 is no price."""
    return mean_ratio(work, "ours_static", "ours")


def kernel_count(row: Result) -> int:
    """Kernels a call; 0 where it is not known."""
    return sum(row.get("kernels", {}).values())


def size(shape: list[int]) -> int:
    """The product of a shape's sizes: what latencies are drawn over."""
    return math.prod(shape)
