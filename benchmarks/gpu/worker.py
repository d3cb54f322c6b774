# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A backend's process: reads commands as lines of JSON, and answers each with one. It imports only what it needs."""

from __future__ import annotations

import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gpu.backends import BACKENDS, Backend, Refused
from benchmarks.gpu.bundle import Bundle, Program

Answer = dict[str, Any]
Call = Callable[[], Any]
Wait = Callable[[Any], None]

GROUP_SECONDS = 4e-3
"""Calls are given in groups that take about as long, so that the GPU need not wait for the processor."""
MOST_IN_A_GROUP = 200
SAMPLES = 32
"""Numbers of each result by which backends are compared."""


class Worker:
    """The commands are methods: facts, check, start, first, time and copy."""

    def __init__(self, bundle: Bundle, name: str):
        self._bundle = bundle
        self._name = name
        self._made: Backend | None = None
        self._program: Program | None = None

    @property
    def _backend(self) -> Any:
        self._made = self._made or BACKENDS[self._name].create(self._bundle)
        return self._made

    def facts(self) -> Answer:
        """The versions of what the backend consists of."""
        return {"facts": self._backend.facts()}

    def check(self, program: str) -> Answer:
        """Tells whether the calls of a program give what was recorded."""
        from benchmarks.gpu.replay import check

        return check(self._bundle, self._bundle.program(program), self._backend)

    def start(self, program: str) -> Answer:
        """The seconds that it takes to make a program ready."""
        self._program = found = self._bundle.program(program)
        weights = self._bundle.weights(found)
        start = time.perf_counter()
        self._backend.load(found, weights)
        return {"seconds": time.perf_counter() - start}

    def first(self, index: int) -> Answer:
        """The seconds of the first call at a shape, and a sample of its results."""
        program = self._program
        assert program is not None
        self._inputs = None
        self._inputs = self._backend.place(self._bundle.inputs(program, index))
        start = time.perf_counter()
        result = self._backend.call(self._inputs)
        self._backend.wait(result)
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "sample": [sample(array) for array in self._backend.arrays(result)]}

    def time(self, seconds: float) -> Answer:
        """Medians at the shape of the last first call: of a call that is waited for, and of one among many."""
        call, inputs = self._backend.call, self._inputs
        return measure(lambda: call(inputs), self._backend.wait, seconds)

    def copy(self, size: int, seconds: float) -> Answer:
        """Medians of a copy of `size` bytes on the GPU, which reads and writes as many."""
        with self._backend.copy(size) as copy:
            return measure(copy, self._backend.wait, seconds)


def measure(call: Call, wait: Wait, budget: float) -> Answer:
    """ "latency": seconds of a call that is waited for; "stream": of one of a group that is waited for at its end."""
    one = min(_timed(call, wait, 1) for _ in range(3))
    alone = [_timed(call, wait, 1) for _ in range(_repeats(one, budget / 3))]
    group = min(MOST_IN_A_GROUP, max(1, math.ceil(GROUP_SECONDS / min(alone))))
    together = [_timed(call, wait, group) / group for _ in range(_repeats(one * group, budget * 2 / 3))]
    return {"latency": statistics.median(alone), "stream": statistics.median(together)}


def _repeats(one: float, budget: float) -> int:
    return max(5, min(50, round(budget / max(one, 1e-9))))


def _timed(call: Call, wait: Wait, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        result = call()
    wait(result)
    return time.perf_counter() - start


def sample(array: np.ndarray) -> list[float]:
    """Some evenly spaced numbers, and the largest finite magnitude, as the last one."""
    flat = np.asarray(array).reshape(-1).astype(np.float64)
    some = flat[:: max(1, -(-flat.size // SAMPLES))]
    return [*map(float, some), float(np.abs(flat[np.isfinite(flat)]).max(initial=0.0))]


def main(arguments: list[str]) -> int:
    """`BACKEND BUNDLE`: answers until the input ends. What is raised is answered as a refusal."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print belongs to the log
    worker = Worker(Bundle(Path(arguments[1])), arguments[0])
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, request.pop("do"))(**request)
        except Exception as error:
            sys.excepthook(*sys.exc_info())
            answer = {"refused": describe(error), "is_usable": isinstance(error, Refused | ImportError)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    return 0


def describe(error: BaseException) -> str:
    """The error's type and the first line of its message that has words."""
    lines = [line.strip() for line in str(error).splitlines() if any(char.isalpha() for char in line)]
    text = (lines or [""])[0][:400]
    return text if isinstance(error, Refused) else f"{type(error).__name__}: {text}"
