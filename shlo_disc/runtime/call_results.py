# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The values that calls of executables give: the kind of their results, their memory, the times of their commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import _native

OUTPUTS = {
    None: _native.Output.automatic,
    "numpy": _native.Output.numpy,
    "jax": _native.Output.jax,
    "buffer": _native.Output.buffer,
}


@dataclass(frozen=True)
class MemoryStats:
    """The bytes that one call needs at one shape: the arena for temporary values, the results, and both together.

    Constants and native code belong to the program, and are in memory once.
    """

    arena_bytes: int
    result_bytes: int
    constant_bytes: int
    argument_bytes: int = 0
    code_bytes: int = 0

    @property
    def peak_bytes(self) -> int:
        """The peak of bytes allocated during a call, without arguments and constants."""
        return self.arena_bytes + self.result_bytes


@dataclass(frozen=True)
class CommandTime:
    """The number of a command's runs in a call, the seconds of all of them together, and the variant that the runtime
    chose."""

    calls: int
    seconds: float
    way: str | None


@dataclass(frozen=True)
class RecordedSpan:
    """A command of the program, by its number, or a range of its work. `thread`: 0 is the caller's, the others follow
    in the order in which they joined. `start`: seconds after the first command began."""

    command: int
    thread: int
    start: float
    seconds: float


def recorded_spans(commands: Sequence[Any], ranges: Sequence[Any]) -> tuple[list[RecordedSpan], list[RecordedSpan]]:
    """Those of the native core's rows, each by its start: the commands, and ranges of those that were divided."""
    begin = min((row.start for row in commands), default=0)
    threads: dict[int, int] = {}

    def spans(rows: Sequence[Any]) -> list[RecordedSpan]:
        return [
            RecordedSpan(
                row.command,
                threads.setdefault(row.thread, len(threads)),
                (row.start - begin) * 1e-9,
                row.nanoseconds * 1e-9,
            )
            for row in sorted(rows, key=lambda row: row.start)
        ]

    return spans(commands), spans(ranges)


def command_times(rows: Sequence[Any]) -> list[CommandTime]:
    """Those of the native core's rows."""
    return [CommandTime(row.calls, row.nanoseconds * 1e-9, row.way) for row in rows]


def output_of(name: str | None) -> _native.Output:
    """The kind of results by its name. Raises ValueError for another name."""
    if name not in OUTPUTS:
        raise ValueError(f"output must be one of {[known for known in OUTPUTS if known]} or None, not {name!r}")
    return OUTPUTS[name]
