# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures a work: each backend in a fresh process, warm calls in turns, everything else alone.

The rule of measurement is in docs/benchmarks.md.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.backends import BACKENDS, THREADS
from benchmarks.data import Folder, leaves, like, load
from benchmarks.worker import results_file
from benchmarks.works import Work
from examples.model import relative_error

Result = dict[str, Any]
Log = Callable[[str], None]

ROUNDS = 5
"""Rounds at a shape, in each of which all backends have a turn."""
SLOW_ROUNDS = 3
"""Rounds when a call of one of them takes more than SLOW seconds."""
SLOW = 0.1
PAUSE = 0.01
"""Seconds between two backends' turns, in which the first one's threads stop to spin."""
PATIENCE = 600.0
"""Seconds after which a backend that does not answer is refused."""


class Process:
    """A backend's process, as its driver sees it."""

    def __init__(self, folder: Folder, name: str):
        scratch = folder.path / f"scratch-{name}"
        scratch.mkdir(exist_ok=True)
        self.name = name
        self.refused = ""
        self._log = (folder.path / f"{name}.log").open("w")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", str(folder.path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=os.environ | settings(scratch),
        )

    def ask(self, do: str, **arguments: Any) -> Result:
        """The answer to a command; an empty one, with `refused` set, when the backend cannot do it."""
        if self.refused:
            return {}
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self._process.stdin.flush()
            answer = self._read()
        except (BrokenPipeError, TimeoutError, ValueError) as error:
            self._process.kill()
            answer = {"refused": str(error) if isinstance(error, TimeoutError) else "the process ended"}
        if "refused" in answer:
            self.refused = answer["refused"]
            return {}
        return answer

    def _read(self) -> Result:
        """The next answer. Raises TimeoutError after PATIENCE, ValueError when there is none."""
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(PATIENCE):
                raise TimeoutError(f"no answer in {PATIENCE:.0f} s")
        answer: Result = json.loads(self._process.stdout.readline())
        return answer

    def end(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            self._process.kill()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


def settings(scratch: Path) -> dict[str, str]:
    """The environment of a backend: its threads, and caches of its own that are empty.

    Packages that are installed have their bytecode, so that this one may keep its own.
    """
    threads = {name: str(THREADS) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    caches = {"TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor"), "XDG_CACHE_HOME": str(scratch)}
    python = {"PYTHONDONTWRITEBYTECODE": ""}
    return {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3", **python, **threads, **caches}


def measure(work: Work, path: Path, names: Sequence[str], budget: float, log: Log) -> Result:
    """All figures of one work. `budget` is how many seconds the warm calls of one backend at one shape may take."""
    folder = work.write(path)
    exported = export_onnx(folder, names, log)
    processes: dict[str, Process] = {}
    result: Result = {
        "title": work.title,
        "dims": work.dims,
        "shapes": folder.shapes,
        "weights": folder.weights_count > 0,
        "backends": {},
    }
    try:
        for name in names:
            log(f"{work.name}: {BACKENDS[name].title}, cold")
            process, row = cold(folder, name, exported)
            result["backends"][name] = row
            if process is not None and BACKENDS[name].cold:
                process.end()
            elif process is not None:
                processes[name] = process
        warm(folder, processes, result["backends"], budget, lambda text: log(f"{work.name}: {text}"))
        for name, process in processes.items():
            row = result["backends"][name]
            row["kernels"] = process.ask("kernels", index=row["shapes"][-1]).get("kernels", {})
            process.refused = ""
    finally:
        for process in processes.values():
            process.end()
    errors(folder, result["backends"])
    return result


def export_onnx(folder: Folder, names: Sequence[str], log: Log) -> Result:
    """The seconds that the export to ONNX took, or why there is none."""
    readers = [BACKENDS[name] for name in names if BACKENDS[name].onnx]
    if not readers:
        return {}
    absent = readers[0].missing()
    if absent:
        return {"refused": f"{absent} is not installed"}
    log(f"{folder.work}: export to ONNX")
    command = [sys.executable, "-m", "benchmarks.onnx_export", str(folder.path)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | settings(folder.path))
    (folder.path / "onnx_export.log").write_text(done.stdout + done.stderr)
    if done.returncode == 0:
        return {"export": float(done.stdout.splitlines()[-1])}
    lines = [
        line.strip() for line in done.stderr.splitlines() if re.match(r"(<class ')?[\w.]*(Error|Exception)\b", line)
    ]
    return {"refused": f"export to ONNX: {lines[-1] if lines else 'see its log'}"[:300]}


def cold(folder: Folder, name: str, exported: Result) -> tuple[Process | None, Result]:
    """A fresh process and its first calls: seconds of each step, and its memory and compiles after all of them."""
    entry = BACKENDS[name]
    absent = entry.missing()
    if absent:
        return None, {"refused": f"{absent} is not installed"}
    if entry.onnx and "refused" in exported:
        return None, exported
    process = Process(folder, name)
    count = len(folder.shapes)
    shapes = (
        list(range(count)) if not entry.shapes else sorted({i * count // entry.shapes for i in range(entry.shapes)})
    )
    prepared = process.ask("prepare")
    first: list[float] = [process.ask("first", index=index).get("seconds", 0.0) for index in shapes]
    peak = process.ask("peak")
    compiles = process.ask("compiles")
    if process.refused:
        process.end()
        return None, {"refused": process.refused}
    steps = (exported if entry.onnx else {}) | prepared["steps"]
    return process, {
        "shapes": shapes,
        "import_seconds": prepared["import"],
        "steps": steps,
        "first_seconds": first,
        "cold_seconds": sum(steps.values()) + sum(first),
        "peak_bytes": peak["peak"],
        "held_bytes": peak["held"],
        "compiles": compiles["compiles"],
        "warm_seconds": [],
        "spread": [],
        "kernels": {},
    }


def warm(folder: Folder, processes: dict[str, Process], rows: dict[str, Result], budget: float, log: Log) -> None:
    """Adds medians and spreads of the warm calls at each shape; the backends take turns."""
    for index, shape in enumerate(folder.shapes):
        log(f"warm at {tuple(shape)}")
        samples = turns({n: p for n, p in processes.items() if index in rows[n]["shapes"]}, index, budget)
        for name, values in samples.items():
            quarters = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
            rows[name]["warm_seconds"].append(quarters[1])
            rows[name]["spread"].append((quarters[2] - quarters[0]) / quarters[1])


def turns(processes: dict[str, Process], index: int, budget: float) -> dict[str, list[float]]:
    """Seconds of the calls at one shape. Each round has the opposite order of the one before."""
    samples: dict[str, list[float]] = {name: [] for name in processes}
    order = list(processes)
    for number in range(ROUNDS):
        if number == SLOW_ROUNDS and any(min(values, default=0.0) > SLOW for values in samples.values()):
            break
        for name in order:
            samples[name] += processes[name].ask("time", index=index, budget=budget / ROUNDS).get("seconds", [])
            time.sleep(PAUSE)
        order.reverse()
    for name, values in samples.items():
        if not values:
            raise RuntimeError(f"{name} failed at a shape that it had run: {processes[name].refused}")
    return samples


def errors(folder: Folder, rows: dict[str, Result]) -> None:
    """Adds the error of each backend's results at each shape, relative to jax.jit's."""
    if "refused" in rows.get("jit", {"refused": ""}):
        return
    for name, row in rows.items():
        if "refused" not in row:
            row["errors"] = [_error(folder, name, index) for index in row["shapes"]]


def _error(folder: Folder, name: str, index: int) -> float:
    want = load(results_file(folder, "jit", index))
    got = leaves(load(results_file(folder, name, index)))
    return relative_error(like(want, got), want) if len(got) == len(leaves(want)) else float("inf")
