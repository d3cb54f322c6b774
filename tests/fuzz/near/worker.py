# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process under test, which examines many cases one after the other, and its parent's end of it.

Before each dangerous step the process says what it does, so that the parent knows what a signal interrupted.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import resource
import shutil
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from typing import Any

from tests.fuzz.near.case import Case
from tests.fuzz.near.examine import Examiner, Finding, Report

TIME_LIMIT = 120.0
"""Seconds for one step of a case, such as a compile."""

MOST_CASES = 1500
MOST_BYTES = 3 << 30
"""A process that has examined so many, or has grown so large, is replaced."""


@dataclass(frozen=True)
class Setup:
    """How a process works."""

    plugin: bool = False
    xla_every: int = 25
    plain_every: int = 25
    coverage: bool = False
    gradients: float = 0.2


@dataclass
class Answer:
    """A report on a case; `case` is sent back where something was found. `lines`: lines that were seen first."""

    report: Report
    case: Case | None = None
    seconds: float = 0.0
    lines: dict[str, set[int]] = field(default_factory=dict)
    last: bool = False


@dataclass(frozen=True)
class Seed:
    """A case by its seed. `turned_off`: conditions of patterns that are taken to hold in it.

    `only_decide`: it is compiled as far as there are decisions, and not called.
    """

    seed: int
    family: str
    front: str
    turned_off: tuple[str, ...] = ()
    only_decide: bool = False


@dataclass(frozen=True)
class Trial:
    """A case of which only the finding matters."""

    case: Case


Job = Case | Seed | Trial


def _serve(connection: Any, setup: Setup) -> None:
    os.environ["SHLO_DISC_STRICT"] = "1"
    os.environ["JAX_PLATFORMS"] = "shlo_disc,cpu" if setup.plugin else "cpu"
    import jax

    jax.config.update("jax_platforms", os.environ["JAX_PLATFORMS"])
    from tests.fuzz.near.line_coverage import LineCoverage

    warnings.simplefilter("ignore")
    tempfile.tempdir = tempfile.mkdtemp(prefix="shlo_disc-fuzz-")  # for reproducers of internal errors
    atexit.register(shutil.rmtree, tempfile.tempdir, ignore_errors=True)
    lines = LineCoverage() if setup.coverage else None
    examiner = Examiner(connection.send, setup.xla_every, setup.plain_every)
    done = 0
    try:
        while True:
            job = connection.recv()
            answer = _answer(job, examiner, setup)
            done += 1
            answer.lines = lines.news() if lines else {}
            answer.last = done >= MOST_CASES or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > MOST_BYTES
            connection.send(answer)
            if answer.last:
                return
            if done % 50 == 0:
                jax.clear_caches()
    except (EOFError, ConnectionError):
        return


def _answer(job: Job, examiner: Examiner, setup: Setup) -> Answer:
    from shlo_disc.transforms.decisions import TURNED_OFF
    from tests.fuzz.near.case import case_of
    from tests.fuzz.near.program import Rejected

    start = time.perf_counter()
    if isinstance(job, Seed):
        try:
            case = case_of(job.seed, job.family, job.front, setup.gradients)
        except Rejected as error:
            return Answer(Report(unpredictable=str(error)), seconds=time.perf_counter() - start)
        if job.only_decide:
            return Answer(examiner.decide(case), seconds=time.perf_counter() - start)
        TURNED_OFF.update(job.turned_off)
    else:
        case = job.case if isinstance(job, Trial) else job
    try:
        report = examiner.examine(case, quick=isinstance(job, Trial) or bool(TURNED_OFF))
    finally:
        TURNED_OFF.clear()
    found = case if report.finding is not None else None
    return Answer(report, found, time.perf_counter() - start)


class Worker:
    """A process under test, as its parent sees it. It is started again after a signal."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.job: Job | None = None
        self._process: Any = None
        self._connection: Any = None
        self._doing = ""
        self._deadline = 0.0

    @property
    def connection(self) -> Any:
        """What becomes readable when the process has said something."""
        return self._connection

    def send(self, job: Job) -> None:
        """Have a case examined."""
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._connection, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs, self.setup), daemon=True)
            self._process.start()
            theirs.close()
        self.job = job
        self._doing = "start"
        self._deadline = time.monotonic() + TIME_LIMIT
        self._connection.send(job)

    def take(self) -> Answer | None:
        """The answer, once it is there."""
        try:
            while self._connection.poll():
                message = self._connection.recv()
                if isinstance(message, Answer):
                    if message.last:
                        self._process.join()
                        self._process = None
                    return message
                self._doing = message
                self._deadline = time.monotonic() + TIME_LIMIT
        except (EOFError, ConnectionError):
            self._process.join()
            code = self._process.exitcode
            self._process = None
            return self._lost(Finding("signal", f"exit status {code}: while in {self._doing}"))
        if time.monotonic() > self._deadline:
            self.close()
            return self._lost(Finding("timeout", f"no answer after {TIME_LIMIT:.0f} s: of {self._doing}"))
        return None

    def _lost(self, finding: Finding) -> Answer:
        return Answer(Report(finding), self.job if isinstance(self.job, Case) else None)

    def examine(self, job: Job) -> Answer:
        """Examine one case and wait for the answer."""
        self.send(job)
        return self.wait()

    def wait(self) -> Answer:
        """The answer to what was sent."""
        while True:
            self._connection.poll(1.0)
            if (answer := self.take()) is not None:
                return answer

    def kill(self) -> None:
        """End the process at once, as a signal in the program under test would."""
        self._process.kill()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._connection.close()
            self._process.join(1)
            if self._process.is_alive():
                self._process.kill()
            self._process.join()
            self._process = None
