# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Timing shared by the benchmarks and the demo: interleaved runs, medians, the environment line.

All times are seconds of `time.perf_counter`.
"""

from __future__ import annotations

import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax
import numpy as np

Call = Callable[[], Any]


def limit_threads(threads: int) -> None:
    """Binds this process to `threads` of its CPUs, before any pool starts: XLA and shlo_disc size theirs by it."""
    if not hasattr(os, "sched_setaffinity"):
        return
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, allowed[:threads])


def seconds(call: Call) -> float:
    """Wall time of one call, waiting for results that arrive later (jax.Array)."""
    start = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - start


def interleaved(calls: Mapping[str, Call], rounds: int, warmup: int = 1, pause: float = 0.0) -> dict[str, float]:
    """Median seconds of each call. The calls take turns, each round in the opposite order of the one before.

    A disturbance of the machine then touches all of them alike, and none always runs on the caches another left. In
    `pause` seconds before each measurement, the threads of the call before it stop spinning.
    """
    for _ in range(warmup):
        for call in calls.values():
            seconds(call)
    samples: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls)
    for _ in range(rounds):
        for name in order:
            time.sleep(pause)
            samples[name].append(seconds(calls[name]))
        order.reverse()
    return {name: statistics.median(values) for name, values in samples.items()}


def per_call(call: Call, repeats: int, batches: int = 7) -> float:
    """Median over `batches` of the mean seconds of `repeats` calls in a row; for calls of microseconds."""
    means = []
    for _ in range(batches + 1):
        start = time.perf_counter()
        for _ in range(repeats):
            result = call()
        jax.block_until_ready(result)
        means.append((time.perf_counter() - start) / repeats)
    return statistics.median(means[1:])


def rounds_for(one: float, budget: float, least: int = 3, most: int = 15) -> int:
    """The number of rounds of a call of `one` seconds that fit into `budget` seconds, within [least, most]."""
    return max(least, min(most, int(budget / max(one, 1e-9))))


def shape_stream(count: int, batch: int, length: int, tokens: int, seed: int = 0) -> list[tuple[int, int]]:
    """`count` different (b, s) with b <= batch, s <= length and b * s <= tokens, the corners among them.

    Lengths are drawn evenly in their logarithm, as short requests are the common ones in serving.
    """
    random = np.random.default_rng(seed)
    stream = {(1, 1): None, (1, min(length, tokens)): None, (batch, max(1, min(length, tokens // batch))): None}
    tries = 0
    while len(stream) < count:
        tries += 1
        if tries > 1000 * count:
            raise ValueError(f"fewer than {count} different shapes satisfy the limits")
        b = int(random.integers(1, batch + 1))
        s = int(np.exp(random.uniform(0.0, math.log(length + 1))))
        if b * s <= tokens:
            stream[b, min(max(s, 1), length)] = None
    shapes = list(stream)[:count]
    return [shapes[i] for i in random.permutation(len(shapes))]


def environment() -> str:
    """One line that says what was measured on: processor, usable CPUs, system, versions."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = ", ".join(f"{name} {_version(name)}" for name in ("shlo_disc", "jax", "jaxlib", "llvmlite", "numpy"))
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"{_processor()}, {cpus} CPUs, {system}; {versions}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
