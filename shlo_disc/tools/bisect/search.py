# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the decision and the stage with which a program's results become wrong.

The compiler is compared with itself: the program without any fusion and with a buffer for each value, against the
program as it is compiled. Where they differ, the number of decisions is halved until the first one is found with which
the results change. The reference interpreter evaluates what each stage has left, which tells the stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from shlo_disc.driver.recovery import PLAIN, Attempts, Choice, Fault, find_fault
from shlo_disc.errors import DiscError, OptionError
from shlo_disc.options import Options
from shlo_disc.report.synthetic import check_dims, load_flat, synthetic_arguments
from shlo_disc.runtime import Client
from shlo_disc.shape_dialect.dtypes import BY_NAME
from shlo_disc.tools.bisect.interpreter import NotEvaluated, evaluate
from shlo_disc.tools.bisect.static_module import NotStatic, static_text

if TYPE_CHECKING:
    from shlo_disc.driver.compiler import Compilation

STAGES = ("annotate", "simplify", "fuse")
"""Stages whose modules the interpreter evaluates."""

Say = Callable[[str], None]


@dataclass
class Finding:
    """The problem at `dims`: the first difference, the decision at fault, and what each stage's module evaluates to.

    fault: None where the results are wrong without any decision, too, by the interpreter.
    """

    dims: Mapping[str, int]
    problem: str
    fault: Fault | None = None
    stages: dict[str, str] = field(default_factory=dict)

    @property
    def stage(self) -> str:
        """The first stage whose module evaluates to something else, or else the one that follows the last that does
        not: the memory plan for reused buffers, the lowering for everything else."""
        wrong = next((name for name, verdict in self.stages.items() if verdict.startswith("differs")), None)
        if wrong is not None:
            return wrong
        return "plan" if self.fault is not None and self.fault.kind == "reuse" else "kernels"

    def to_json(self) -> dict[str, Any]:
        """Everything as numbers, texts, lists and dicts."""
        fault = None if self.fault is None else self.fault._asdict()
        found = {"dims": dict(self.dims), "problem": self.problem, "stages": self.stages}
        return {**found, "stage_at_fault": self.stage, "decision_at_fault": fault}

    def __str__(self) -> str:
        sizes = ", ".join(f"{name}={value}" for name, value in self.dims.items())
        lines = [f"at {sizes or 'the only sizes'}: {self.problem}"]
        lines += [f"  {name:<10}{verdict}" for name, verdict in self.stages.items()]
        fault = "no decision: the results are wrong without any" if self.fault is None else str(self.fault)
        return "\n".join([*lines, f"stage at fault: {self.stage}", f"decision at fault: {fault}"])


def bisect(
    program: Any, dims: Sequence[Mapping[str, int]], options: Options, *, seed: int = 0, say: Say = lambda _: None
) -> Finding | None:
    """The first difference at one of `dims` between the program compiled plainly and as `options` say.

    None where they agree everywhere, and with the interpreter as far as that evaluates the program. Raises OptionError
    where a size is missing, and CompilerError where the program does not compile even plainly.
    """
    search = _Search(program, options)
    for sizes in dims:
        say(f"comparing at {', '.join(f'{k}={v}' for k, v in sizes.items()) or 'the only sizes'}")
        found = search.at(sizes, seed, say)
        if found is not None:
            return found
    return None


def likely_dims(program: Any, options: Options) -> list[dict[str, int]]:
    """Sizes to compare at, for all symbols alike: 1, 2, 3, around a vector, a prime."""
    names = [s.name for s in _Search(program, options).compiled(PLAIN).signature.symbols]
    return [dict.fromkeys(names, size) for size in ((1, 2, 3, 15, 16, 17, 37, 64) if names else (1,))]


