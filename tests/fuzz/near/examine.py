# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One case: compile it, call it, compare; and when something is wrong, find out whose fault it is."""

from __future__ import annotations

import contextlib
import random
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax import export
from jax._src.export.shape_poly import UnexpectedDimVar

import shlo_disc
from shlo_disc.driver.compiler import import_stage, run_pipeline
from shlo_disc.transforms import decisions
from tests.fuzz.near.arrays import arrays_for
from tests.fuzz.near.blame import blame
from tests.fuzz.near.case import Case, Sizes
from tests.fuzz.near.compare import Difference, difference, looseness
from tests.fuzz.near.fronts import FRONTS, CompileFront, Results, Say
from tests.fuzz.near.program import at_numbers
from tests.fuzz.near.reference import Number, Unpredictable, interpret

PLAIN: dict[str, Any] = {"max_fusions": 0, "reuse": False}


@dataclass(frozen=True)
class Finding:
    """kind: "mismatch", "nan", "type", "error", "refused", "signal", "timeout", "argument", "unsteady" or "oracle".

    "argument": a call has changed one. "unsteady": two calls alike give results that are not. "oracle": the reference
    and XLA disagree. `blame`: the decision or the line at fault, as far as it is known.
    """

    kind: str
    text: str
    blame: str = ""
    sizes: Sizes = field(default_factory=dict)

    def same_defect(self, other: Finding | None) -> bool:
        """Tells whether another case shows the same, as far as one can tell."""
        if other is None or other.kind != self.kind:
            return False
        return self.kind not in ("error", "refused") or self.text.split(":")[:2] == other.text.split(":")[:2]


@dataclass
class Report:
    """The outcome of a case."""

    finding: Finding | None = None
    calls: int = 0
    xla_calls: int = 0
    xla_errors: int = 0
    unpredictable: str = ""
    loose: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    decisions: dict[str, int] = field(default_factory=dict)
    outcomes: dict[tuple[str, bool], int] = field(default_factory=dict)
    served: dict[str, int] = field(default_factory=dict)
    pieces: list[str] = field(default_factory=list)


class Examiner:
    """Examines cases in this process. `say` is told what is done next.

    One of `xla_every` programs is given to XLA, one of `plain_every` is compiled without any decision as well.
    """

    def __init__(self, say: Say = lambda doing: None, xla_every: int = 25, plain_every: int = 25):
        self.say = say
        self._xla_every = xla_every
        self._plain_every = plain_every

    def decide(self, case: Case) -> Report:
        """Compile a case as far as there are decisions: only `outcomes` is of interest."""
        before = decisions.OUTCOMES.copy()
        with jax.enable_x64(case.program.x64):
            _Examination(case, self.say, quick=True, xla=False, plain=False).decide()
        return Report(outcomes=_outcomes_since(before))

    def examine(self, case: Case, quick: bool = False) -> Report:
        """Compile and run a case, and compare all its calls; when `quick`, ask nobody whose fault it is."""
        before = decisions.OUTCOMES.copy()
        rng = random.Random(case.seed)
        xla, plain = (rng.random() * every < 1 for every in (self._xla_every, self._plain_every))
        examination = _Examination(case, self.say, quick, xla, plain and case.front == "compile")
        with jax.enable_x64(case.program.x64):
            report = examination.run()
        report.outcomes = _outcomes_since(before)
        return report


def _outcomes_since(before: Mapping[tuple[str, bool], int]) -> dict[tuple[str, bool], int]:
    return {k: n - before.get(k, 0) for k, n in decisions.OUTCOMES.items() if n != before.get(k, 0)}


class _Found(Exception):
    """Ends the examination of a case."""

    def __init__(self, finding: Finding):
        self.finding = finding


