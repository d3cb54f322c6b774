# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A backend's process, as its driver sees it: it may hang, or die with its GPU's context, and is started again."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from pathlib import Path
from typing import Any

import benchmarks
from benchmarks.gpu.backends import BACKENDS

Answer = dict[str, Any]

ROOT = Path(benchmarks.__file__).parents[1]
PROGRAM = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from benchmarks.gpu.worker import main
sys.exit(main(sys.argv[1:]))
"""
MOST_STARTS = 25
"""A backend that fails more often than that is not started again."""


class Process:
    """A backend's process, started when it is first asked and after each failure."""

    def __init__(self, name: str, bundle: Path, log: Path):
        self.name = name
        self._bundle, self._log = bundle, log
        self._process: subprocess.Popen[str] | None = None
        self._starts = 0
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")

    def ask(self, do: str, patience: float, **arguments: Any) -> Answer:
        """The answer to a command; {"refused": why} when it cannot be done, or not in `patience` seconds.

        An error ends the process, for on a GPU that has met one nothing else may run; what a backend knows that it
        cannot do does not.
        """
        try:
            answer = self._ask({"do": do, **arguments}, patience)
        except TimeoutError:
            answer = {"refused": f"no answer in {patience:.0f} s"}
        except (BrokenPipeError, ValueError):
            answer = {"refused": f"the process ended{self._how()}"}
        if "refused" in answer and not answer.pop("is_usable", False):
            self.end()
        return answer

    def _ask(self, request: Answer, patience: float) -> Answer:
        """Raises TimeoutError, and BrokenPipeError or ValueError when the process is no more."""
        if self._process is None:
            if self._starts == MOST_STARTS:
                return {"refused": f"it has failed {MOST_STARTS} times, and is not started again"}
            self._start()
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(max(patience, 0.1)):
                raise TimeoutError
        answer: Answer = json.loads(process.stdout.readline())
        return answer

    def _start(self) -> None:
        self._starts += 1
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, self.name, str(self._bundle)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | BACKENDS[self.name].environment,
            )

    def _how(self) -> str:
        """Describes how the process ended, if it did by itself."""
        if self._process is None:
            return ""
        try:
            status = self._process.wait(2)
        except subprocess.TimeoutExpired:
            return ""
        return f" with signal {-status}" if status < 0 else f" with status {status}"

    def end(self) -> None:
        """Ends the process."""
        if self._process is None:
            return
        process, self._process = self._process, None
        assert process.stdin is not None
        try:
            process.stdin.close()
            process.wait(2)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            process.kill()
            process.wait()
