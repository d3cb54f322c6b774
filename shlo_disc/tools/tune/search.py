# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The search for the form of each kernel, for all kernels at the same time.

A kernel's next form is one that differs from its best form in one field, as in a coordinate search, and among these the
one that the cost model predicts to be the fastest, as in Ansor (Zheng et al., 2020). Kernels do not influence each
other, so that one program has the next form of every kernel.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shlo_disc.driver.cache import TuningRecord
from shlo_disc.options import KernelSchedule, Schedule
from shlo_disc.tools.tune.cost_model import CostModel, Sample
from shlo_disc.tools.tune.measure import Pair
from shlo_disc.tools.tune.shapes import WeightedShape
from shlo_disc.tools.tune.space import DEFAULT, TunedKernel, distance, features_of, forms_of

LEAST_GAIN = 0.03
"""The part of its time that a form has to save over the default."""

NOISE = 0.03
"""The part of the time at a shape by which a form may seem slower than the default."""

CONFIRMATIONS = 3
"""Measurements of a form, each of programs loaded anew: their median counts."""

PATIENCE = 6
"""Forms of a kernel, one after the other, that are no better than its best one, after which its search ends."""

LEAST_SHARE = 0.01
"""The part of the weighted time that a kernel has to take to be searched."""


@dataclass(frozen=True)
class Measured:
    """One measurement of a form: its weighted time over the default's, and its time at each shape over that there."""

    ratio: float
    by_shape: tuple[float, ...]


@dataclass
class KernelSearch:
    """The search for one kernel. `seconds`: its weighted time by default, `known`: what was recorded of it before.

    measured: the measurements of each form.
    """

    kernel: TunedKernel
    seconds: float
    known: TuningRecord | None = None
    measured: dict[KernelSchedule, list[Measured]] = field(default_factory=dict)
    best: KernelSchedule = DEFAULT
    idle: int = 0

    def next_form(self, model: CostModel, pending: Sequence[KernelSchedule] = ()) -> KernelSchedule | None:
        """The form to measure next, while those pending are measured; None where there is none left."""
        again = self._unconfirmed(pending)
        if again is not None and self.ratio(again) < min(self.ratio(self.best), 1 - LEAST_GAIN):
            return again
        tried = {DEFAULT, *self.measured, *pending}
        left = [form for form in forms_of(self.kernel.kind) if form not in tried]
        if not left or self.idle >= PATIENCE:
            return again
        if self.known is not None and self.known.schedule in left:
            return self.known.schedule
        near = min(distance(form, self.best) for form in left)
        neighbours = [form for form in left if distance(form, self.best) == near]
        return min(neighbours, key=lambda form: model.predict(self._features(form)))

    def add(self, form: KernelSchedule, found: Measured) -> None:
        """Take a measurement into account."""
        self.idle += form not in self.measured
        self.measured.setdefault(form, []).append(found)
        if self._is_confirmed(form) and self.gains(form) and self.ratio(form) < self.ratio(self.best):
            self.best, self.idle = form, 0

    def ratio(self, form: KernelSchedule) -> float:
        """The weighted time of a form over the default's: the median of its measurements."""
        return 1.0 if form == DEFAULT else statistics.median(m.ratio for m in self.measured[form])

    def gains(self, form: KernelSchedule) -> bool:
        """Tells whether a form is better than the default, and no worse at any shape."""
        by_shape = zip(*(m.by_shape for m in self.measured[form]), strict=True)
        return self.ratio(form) < 1 - LEAST_GAIN and all(statistics.median(s) < 1 + NOISE for s in by_shape)

    def samples(self) -> list[tuple[KernelSchedule, float]]:
        """Each form that was measured, and its ratio."""
        return [(form, self.ratio(form)) for form in self.measured]

    def record(self) -> TuningRecord:
        """The part of the search to keep."""
        before = () if self.known is None else self.known.samples
        samples = dict(before) | dict(self.samples())
        return TuningRecord(self.kernel.kind, self.seconds, self.best, tuple(samples.items()))

    def _features(self, form: KernelSchedule) -> Mapping[str, float]:
        return features_of(self.kernel.kind, form, self.seconds)

    def _is_confirmed(self, form: KernelSchedule) -> bool:
        return len(self.measured[form]) >= CONFIRMATIONS

    def _unconfirmed(self, pending: Sequence[KernelSchedule]) -> KernelSchedule | None:
        """The form that seems to be the best of those that were measured too few times."""
        counts = {form: len(found) + pending.count(form) for form, found in self.measured.items()}
        return min((form for form, count in counts.items() if count < CONFIRMATIONS), key=self.ratio, default=None)