class _Search:
    def __init__(self, program: Any, options: Options):
        from shlo_disc.driver.compiler import import_stage, run_pipeline

        self.attempts = Attempts(lambda: import_stage(program, "cpu", options), run_pipeline)
        self.client = Client(threads=options.threads, guard_pages=True)
        self._compiled: dict[Choice, Compilation] = {}

    def compiled(self, choice: Choice) -> Compilation:
        """The program with these decisions. Raises the internal error that it ends with."""
        if choice not in self._compiled:
            outcome = self.attempts.compile(choice)
            if outcome.error is not None or outcome.compilation is None:
                raise outcome.error or OptionError("the program has no compilation")
            self._compiled[choice] = outcome.compilation
        return self._compiled[choice]

    def at(self, dims: Mapping[str, int], seed: int, say: Say) -> Finding | None:
        header = self._artifact(PLAIN).header
        check_dims(dims, header)
        arrays = synthetic_arguments(header, dims, seed)
        try:
            plain = self._run(PLAIN, arrays)
        except DiscError as error:
            say(f"  not a call of this program: {error}")
            return None
        stages = self._evaluate(dims, arrays, plain)
        expected = stages.pop("expected", None)
        reference = plain if expected is None else expected
        wrong_plainly = difference(plain, reference)
        if wrong_plainly:
            return Finding(dims, wrong_plainly, None, self._verdicts(stages, reference))
        problem = self._problem(Choice(), arrays, reference)
        if not problem:
            return None
        say("  they differ; looking for the decision")
        fault = find_fault(lambda choice: bool(self._problem(choice, arrays, reference)), self.attempts)
        return Finding(dims, problem, fault, self._verdicts(stages, reference))

    def _problem(self, choice: Choice, arrays: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> str:
        outcome = self.attempts.compile(choice)
        if outcome.error is not None:
            return f"{type(outcome.error).__name__}: {outcome.error}"
        return difference(self._run(choice, arrays), expected)

    def _artifact(self, choice: Choice) -> Any:
        from shlo_disc.driver.artifact_header import artifact_of

        return artifact_of(self.compiled(choice))

    def _run(self, choice: Choice, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        results = load_flat(self.client, self._artifact(choice))(*arrays)
        return [np.asarray(r) for r in results]

    def _evaluate(
        self, dims: Mapping[str, int], arrays: Sequence[np.ndarray], like: Sequence[np.ndarray]
    ) -> dict[str, Any]:
        """The results of each stage's module, or why there are none; "expected" are those of the first."""
        outcome = self.attempts.compile(Choice())
        snapshots = {} if outcome.compilation is None else outcome.compilation.snapshots
        found: dict[str, Any] = {}
        for name in STAGES:
            if name not in snapshots:
                continue
            try:
                results = evaluate(static_text(snapshots[name], dims), arrays)
                found[name] = [r.reshape(k.shape).astype(k.dtype) for r, k in zip(results, like, strict=True)]
            except (NotStatic, NotEvaluated) as error:
                found[name] = f"not evaluated: {error}"
        if isinstance(found.get(STAGES[0]), list):
            found["expected"] = found[STAGES[0]]
        return found

    @staticmethod
    def _verdicts(stages: Mapping[str, Any], expected: Sequence[np.ndarray]) -> dict[str, str]:
        def verdict(results: Any) -> str:
            if isinstance(results, str):
                return results
            problem = difference(results, expected)
            return f"differs: {problem}" if problem else "agrees"

        return {name: verdict(results) for name, results in stages.items()}


def difference(results: Iterable[np.ndarray], expected: Iterable[np.ndarray]) -> str:
    """The first result that is not what is expected, with the place and both values; empty where there is none."""
    for number, (ours, theirs) in enumerate(zip(results, expected, strict=True)):
        if ours.shape != theirs.shape:
            return f"result {number} has the shape {ours.shape}, not {theirs.shape}"
        wrong = _wrong(ours, theirs)
        if wrong.any():
            where = tuple(int(i) for i in np.argwhere(wrong)[0])
            count = f"{int(wrong.sum())} of {wrong.size} elements"
            return f"result {number}, {count}, at {list(where)} {ours[where]!s}, not {theirs[where]!s}"
    return ""


def _wrong(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Floats may differ by 512 roundings of the largest element, or of 1."""
    kind = BY_NAME.get(_short_name(theirs.dtype))
    if theirs.dtype.kind in "biu" or kind is None:
        return np.asarray(ours != theirs)
    wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
    a, b = ours.astype(wide), theirs.astype(wide)
    finite = np.abs(b[np.isfinite(b)])
    bound = 512 * _rounding(theirs.dtype) * max(1.0, float(finite.max(initial=0.0)))
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= bound
    return ~(near | (a == b) | (np.isnan(a) & np.isnan(b)))


def _short_name(dtype: np.dtype) -> str:
    names = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16"}
    return names.get(dtype.name, "c64" if dtype.kind == "c" else "")


def _rounding(dtype: np.dtype) -> float:
    import ml_dtypes

    real = np.dtype(dtype.type(0).real.dtype) if dtype.kind == "c" else dtype
    return float(ml_dtypes.finfo(real).eps)


__all__ = ["Finding", "bisect", "difference", "likely_dims"]
