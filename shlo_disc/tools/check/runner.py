# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases over worker processes. A worker that dies or exceeds the time limit is replaced; the case is its outcome."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from shlo_disc.importer.child import Child, ChildEnded
from shlo_disc.tools.check.modules import Case

WORKER = "shlo_disc.tools.check.worker"
"""The module that the processes run."""


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
        self._child = Child(WORKER)

    def run(self, case: Case) -> Result:
        """Run one case, for at most the time limit."""
        start = time.perf_counter()
        if case.skipped:
            return Result(case.file, case.name, "skipped", (case.skipped,))
        answer = self._ask({"case": asdict(case), "options": self._options})
        seconds = time.perf_counter() - start
        reasons, ops = tuple(answer["reasons"]), tuple(answer.get("ops", ()))
        symbols = answer.get("symbols", 0)
        return Result(case.file, case.name, answer["status"], reasons, ops, symbols, round(seconds, 3))

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._child.ask(request, seconds=self._limit)[0]
        except ChildEnded as ended:
            if ended.status is None:
                return {"status": "time limit", "reasons": [f"not done after {self._limit:g} s"]}
            return {"status": "crash", "reasons": [str(ended)[:200]]}

    def close(self) -> None:
        """End the process."""
        self._child.close()


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
