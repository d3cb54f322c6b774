# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The values that buffer slices hold at one moment of a planned program, with a journal of what changes.

A write ends what lies in all slices that are not proved to be apart from its own. Which these are is known before any
is written, so each change touches few keys, and what a branch has changed is known without comparing whole states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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


Held = frozenset[ir.Value]
"""The values that lie in one slice, which are one and the same."""

_NOTHING: Held = frozenset()


class State:
    """The values in each slice, and the op that has ended a value elsewhere. Slices without bytes are nowhere.

    meeting: the slices that are not proved to be apart from one, itself among them.
    """

    def __init__(self, meeting: Callable[[BufferSlice], Iterable[BufferSlice]]) -> None:
        self.ended_by: dict[ir.Value, ir.Operation] = {}
        self._meeting = meeting
        self._held: dict[BufferSlice, Held] = {}
        self._journal: list[tuple[BufferSlice, Held]] = []

    def holds(self, place: BufferSlice, value: ir.Value) -> bool:
        """Tells whether a value lies in a slice; one without elements is anywhere."""
        return place.is_empty or value in self._held.get(place, _NOTHING)

    def write(self, place: BufferSlice, values: Iterable[ir.Value], op: ir.Operation) -> None:
        """Have a slice hold `values`, and end what else lies there."""
        if place.is_empty:
            return
        self.end(place, op)
        self._set(place, frozenset(values))

    def end(self, place: BufferSlice, op: ir.Operation) -> None:
        """End all that lies in a slice or in a part of it: `op` overwrites it."""
        for slice_ in self._meeting(place):
            held = self._held.get(slice_)
            if held:
                self.ended_by.update(dict.fromkeys(held, op))
                self._set(slice_, _NOTHING)

    def add(self, place: BufferSlice, value: ir.Value) -> None:
        """Have a slice hold one more value, the same as those that lie there."""
        if not place.is_empty:
            self._set(place, self._held.get(place, _NOTHING) | {value})

    def mark(self) -> int:
        """A moment that `undo` returns to."""
        return len(self._journal)

    def undo(self, mark: int) -> dict[BufferSlice, Held]:
        """Return to the moment of a mark. Returns what each slice held that has changed since."""
        changed: dict[BufferSlice, Held] = {}
        while len(self._journal) > mark:
            place, before = self._journal.pop()
            changed.setdefault(place, self._held[place])
            self._held[place] = before
        return changed

    def join(self, branches: Sequence[Mapping[BufferSlice, Held]]) -> None:
        """Keep what all branches hold: for each of them, what `undo` has returned."""
        for place in dict.fromkeys(place for changed in branches for place in changed):
            before = self._held.get(place, _NOTHING)
            first, *others = (changed.get(place, before) for changed in branches)
            self._set(place, first.intersection(*others))

    def _set(self, place: BufferSlice, held: Held) -> None:
        self._journal.append((place, self._held.get(place, _NOTHING)))
        self._held[place] = held


__all__ = ["BufferSlice", "Start", "State"]
