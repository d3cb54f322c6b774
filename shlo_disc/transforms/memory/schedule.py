# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules of a program that need less memory: values are computed again, or later, instead of kept.

One step after the other is chosen at the peak, as XLA's rematerialisation and BladeDISC++ do: of the calls whose
results are needed after the peak and not at it, the one that frees most bytes for its time runs again before its
results are read. Where nothing reads them before, it runs there only. What a call reads is kept for that, or computed
again itself in a later step.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from shlo_disc.shape_dialect.mlir import ir

MOST_COPIES = 4
"""The times that a call runs at most."""

PATIENCE = 24
"""Steps that may follow one another without a lower peak."""


class Version(NamedTuple):
    """A value as the run number `run` of its call makes it, 0 for the first."""

    value: ir.Value
    run: int = 0


@dataclass
class Step:
    """A run of an op: of a call, a loop or a branch; the last step is the terminator."""

    op: ir.Operation
    run: int
    reads: list[Version]

    @property
    def makes(self) -> list[Version]:
        """The versions of its results."""
        return [Version(result, self.run) for result in self.op.results]


@dataclass(frozen=True)
class Costs:
    """Bytes of values in the arena, and the seconds of the calls that may run again. Other values have no bytes."""

    bytes: Mapping[ir.Value, int]
    returned: frozenset[ir.Value]
    seconds: Mapping[ir.Operation, float]

    def bytes_of(self, version: Version) -> int:
        """The bytes in the arena; the first version of a result of the program lies elsewhere."""
        return 0 if version.run == 0 and version.value in self.returned else self.bytes.get(version.value, 0)


class _Eviction(NamedTuple):
    """A run of the call of the step `made`, before the step `again`, for some of its results."""

    gain: int
    seconds: float
    made: int
    again: int
    versions: tuple[Version, ...]

    @property
    def order(self) -> tuple[float, int]:
        """The bytes freed for the time that it takes."""
        return self.gain / (self.seconds + 1e-7), self.gain


@dataclass
class Schedule:
    """The steps of a program, in order."""

    steps: list[Step]
    costs: Costs
    _made: dict[Version, int] = field(init=False, default_factory=dict)
    _read: dict[Version, list[int]] = field(init=False, default_factory=dict)

    def copy(self) -> Schedule:
        """A schedule of its own."""
        return Schedule([Step(s.op, s.run, list(s.reads)) for s in self.steps], self.costs)

    def peak(self) -> tuple[int, int]:
        """The largest number of bytes that are needed at a time, and the first step that needs them."""
        self._find_lives()
        changes = [0] * (len(self.steps) + 2)
        for version, start in self._made.items():
            size = self.costs.bytes_of(version)
            changes[start] += size
            changes[self._end(version) + 1] -= size
        most, place, now = 0, 0, 0
        for position, change in enumerate(changes):
            now += change
            if now > most:
                most, place = now, position
        return most, place

    def shrink(self, bytes_: int) -> None:
        """Lower the peak to `bytes_`, or as far as it goes."""
        best, least, tries = self.copy().steps, self.peak()[0], 0
        while least > bytes_ and tries < PATIENCE:
            found = max(self._evictions(self.peak()[1]), key=lambda e: e.order, default=None)
            if found is None:
                break
            self._apply(found)
            most, tries = self.peak()[0], tries + 1
            if most < least:
                best, least, tries = self.copy().steps, most, 0
        self.steps = best

    def _find_lives(self) -> None:
        self._made, self._read = {}, {}
        for position, step in enumerate(self.steps):
            for version in step.reads:
                self._read.setdefault(version, []).append(position)
            self._made.update(dict.fromkeys(step.makes, position))

    def _end(self, version: Version) -> int:
        return self._read[version][-1] if version in self._read else self._made[version]

    def _evictions(self, peak: int) -> Iterator[_Eviction]:
        """The calls that could run after the peak instead of having their results kept over it."""
        for made, step in enumerate(self.steps[:peak]):
            if step.op not in self.costs.seconds or step.run + 1 >= MOST_COPIES:
                continue
            over = [version for version in step.makes if self._is_kept_over(version, peak)]
            if not over:
                continue
            again = min(self._next_read(version, peak) for version in over)
            gain = sum(map(self.costs.bytes_of, over)) - sum(
                self.costs.bytes_of(source)
                for source in dict.fromkeys(self._present(step, again))
                if source in self._made and self._end(source) < peak
            )
            if gain > 0:
                only_there = all(self._next_read(v, made) >= again for v in step.makes if v in self._read)
                yield _Eviction(gain, 0 if only_there else self.costs.seconds[step.op], made, again, tuple(over))

    def _is_kept_over(self, version: Version, peak: int) -> bool:
        reads = self._read.get(version, [])
        following = bisect_left(reads, peak)
        return self.costs.bytes_of(version) > 0 and following < len(reads) and reads[following] > peak

    def _next_read(self, version: Version, position: int) -> int:
        reads = self._read[version]
        following = bisect_right(reads, position)
        return reads[following] if following < len(reads) else len(self.steps)

    def _present(self, step: Step, position: int) -> list[Version]:
        """The versions of what a step reads that are needed last of those made before `position`."""
        found = []
        for source in step.reads:
            versions = [Version(source.value, run) for run in range(MOST_COPIES)]
            made = [v for v in versions if self._made.get(v, len(self.steps)) < position]
            found.append(max(made, key=self._end) if made else source)
        return found

    def _apply(self, eviction: _Eviction) -> None:
        old = self.steps[eviction.made]
        run = 1 + max(step.run for step in self.steps if step.op == old.op)
        new = Step(old.op, run, self._present(old, eviction.again))
        for step in self.steps[eviction.again :]:
            step.reads = [v._replace(run=run) if v in eviction.versions else v for v in step.reads]
        self.steps.insert(eviction.again, new)
        if not any(version in step.reads for version in old.makes for step in self.steps):
            self.steps.remove(old)


__all__ = ["Costs", "Schedule", "Step", "Version"]
