# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules by measuring: the form of each kernel that is the fastest over the shapes that matter.

As in DietCode (Zheng et al., 2022) the forms do not depend on the shape, and a kernel has one for all shapes: the one
with the least time, weighted by how often calls have each shape, that is slower than the default at none.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from shlo_disc.driver.cache import TunedMachine, TuningRecord, TuningRecords
from shlo_disc.errors import OptionError
from shlo_disc.options import Options, Schedule
from shlo_disc.report.synthetic import check_dims
from shlo_disc.tools.tune.measure import Job, LocalMeasurer, Measurer, Pair
from shlo_disc.tools.tune.programs import PlannedProgram
from shlo_disc.tools.tune.search import NOISE, Search, schedule_of
from shlo_disc.tools.tune.shapes import Stated, WeightedShape, distribution, load_shapes, parse_shape

BUDGET = 60.0
"""Seconds of a search, unless stated otherwise."""

_JOBS = 100
"""Measurements within the budget, at least; what a program takes to compile and to load comes on top."""

_CHECKS = 7
"""Loads of the default and of the result that are compared at the end."""

_FOR_CHECKS = 0.25
"""The part of the budget that is kept for these."""

_WHOLE_NOISE = 0.01
"""The part of the time of whole calls at a shape by which the result may seem slower than the default."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Tuning:
    """The findings: the schedule, and the time of whole calls with it over that with the default, for each shape.

    `gains`: for each kernel that is not left as it is, its weighted time over the default's. `measured`: the number of
    forms that were measured.
    """

    schedule: Schedule
    gains: dict[str, float]
    ratios: tuple[tuple[WeightedShape, float], ...]
    measured: int = 0

    def to_json(self) -> dict[str, Any]:
        """Everything as numbers, texts, lists and dicts."""
        ratios = [{"dims": dict(shape.dims), "weight": shape.weight, "ratio": ratio} for shape, ratio in self.ratios]
        found = {"schedule": self.schedule.to_json(), "gains": self.gains, "ratios": ratios}
        return {**found, "measured": self.measured}

    def __str__(self) -> str:
        lines = [f"{name}: {self.schedule.of(name)}, {gain:.2f} of the time" for name, gain in self.gains.items()]
        lines += [f"{shape}: {ratio:.2f} of the time" for shape, ratio in self.ratios]
        return "\n".join(lines or ["nothing is faster than the default"])


def tune(
    program: Any,
    shapes: Iterable[Stated],
    *,
    options: Options | None = None,
    budget: float = BUDGET,
    measurer: Measurer | None = None,
    keep: bool = True,
    say: Say = lambda text: None,
    **compile_arguments: Any,
) -> Tuning:
    """Find a schedule for a program, as `compile` takes it, over shapes such as {"b": 1, "s": 7}.

    A pair of a shape and a number weighs the shape: how often calls have it. Give `Executable.seen_shapes()` for the
    shapes that a program has met. The search takes some `budget` seconds, or ends before where no form is left to try;
    `say` is told what is going on. It starts from what was recorded on this machine, and with `keep` its findings are
    recorded there for `Options(tuned=True)`. measurer: runs the measurements; in this process by default. The result
    goes into `Options(schedule=...)` or a file. Raises OptionError without shapes, and what `compile` and a call raise.
    """
    stated = distribution(shapes)
    if not 0 < budget < float("inf"):
        raise OptionError(f"the budget is a number of seconds above 0, not {budget!r}")
    base = replace(options or Options(), schedule=Schedule(), tuned=False)
    machine, records = TunedMachine.here(base), TuningRecords.here(base) if keep else None
    say("compiling")
    planned = PlannedProgram(program, base, **compile_arguments)
    for shape in stated:
        check_dims(shape.dims, planned.header)
    known = {} if records is None else records.load(machine)
    run = _Run(planned, stated, machine, measurer or LocalMeasurer(), budget, say)
    found = run.tuning(known)
    if records is not None and run.found:
        records.store(machine, run.found)
    return found


class _Run:
    """One search, from its first measurement to the check of its result. `found`: what to record, by content."""

    def __init__(
        self,
        planned: PlannedProgram,
        shapes: list[WeightedShape],
        machine: TunedMachine,
        measurer: Measurer,
        budget: float,
        say: Say,
    ):
        self.planned, self.shapes, self.machine, self.measurer = planned, shapes, machine, measurer
        self.budget, self.say = budget, say
        self.start = time.perf_counter()
        self.default = planned.artifact(Schedule()).serialize()
        self.found: dict[str, TuningRecord] = {}

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.start

    def tuning(self, known: Mapping[str, TuningRecord]) -> Tuning:
        """Search, and check what was found."""
        self.say(f"measuring at {'; '.join(map(str, self.shapes))}")
        (_, first), *_ = self._measure([Schedule()])
        search = Search(self.planned.kernels, self.shapes, first, known)
        while self.elapsed < (1 - _FOR_CHECKS) * self.budget:
            schedules = search.next_schedules(self.measurer.width)
            if not schedules:
                break
            for schedule, pair in self._measure(schedules):
                search.add(schedule, pair)
            forms, faster = search.measured_count(), len(search.best())
            self.say(f"{self.elapsed:.0f} of {self.budget:g} s: {forms} forms measured, {faster} kernels are faster")
        return self._checked(search)

    def _measure(self, schedules: list[Schedule]) -> list[tuple[Schedule, Pair]]:
        """The times of the default beside each schedule, of those that a machine of the kind has run.

        Raises OptionError where none has.
        """
        artifacts = {schedule.key(): self.planned.artifact(schedule).serialize() for schedule in schedules}
        seconds = self.budget / _JOBS
        jobs = [Job(self.default, artifacts[s.key()], self.shapes, self.machine, seconds) for s in schedules]
        measured = zip(schedules, self.measurer.measure(jobs), strict=True)
        found = [(schedule, pair) for schedule, pair in measured if pair is not None]
        if not found:
            raise OptionError(f"no machine that was asked to measure has the processor {self.machine.processor!r}")
        return found

    def _checked(self, search: Search) -> Tuning:
        """The best forms, without those that turn out to be slower at a shape, compared with the default as a whole."""
        chosen = search.best()
        ratios: list[float] = []
        while chosen:
            self.say(f"checking {len(chosen)} kernels")
            pairs = [pair for _, pair in self._measure([schedule_of(chosen)] * _CHECKS)]
            slow = _slower(search, chosen, pairs)
            ratios = [_whole(pairs, place) for place in range(len(self.shapes))]
            if not slow and max(ratios) > 1 + _WHOLE_NOISE:
                slow = [max(chosen, key=search.ratio)]
            if not slow:
                break
            chosen = {} if self.elapsed > 2 * self.budget else {n: form for n, form in chosen.items() if n not in slow}
        if chosen and sum(s.weight * math.log(ratio) for s, ratio in zip(self.shapes, ratios, strict=True)) >= 0:
            chosen = {}
        self.found = search.finish(chosen)
        if not chosen:
            return Tuning(Schedule(), {}, (), search.measured_count())
        gains = {name: search.ratio(names) for names in chosen for name in names}
        return Tuning(schedule_of(chosen), gains, tuple(zip(self.shapes, ratios, strict=True)), search.measured_count())


def _slower(search: Search, chosen: Mapping[tuple[str, ...], Any], pairs: list[Pair]) -> list[tuple[str, ...]]:
    """The kernels that are slower than by default at a shape, or not faster over all."""
    found = []
    for own in search.searches:
        if own.kernel.names in chosen:
            seen = [search.compared(own.kernel, pair) for pair in pairs]
            by_shape = map(statistics.median, zip(*(each.by_shape for each in seen), strict=True))
            if statistics.median(each.ratio for each in seen) >= 1 or max(by_shape) >= 1 + NOISE:
                found.append(own.kernel.names)
    return found


def _whole(pairs: list[Pair], place: int) -> float:
    """The time of a whole call over that by default at a shape: the median over turns, and over loads."""
    turns = [[b / a for a, b in zip(old.calls[place], new.calls[place], strict=True)] for old, new in pairs]
    return statistics.median(map(statistics.median, turns))


__all__ = ["BUDGET", "Tuning", "WeightedShape", "load_shapes", "parse_shape", "tune"]
