# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases over worker processes. A worker that dies or exceeds the time limit is replaced; the case is its outcome."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from shlo_disc.check.modules import Case

COMMAND = (sys.executable, "-P", "-m", "shlo_disc.check.worker")


@dataclass(frozen=True)
class Result:
    """The outcome of a case, as `worker.Outcome` describes it, and how long it took."""

    file: str
    case: str
    status: str
    reasons: tuple[str, ...]
    ops: tuple[str, ...] = ()
    symbols: int = 0
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Neither passed nor skipped."""
        return self.status not in ("pass", "skipped")


class Worker:
    """One process, started when the first case comes."""

    def __init__(self, options: dict[str, Any], limit: float):
        self._options = options
        self._limit = limit
        self._process: subprocess.Popen[str] | None = None
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - it lives as long as the worker

    def run(self, case: Case) -> Result:
        """Run one case, for at most the time limit."""
        start = time.perf_counter()
        if case.skipped:
            return Result(case.file, case.name, "skipped", (case.skipped,))
        answer = self._ask(json.dumps({"case": asdict(case), "options": self._options}))
        seconds = time.perf_counter() - start
        reasons, ops = tuple(answer["reasons"]), tuple(answer.get("ops", ()))
        symbols = answer.get("symbols", 0)
        return Result(case.file, case.name, answer["status"], reasons, ops, symbols, round(seconds, 3))

    def _ask(self, request: str) -> dict[str, Any]:
        process = self._start()
        assert process.stdin is not None and process.stdout is not None  # noqa: S101 - both are pipes
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            process.kill()

        timer = threading.Timer(self._limit, expire)
        timer.start()
        try:
            process.stdin.write(request + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if line.endswith("\n"):
            return dict(json.loads(line))
        status = process.wait()  # its end of the pipe is closed: it has ended, or is about to
        self.close()
        if expired.is_set():
            return {"status": "time limit", "reasons": [f"not done after {self._limit:g} s"]}
        return {"status": "crash", "reasons": [self._how_it_ended(status)]}

    def _start(self) -> subprocess.Popen[str]:
        if self._process is None:
            path = os.pathsep.join(entry for entry in sys.path if entry)
            self._errors.truncate(0)
            # The command is fixed: this interpreter and a module of this package.
            self._process = subprocess.Popen(  # noqa: S603
                COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True,
                env={**os.environ, "PYTHONPATH": path},
            )  # fmt: skip
        return self._process

    def _how_it_ended(self, status: int) -> str:
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors.read().splitlines() if line.strip()]
        telling = [line for line in lines if "LLVM ERROR" in line or "Assertion" in line] or lines[-1:]
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return f"{how}: {telling[0][:200]}" if telling else how

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    try:
                        pipe.close()
                    except BrokenPipeError:
                        continue  # what the process did not read is lost on purpose


def run_cases(
    cases: Iterable[Case], options: dict[str, Any], *, jobs: int, limit: float, done: Callable[[Result], None]
) -> list[Result]:
    """Run all cases with `jobs` workers of `Options(**options)`; `done` is told each result as it comes."""
    waiting: queue.SimpleQueue[Case] = queue.SimpleQueue()
    for case in cases:
        waiting.put(case)
    results: list[Result] = []
    lock = threading.Lock()

    def serve() -> None:
        worker = Worker(options, limit)
        try:
            while True:
                result = worker.run(waiting.get_nowait())
                with lock:
                    results.append(result)
                    done(result)
        except queue.Empty:
            return
        finally:
            worker.close()

    threads = [threading.Thread(target=serve, daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


__all__ = ["Result", "Worker", "run_cases"]
