# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process under test: takes seeds or cases, compiles, runs and compares. A signal ends it, not its parent.

`Worker` is the parent's end. Before each dangerous step the process says what it is doing, so that the parent knows
what a signal interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.fuzz.case import Call, Case, case_of, program_of
from tests.fuzz.process import Process

Job = Case | tuple[int, Sequence[str]]

TIME_LIMIT = 120.0
"""Seconds for one case."""


@dataclass(frozen=True)
class Finding:
    """kind: "refused", "error", "signal", "hang", "mismatch", "accepted" or "oracles"; `text` says more.

    "accepted" is a call that had to be refused; "oracles" is a disagreement between them.
    """

    kind: str
    text: str

    def same_kind(self, other: Finding | None) -> bool:
        """Tells whether another program shows the same defect, as far as one can tell."""
        return other is not None and self.kind == other.kind and self.text.split(":")[0] == other.text.split(":")[0]


@dataclass
class Report:
    """The outcome of a case: a finding or none, ops, seconds by activity, programs by how the plugin served them."""

    finding: Finding | None
    ops: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    calls: int = 0
    interpreted: int = 0
    programs: dict[str, int] = field(default_factory=dict)


def differences(got: Sequence[np.ndarray], want: Sequence[np.ndarray], errors: Sequence[float]) -> str:
    """Describes where results differ by more than their errors; "" nowhere. NaN equals NaN, zeros are equal."""
    for number, (a, b, error) in enumerate(zip(got, want, errors, strict=True)):
        a, b = np.asarray(a), np.asarray(b)
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"result {number} is {a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}"
        wrong = _wrong(a, b, error)
        if wrong.any():
            where = tuple(int(i) for i in np.argwhere(wrong)[0])
            return (f"result {number} at {list(where)} is {a[where]!r}, not {b[where]!r} "
                    f"({wrong.sum()} of {wrong.size} differ by more than {error:.3g})")  # fmt: skip
    return ""


def _wrong(a: np.ndarray, b: np.ndarray, error: float) -> np.ndarray:
    if a.dtype.kind in "iub":
        return np.asarray(a != b)
    if a.dtype.kind == "c":
        return _wrong(a.real, b.real, error) | _wrong(a.imag, b.imag, error)
    with np.errstate(all="ignore"):
        x, y = a.astype(np.float64), b.astype(np.float64)
        return ~((x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= error))


class Examiner:
    """Runs cases in this process."""

    def __init__(self, say: Any):
        import shlo_disc
        from tests.fuzz import oracles

        self._disc = shlo_disc
        self._oracles = oracles
        self._interpreter = oracles.Interpreter()
        self._say = say
        self._seconds: dict[str, float] = {}
        self._start = 0.0
        self._doing = ""

    def close(self) -> None:
        """End the interpreter's process."""
        self._interpreter.close()

    def examine(self, case: Case) -> Report:
        """Compile and run a case, and compare all its calls."""
        report = Report(None, case.ops)
        self._seconds = report.seconds
        report.finding = self._compile_and_run(case, report)
        self._now("")
        return report

    def _now(self, doing: str) -> None:
        if self._doing:
            self._seconds[self._doing] = self._seconds.get(self._doing, 0.0) + time.perf_counter() - self._start
        self._doing, self._start = doing, time.perf_counter()
        self._say(doing)

    def _compile_and_run(self, case: Case, report: Report) -> Finding | None:
        options = self._disc.Options(guard_pages=True, opt_level=case.opt_level, threads=case.threads)
        self._now("compile")
        try:
            executable = self._disc.compile(case.text, options=options)
        except self._disc.errors.UnsupportedError as error:
            return Finding("refused", str(error))
        except Exception as error:  # any other is a defect
            return Finding("error", f"compiling raised {type(error).__name__}: {error}")
        for call in case.calls:
            finding = self._check_call(case, executable, call, report)
            if finding is not None:
                return finding
            report.calls += 1
        for arrays in case.refused:
            self._now("run")
            try:
                executable(*arrays)
            except self._disc.errors.ShapeError:
                continue
            shapes = [a.shape for a in arrays]
            return Finding("accepted", f"a call that breaks the program's requirements: {shapes}")
        return None

    def _check_call(self, case: Case, executable: Any, call: Call, report: Report) -> Finding | None:
        self._now("run")
        try:
            got = executable(*call.arrays)
        except Exception as error:  # an admissible call raises nothing
            return Finding("error", f"running raised {type(error).__name__}: at {call.sizes}: {error}")
        got = list(got) if isinstance(got, tuple | list) else [got]
        return self._compare(case, call, got, report)

    def _compare(self, case: Case, call: Call, got: list[np.ndarray], report: Report) -> Finding | None:
        """With the interpreter, and with XLA where that does not run the call, differs, or it is the last one."""
        self._now("interpreter")
        interpreted = self._interpreter.run(call.carried, call.arrays, got) if len(got) == len(case.errors) else None
        report.interpreted += interpreted is not None
        found = None if interpreted is None else differences(got, interpreted, case.errors)
        if found == "" and call is not case.calls[-1]:
            return None
        self._now("xla")
        compiled = self._oracles.run_xla(call.static, call.arrays)
        differ = None if compiled is None else differences(got, compiled, case.errors)
        if found is None and differ is None:
            return Finding("oracles", f"neither runs the program: at {call.sizes}")
        if not found and not differ:
            return None
        if "" in (found, differ):
            return Finding("oracles", f"XLA {'disagrees' if differ else 'agrees'}: at {call.sizes}: {found or differ}")
        return Finding("mismatch", f"wrong result: at {call.sizes}: {differ or found}")


class PluginExaminer(Examiner):
    """Runs cases through the PJRT plugin, which is sent the program of each call's sizes.

    Sizes that are the program's own come again as instances of one symbolic program, or are compiled as they are: both
    have to be right.
    """

    def __init__(self, say: Any):
        import jax

        from shlo_disc.runtime import _native

        jax.config.update("jax_platforms", "shlo_disc,cpu")
        super().__init__(say)
        self._programs = _native.plugin_programs()

    def examine(self, case: Case) -> Report:
        """Compile and run a case call by call."""
        before = self._programs.counts
        report = super().examine(case)
        report.programs = {how: number - before[how] for how, number in self._programs.counts.items()}
        return report

    def _compile_and_run(self, case: Case, report: Report) -> Finding | None:
        for call in case.calls:
            self._now("plugin")
            try:
                got = self._oracles.run_platform("shlo_disc", call.static, call.arrays)
            except Exception as error:  # an admissible program at admissible sizes raises nothing
                return Finding("error", f"the plugin raised {type(error).__name__}: at {call.sizes}: {error}")
            finding = self._compare(case, call, got, report)
            if finding is not None:
                return finding
            report.calls += 1
        return None


def _serve(connection: Any, plugin: bool) -> None:
    examiner = (PluginExaminer if plugin else Examiner)(lambda doing: connection.send(doing))
    try:
        while True:
            job = connection.recv()
            case = job if isinstance(job, Case) else case_of(program_of(*job), job[0])
            connection.send(examiner.examine(case))
    except (EOFError, ConnectionError):
        examiner.close()


class Worker(Process[Job, Report]):
    """A process that examines cases, or the programs of seeds and their favoured ops."""

    has_children = True  # the reference interpreter's

    def __init__(self, plugin: bool = False) -> None:
        super().__init__(_serve, plugin, limit=TIME_LIMIT)

    def lost(self, kind: str, text: str) -> Report:
        """A report with a signal, or a hang."""
        return Report(Finding("hang" if kind == "timeout" else kind, text))
