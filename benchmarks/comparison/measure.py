# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures one stream: several rounds of fresh processes, one at a time, then warm calls in turns.

Processes, their commands and what is timed are those of `benchmarks.driver`; docs/benchmarks.md has the rule.
"""

from __future__ import annotations

import datetime
import math
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.backends import BACKENDS, THREADS
from benchmarks.backends.jax_jit import rounded_up
from benchmarks.comparison.streams import order
from benchmarks.data import Folder, leaves, like, load
from benchmarks.driver import Process, export_onnx, settings, turns
from benchmarks.machine import machine
from benchmarks.worker import results_file
from benchmarks.works import Work
from examples.model import relative_error

Result = dict[str, Any]
Log = Callable[[str], None]

FIGURES = ("ahead_seconds", "first_seconds", "total_seconds", "peak_bytes")
"""Figures that are measured in each round; the results have the medians."""


def measure(work: Work, path: Path, names: Sequence[str], rounds: int, budget: float, log: Log) -> Result:
    """All figures of one stream. `budget` is the seconds of warm calls of a backend at a shape."""
    folder = work.write(path)
    calls = order(len(folder.shapes))
    taken: dict[str, list[Result]] = {name: [] for name in names}
    processes: dict[str, Process] = {}
    turn = list(names)
    try:
        for number in range(rounds):
            exported = _export(folder, names, log)
            for name in turn:
                log(f"{work.name}: {BACKENDS[name].title}, round {number + 1} of {rounds}")
                process, row = run_stream(folder, name, calls, exported)
                taken[name].append(row)
                if process is not None and number == rounds - 1:
                    processes[name] = process
                elif process is not None:
                    process.end()
            turn.reverse()
        rows = {name: median_row(of_name) for name, of_name in taken.items()}
        _warm(folder, processes, rows, budget, log)
    finally:
        for process in processes.values():
            process.end()
    reference = _errors(folder, rows)
    return _conditions(work, folder, calls) | {"rounds": rounds, "reference": reference, "backends": rows}


def _export(folder: Folder, names: Sequence[str], log: Log) -> Result:
    """Empties the caches for the round, and returns what the export to ONNX took."""
    for scratch in folder.path.glob("scratch-*"):
        shutil.rmtree(scratch)
    for file in folder.path.glob(f"{folder.onnx.name}*"):
        file.unlink()
    return export_onnx(folder, names, log)


def run_stream(folder: Folder, name: str, calls: Sequence[int], exported: Result) -> tuple[Process | None, Result]:
    """A fresh process and its calls in order: seconds to the first answer and to the last, peak memory, compiles."""
    entry = BACKENDS[name]
    absent = entry.missing()
    if absent:
        return None, {"refused": f"{absent} is not installed"}
    if entry.onnx and "refused" in exported:
        return None, exported
    process = Process(folder, name)
    prepared = process.ask("prepare")
    seconds = [process.ask("first", index=index).get("seconds", math.nan) for index in calls]
    peak, compiles = process.ask("peak"), process.ask("compiles")
    if process.refused:
        process.end()
        return None, {"refused": process.refused}
    ahead = sum(prepared["steps"].values()) + (exported["export"] if entry.onnx else 0.0)
    return process, {
        "ahead_seconds": ahead,
        "first_seconds": ahead + seconds[0],
        "total_seconds": ahead + sum(seconds),
        "peak_bytes": peak["peak"],
        "compiles": compiles["compiles"],
    }


def median_row(rounds: Sequence[Result]) -> Result:
    """The medians over the rounds, and the total of each; or the first refusal."""
    for row in rounds:
        if "refused" in row:
            return {"refused": row["refused"]}
    medians = {key: statistics.median(row[key] for row in rounds) for key in FIGURES}
    return rounds[-1] | medians | {"total_of_rounds": [row["total_seconds"] for row in rounds]}


def _warm(folder: Folder, processes: dict[str, Process], rows: dict[str, Result], budget: float, log: Log) -> None:
    """Adds the medians of calls at each shape, in seconds; the backends take turns."""
    for name in processes:
        rows[name]["warm_seconds"] = []
    for index, shape in enumerate(folder.shapes):
        log(f"{folder.work}: warm at {tuple(shape)}")
        for name, values in turns(processes, index, budget).items():
            rows[name]["warm_seconds"].append(statistics.median(values))


def _errors(folder: Folder, rows: dict[str, Result]) -> str:
    """Adds the largest error over the shapes; returns what the results were compared with."""
    command = [sys.executable, "-m", "benchmarks.comparison.reference", str(folder.path)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | settings(folder.path))
    (folder.path / "reference.log").write_text(done.stdout + done.stderr)
    base, title = ("reference", "PyTorch in float64") if done.returncode == 0 else ("jit", "jax.jit")
    for name, row in rows.items():
        if "refused" not in row and results_file(folder, base, 0).exists():
            row["error"] = max(_error(folder, name, base, index) for index in range(len(folder.shapes)))
    return title


def _error(folder: Folder, name: str, base: str, index: int) -> float:
    """The error of one result, relative to the largest number of the reference; both are compared in float64."""
    want, got = (load(results_file(folder, who, index)) for who in (base, name))
    if len(leaves(got)) != len(leaves(want)):
        return math.inf
    wide = [like(want, [leaf.astype(np.float64) for leaf in leaves(tree)]) for tree in (got, want)]
    return relative_error(*wide)


def _conditions(work: Work, folder: Folder, calls: list[int]) -> Result:
    """The work that was measured, with the date and the machine."""
    found = machine(small=True)
    return {
        "title": work.title,
        "dims": folder.dims,
        "shapes": folder.shapes,
        "calls": calls,
        "padded": padding(folder),
        "measured": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "processor": processor(found["environment"]),
        "threads": THREADS,
        "versions": found["versions"],
    }


def padding(folder: Folder) -> float:
    """The elements of the shapes rounded up to powers of two, over those of the shapes."""
    real = sum(math.prod(shape) for shape in folder.shapes)
    return sum(math.prod(rounded_up(folder, index).values()) for index in range(len(folder.shapes))) / real


def processor(environment: str) -> str:
    """The processor's name, and its widest vectors."""
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    return f"{environment.partition(',')[0]}, {'AVX-512' if 'avx512f' in flags else 'AVX2 without AVX-512'}"
