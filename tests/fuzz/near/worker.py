# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process under test, which examines many cases one after the other, and its parent's end of it.

Before each dangerous step the process says what it does, so that the parent knows what a signal interrupted.
"""

from __future__ import annotations

import atexit
import gc
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
from tests.fuzz.process import Process

TIME_LIMIT = 120.0
"""Seconds for one step of a case, such as a compile."""

MOST_CASES = 1500
MOST_BYTES = 3 << 30
"""A process that has examined so many, or has grown so large, is replaced."""


@dataclass(frozen=True)
class Setup:
    """The settings of a process."""

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
    gc.set_threshold(100_000, 50, 100)  # a compile makes many objects that live until its end: 10% of the time
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


class Worker(Process[Job, Answer]):
    """A process that examines many cases one after the other."""

    limits_steps = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(_serve, setup, limit=TIME_LIMIT)

    def is_last(self, answer: Answer) -> bool:
        """A process that has grown is replaced."""
        return answer.last

    def lost(self, kind: str, text: str) -> Answer:
        """A report with a signal, or a timeout."""
        return Answer(Report(Finding(kind, text)), self.job if isinstance(self.job, Case) else None)