class Search:
    """The search for all kernels that matter. `records`: what was measured of kernels before, by their content."""

    def __init__(
        self,
        kernels: Sequence[TunedKernel],
        shapes: Sequence[WeightedShape],
        first: Pair,
        records: Mapping[str, TuningRecord],
    ):
        self.shapes = shapes
        totals = [sum(first[0].commands[n]) for n in range(len(shapes))]
        total = sum(shape.weight * seconds for shape, seconds in zip(shapes, totals, strict=True))
        self.searches: list[KernelSearch] = []
        for kernel in kernels:
            seconds = self._weighted(self._seconds(kernel, first[0].commands))
            if seconds >= LEAST_SHARE * total:
                self.searches.append(KernelSearch(kernel, seconds, records.get(kernel.content)))
        self._before = [
            Sample(features_of(record.kind, form, record.seconds), ratio)
            for record in records.values()
            for form, ratio in record.samples
        ]

    def next_schedules(self, count: int) -> list[Schedule]:
        """The next forms of every kernel whose search has not ended, for so many measurements at the same time."""
        model = CostModel([*self._before, *self._samples()])
        schedules: list[Schedule] = []
        for _ in range(count):
            found = {}
            for search in self.searches:
                form = search.next_form(model, [schedule.of(search.kernel.names[0]) for schedule in schedules])
                if form is not None:
                    found[search.kernel.names] = form
            if found:
                schedules.append(schedule_of(found))
        return schedules

    def add(self, schedule: Schedule, pair: Pair) -> None:
        """Take the times of the default and of a schedule into account."""
        for search in self.searches:
            form = schedule.of(search.kernel.names[0])
            if form != DEFAULT:
                search.add(form, self.compared(search.kernel, pair))

    def compared(self, kernel: TunedKernel, pair: Pair) -> Measured:
        """One measurement of a kernel. What does not run at a shape is as fast as the default there."""
        old, new = (self._seconds(kernel, times.commands) for times in pair)
        by_shape = tuple(b / a if a > 0 and b > 0 else 1.0 for a, b in zip(old, new, strict=True))
        weighted = self._weighted(old)
        return Measured(self._weighted(new) / weighted if weighted > 0 else 1.0, by_shape)

    def best(self) -> dict[tuple[str, ...], KernelSchedule]:
        """The best form of each kernel for which one is better than the default."""
        return {search.kernel.names: search.best for search in self.searches if search.best != DEFAULT}

    def ratio(self, names: tuple[str, ...]) -> float:
        """The weighted time of a kernel's best form over the default's."""
        return next(search.ratio(search.best) for search in self.searches if search.kernel.names == names)

    def finish(self, chosen: Mapping[tuple[str, ...], KernelSchedule]) -> dict[str, TuningRecord]:
        """Take the forms that were chosen at the end for the best ones; returns what to record, by content."""
        for search in self.searches:
            search.best = chosen.get(search.kernel.names, DEFAULT)
        return {search.kernel.content: search.record() for search in self.searches if search.measured}

    def measured_count(self) -> int:
        """The number of forms that were measured."""
        return sum(len(search.measured) for search in self.searches)

    def _samples(self) -> list[Sample]:
        return [
            Sample(features_of(search.kernel.kind, form, search.seconds), ratio)
            for search in self.searches
            for form, ratio in search.samples()
        ]

    def _seconds(self, kernel: TunedKernel, commands: Sequence[Sequence[float]]) -> list[float]:
        """The time of a kernel at each shape."""
        return [sum(row[number] for number in kernel.commands) for row in commands]

    def _weighted(self, seconds: Sequence[float]) -> float:
        return sum(shape.weight * own for shape, own in zip(self.shapes, seconds, strict=True))


def schedule_of(forms: Mapping[tuple[str, ...], KernelSchedule]) -> Schedule:
    """The schedule that gives kernels these forms."""
    return Schedule({name: form for names, form in forms.items() for name in names})


__all__ = ["DEFAULT", "KernelSearch", "LEAST_GAIN", "Measured", "NOISE", "Search", "schedule_of"]