class _Examination:
    """The examination of one case."""

    def __init__(self, case: Case, say: Say, quick: bool, xla: bool, plain: bool):
        self.case = case
        self.say = say
        self.quick = quick
        self.xla = xla
        self.plain = plain
        self._is_narrow = case.program.dtype in ("bfloat16", "float16")  # XLA rounds between the terms of some sums
        self.report = Report(pieces=sorted({s.op for s in case.program.steps}))

    def run(self) -> Report:
        """The report."""
        try:
            if self._trace():
                self._compile()
                for number, sizes in enumerate(self.case.sizes):
                    self._call(number, sizes)
        except _Found as found:
            self.report.finding = found.finding
        return self.report

    def decide(self) -> None:
        """Compile up to the last stage that decides; what fails has nothing more to say."""
        if self._trace():
            with contextlib.suppress(shlo_disc.DiscError):
                options = self.front.options()
                run_pipeline(import_stage(self.front.exported, "cpu", options), last="kernels")

    def _trace(self) -> bool:
        self.say("trace")
        function = jax.jit(self.case.program.run)
        specs = self.case.program.types_of_arguments()
        try:
            self.jaxpr = function.trace(*specs).jaxpr
            exported = export.export(function)(*specs) if self.case.front != "plugin" else None
        except Exception as error:  # JAX's own limits, which the making of a program did not meet
            self.report.unpredictable = f"JAX: {type(error).__name__}"
            return False
        self.dtypes = [v.aval.dtype.name for v in self.jaxpr.jaxpr.outvars]
        self.front = FRONTS[self.case.front](self.case, exported, self.say)
        return True

    def _compile(self) -> None:
        try:
            self.front.compile()
        except shlo_disc.UnsupportedError as error:
            raise _Found(Finding("refused", _first_lines(error))) from None
        except Exception as error:  # any other is a defect
            raise _Found(Finding("error", _described(error), self._blame())) from None
        self.report.decisions = self.front.decisions()

    # ---- calls ------------------------------------------------------------------------------------------------------

    def _call(self, number: int, sizes: Sizes) -> None:
        try:
            arrays = arrays_for(self.case.program, sizes, [self.case.seed, number])
        except UnexpectedDimVar:  # a limit of indices is of a size that a smaller program has no argument of
            self.report.unpredictable = "a size of no argument"
            return
        self.say("reference")
        try:
            want = interpret(self._jaxpr_at(arrays, sizes), arrays, sizes)
        except Unpredictable as error:
            self.report.unpredictable = str(error)
            return
        except Exception as error:  # a defect of the reference, unless JAX has no such program at these sizes
            if not self._is_program(arrays, sizes):
                self.report.unpredictable = f"JAX at some sizes: {type(error).__name__}"
                return
            raise _Found(Finding("oracle", f"at {sizes}: the reference: {type(error).__name__}: {error}")) from None
        got = self._results(arrays, sizes, last=number == len(self.case.sizes) - 1)
        if got is None:
            return
        self.report.loose = max(self.report.loose, looseness(want, self.dtypes))
        found = difference(got, want, self.dtypes)
        if found is not None and self.quick:
            raise _Found(Finding(found.kind, f"at {sizes}: {found.text}", sizes=sizes))
        if found is not None or (self.xla and number == 0 and not self._is_narrow):
            self._ask_xla(arrays, sizes, want, found)
        if found is not None:
            blamed = self._blame(lambda other: difference(other, want, self.dtypes) is not None, arrays)
            raise _Found(Finding(found.kind, f"at {sizes}: {found.text}", blamed, sizes))
        if self.plain and number == 0:
            self._ask_plain(arrays, sizes, want)

    def _jaxpr_at(self, arrays: Results, sizes: Sizes) -> Any:
        """The program's, but where a symbol is 0: JAX takes symbols for 1 and more."""
        if 0 not in sizes.values():
            return self.jaxpr
        with at_numbers(sizes):
            return jax.jit(lambda *given: self.case.program.run(*given)).trace(*arrays).jaxpr

    def _is_program(self, arrays: Results, sizes: Sizes) -> bool:
        try:
            with at_numbers(sizes):
                jax.eval_shape(lambda *given: self.case.program.run(*given), *arrays)
        except Exception:  # JAX refuses in many ways what does not fit
            return False
        return True

    def _results(self, arrays: Results, sizes: Sizes, last: bool) -> Results | None:
        """The results of a call; None where JAX itself does not take these sizes."""
        self.say(f"run at {sizes}")
        kept = [a.copy() for a in arrays]
        try:
            got = again = self.front.run(arrays)
            if last:  # the first call of a product may add in another order (docs/runtime.md)
                got, again = self.front.run(arrays), self.front.run(arrays)
        except Exception as error:  # an admissible call raises nothing
            if self.case.front == "plugin" and _is_jax_limit(error):
                return None
            raise _Found(Finding("error", f"at {sizes}: {_described(error)}", sizes=sizes)) from None
        finally:
            self.report.served = self.front.served()
        self.report.calls += 1
        if not _alike(kept, arrays):
            raise _Found(Finding("argument", f"at {sizes}: an argument is written over", sizes=sizes))
        if not _alike(got, again):
            raise _Found(Finding("unsteady", f"at {sizes}: a second call gives something else", sizes=sizes))
        return got

    # ---- other opinions ---------------------------------------------------------------------------------------------

    def _ask_xla(self, arrays: Results, sizes: Sizes, want: Sequence[Number], ours: Difference | None) -> None:
        self.say("xla")
        self.report.xla_calls += 1
        other = self._xla_results(arrays, sizes)
        differs = None if other is None else difference(other, want, self.dtypes)
        if differs is None:
            return
        # XLA's CPU compiler has defects of its own, such as a loop whose step skips its bound: op by op it has not.
        with jax.disable_jit():
            by_op = self._xla_results(arrays, sizes)
        if by_op is not None and difference(by_op, want, self.dtypes) is None:
            self.report.xla_errors += 1
            return
        agreeing = "" if ours is None else f"; ours: {ours.text}"
        raise _Found(Finding("oracle", f"at {sizes}: XLA: {differs.text}{agreeing}", sizes=sizes))

    def _xla_results(self, arrays: Results, sizes: Sizes) -> Results | None:
        """XLA's results; None where it has none, as XLA and JAX have limits."""
        device = jax.devices("cpu")[0]
        try:
            with jax.default_device(device), at_numbers(sizes):
                placed = [jax.device_put(a, device) for a in arrays]
                return [np.asarray(a) for a in jax.jit(lambda *x: self.case.program.run(*x))(*placed)]
        except Exception:  # of many kinds
            return None

    def _ask_plain(self, arrays: Results, sizes: Sizes, want: Sequence[Number]) -> None:
        front = CompileFront(self.case, self.front.exported, self.say)
        front.compile(**PLAIN)
        found = difference(front.run(arrays), want, self.dtypes)
        if found is not None:
            raise _Found(Finding(found.kind, f"at {sizes}: {found.text}", "the plain pipeline", sizes))

    def _blame(self, is_wrong: Callable[[Results], bool] | None = None, arrays: Sequence[np.ndarray] = ()) -> str:
        if self.quick or self.front.exported is None:
            return ""
        return blame(self.front.exported, self.front.options(), self.say, is_wrong, arrays)


def _alike(some: Results, others: Results) -> bool:
    """Tells whether arrays are the same to the bit."""
    return all(a.tobytes() == b.tobytes() for a, b in zip(some, others, strict=True))


def _first_lines(error: BaseException) -> str:
    return " ".join(str(error).split())[:600]


def _described(error: BaseException) -> str:
    """The error with the innermost line of ours that it came through."""
    frames = traceback.extract_tb(error.__traceback__)
    cause = error.__cause__ or error.__context__
    if cause is not None and cause.__traceback__ is not None:
        frames += traceback.extract_tb(cause.__traceback__)
    ours = [f for f in frames if "/shlo_disc/" in f.filename]
    place = f"{ours[-1].filename.rsplit('/shlo_disc/', 1)[-1]} {ours[-1].name}" if ours else ""
    return f"{type(error).__name__}: {place}: {_first_lines(error)}"


def _is_jax_limit(error: BaseException) -> bool:
    """Tells whether JAX itself refuses a function at these sizes, such as the maximum of nothing."""
    frames = traceback.extract_tb(error.__traceback__)
    is_of_tracing = not any("compile_and_load" in f.name for f in frames)
    return is_of_tracing and isinstance(error, ValueError | TypeError | IndexError | UnexpectedDimVar)
