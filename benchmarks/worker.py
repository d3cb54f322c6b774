# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A backend's process: `python -m benchmarks.worker FOLDER BACKEND` answers one JSON line to each it reads.

It imports only what its backend needs, so that its peak memory is the backend's.
"""

from __future__ import annotations

import ctypes
import gc
import json
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.backends import BACKENDS
from benchmarks.data import Folder, sample, save

Answer = dict[str, Any]

SHORTEST = 2e-4
"""Calls shorter than this are timed in groups, in seconds."""
LONG = 2e-2
"""Calls longer than this are steady after one."""
RELEASE_DELAY = 0.2
"""Seconds after which nobody holds the arrays any more from which the weights were made."""


class Worker:
    """The commands are methods: prepare, first, time, peak, compiles and kernels."""

    def __init__(self, folder: Folder, name: str):
        self._folder = folder
        self._name = name
        self._placed: tuple[int, Any] = (-1, None)
        self._peak = 0

    def prepare(self) -> Answer:
        """Imports, reads the weights, and prepares; only the first and the last are timed."""
        start = time.perf_counter()
        self._backend = BACKENDS[self._name].create(self._folder)
        imported = time.perf_counter() - start
        self._backend.load()
        release_freed()
        forget_peak()
        steps = self._backend.prepare()
        self._note_peak()
        return {"import": imported, "steps": steps}

    def first(self, index: int) -> Answer:
        """The seconds of one call at a shape; keeps a sample of its results in a file."""
        inputs = self._place(index)
        forget_peak()
        start = time.perf_counter()
        result = self._backend.call(inputs)
        self._backend.synchronise(result)
        seconds = time.perf_counter() - start
        self._note_peak()
        save(results_file(self._folder, self._name, index), sample(self._backend.arrays(result)))
        return {"seconds": seconds}

    def time(self, index: int, budget: float) -> Answer:
        """Seconds of each of several calls at a shape, after one or two that do not count; about `budget` in all."""
        inputs = self._place(index)
        one = self._timed(inputs, 1)
        if one < LONG:
            one = self._timed(inputs, 1)
        group = max(1, math.ceil(SHORTEST / one))
        repeats = max(1, min(50, round(budget / (one * group))))
        return {"seconds": [self._timed(inputs, group) for _ in range(repeats)]}

    def peak(self) -> Answer:
        """The bytes the process has in memory, and the most it had in preparing and in first calls."""
        return memory() | {"peak": self._peak}

    def _note_peak(self) -> None:
        self._peak = max(self._peak, memory()["peak"])

    def compiles(self) -> Answer:
        """The number of programs compiled up to now."""
        return {"compiles": self._backend.compiles()}

    def kernels(self, index: int) -> Answer:
        """The kernels of a call at a shape."""
        return {"kernels": self._backend.kernels(index)}

    def _place(self, index: int) -> Any:
        if self._placed[0] != index:
            self._placed = (-1, None)
            self._placed = (index, self._backend.place(index))
        return self._placed[1]

    def _timed(self, inputs: Any, group: int) -> float:
        call, synchronise = self._backend.call, self._backend.synchronise
        start = time.perf_counter()
        for _ in range(group):
            synchronise(call(inputs))
        return (time.perf_counter() - start) / group


def results_file(folder: Folder, name: str, index: int) -> Path:
    """The file of a backend's sample of results at a shape."""
    return folder.path / f"results-{name}-{index}.npz"


def forget_peak() -> None:
    """Makes the kernel count the peak of this process's memory from what it holds now."""
    Path("/proc/self/clear_refs").write_text("5")


def release_freed() -> None:
    """Returns what is freed to the system.

    What reading the weights leaves behind, copies that JAX drops a moment later and pieces that the C library keeps, is
    not the backend's.
    """
    time.sleep(RELEASE_DELAY)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def memory() -> Answer:
    """The bytes the process has in memory, and the most it had since the peak was forgotten."""
    status = Path("/proc/self/status").read_text().splitlines()
    values = {line.split()[0]: line.split()[1] for line in status if line.startswith(("VmHWM:", "VmRSS:"))}
    return {"peak": int(values["VmHWM:"]) * 1024, "held": int(values["VmRSS:"]) * 1024}


def main(arguments: list[str]) -> int:
    """Answers until the input ends. What a backend raises is answered as a refusal."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print belongs to the log
    worker = Worker(Folder.read(Path(arguments[0])), arguments[1])
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, request.pop("do"))(**request)
        except Exception as error:
            sys.excepthook(*sys.exc_info())
            answer = {"refused": describe(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    return 0


def describe(error: BaseException) -> str:
    """The error's type, and of its message the first line that speaks of an error, or else the first with words."""
    error = getattr(error, "inner_exception", error)  # what a backend of torch.compile raised
    lines = [line.strip() for line in str(error).splitlines() if any(char.isalpha() for char in line)]
    errors = [line[line.index("error: ") :] for line in lines if "error: " in line]
    name = type(error).__name__
    text = next(iter(errors or lines), "")
    return (text if name == "Refused" else f"{name}: {text}")[:300]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
