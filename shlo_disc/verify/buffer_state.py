# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The values that buffer slices hold at one moment of a planned program, with a journal of what changes.

A write replaces all that begins where it begins, and nothing else: the slices of an arena are proved to be apart before
any is written. So each change touches one key, and what a branch has changed is known without comparing whole states.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

Start = tuple[str, int, Expr]
"""The space of a slice, its number, and the offset."""


class BufferSlice(NamedTuple):
    """Bytes at `offset` of an arena, or a whole argument, result or constant, which `number` it has."""

    space: str
    number: int
    offset: Expr
    bytes: Expr

    @property
    def start(self) -> Start:
        """The beginning of the slice."""
        return self[:3]

    @property
    def is_empty(self) -> bool:
        """Tells whether it has no byte, at any size."""
        return self.bytes.constant == 0


Held = Mapping[Expr, frozenset[ir.Value]]
"""The values that lie at one start, by their bytes: those of the same bytes are one and the same."""

_NOTHING: Held = {}


class State:
    """The values in each slice, and the op that has ended a value elsewhere. Slices without bytes are nowhere."""

    def __init__(self) -> None:
        self.ended_by: dict[ir.Value, ir.Operation] = {}
        self._held: dict[Start, Held] = {}
        self._journal: list[tuple[Start, Held]] = []

    def holds(self, place: BufferSlice, value: ir.Value) -> bool:
        """Tells whether a value lies in a slice; one without elements is anywhere."""
        return place.is_empty or value in self._held.get(place.start, _NOTHING).get(place.bytes, ())

    def write(self, place: BufferSlice, values: Iterable[ir.Value], op: ir.Operation) -> None:
        """Have a slice hold `values`, and end what else begins there."""
        if place.is_empty:
            return
        self.end(place.start, op)
        self._set(place.start, {place.bytes: frozenset(values)})

    def end(self, start: Start, op: ir.Operation) -> None:
        """End all that begins at `start`: `op` overwrites it."""
        held = self._held.get(start)
        if held:
            for values in held.values():
                self.ended_by.update(dict.fromkeys(values, op))
            self._set(start, _NOTHING)

    def add(self, place: BufferSlice, value: ir.Value) -> None:
        """Have a slice hold one more value, the same as those that lie there."""
        if not place.is_empty:
            held = self._held.get(place.start, _NOTHING)
            self._set(place.start, {**held, place.bytes: held.get(place.bytes, frozenset()) | {value}})

    def mark(self) -> int:
        """A moment that `undo` returns to."""
        return len(self._journal)

    def undo(self, mark: int) -> dict[Start, Held]:
        """Return to the moment of a mark. Returns what each start held that has changed since."""
        changed: dict[Start, Held] = {}
        while len(self._journal) > mark:
            start, before = self._journal.pop()
            changed.setdefault(start, self._held[start])
            self._held[start] = before
        return changed

    def join(self, branches: Sequence[Mapping[Start, Held]]) -> None:
        """Keep what all branches hold: for each of them, what `undo` has returned."""
        for start in dict.fromkeys(start for changed in branches for start in changed):
            before = self._held.get(start, _NOTHING)
            first, *others = (changed.get(start, before) for changed in branches)
            for other in others:
                first = _both(first, other)
            self._set(start, first)

    def _set(self, start: Start, held: Held) -> None:
        self._journal.append((start, self._held.get(start, _NOTHING)))
        self._held[start] = held


def _both(one: Held, other: Held) -> Held:
    return {size: values & other[size] for size, values in one.items() if size in other}


__all__ = ["BufferSlice", "Start", "State"]
