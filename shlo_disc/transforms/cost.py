# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Costs that decisions are made by, and the two ways that a decision chooses between.

A cost counts what kernels do: how many start, the bytes that they read and write, and the instructions that they
execute. All are compared as bytes that are read in the same time.
"""

from __future__ import annotations

from typing import NamedTuple

BYTES_PER_INSTRUCTION = 8
"""Bytes of a cache or of memory that are read in the time of an instruction for a vector."""

BYTES_PER_START = 2048
"""Bytes that are read in the time that a kernel takes to begin and end."""


class Cost(NamedTuple):
    """The cost of some kernels: starts, bytes read and written, and instructions for vectors, at likely sizes."""

    kernels: int = 0
    read: int = 0
    written: int = 0
    instructions: int = 0

    @property
    def total(self) -> int:
        """All of it, in bytes that are read in the time."""
        moved = self.read + self.written
        return self.kernels * BYTES_PER_START + moved + self.instructions * BYTES_PER_INSTRUCTION

    def plus(self, other: Cost) -> Cost:
        """The cost of both."""
        return Cost(*(a + b for a, b in zip(self, other, strict=True)))


class Choice(NamedTuple):
    """Two ways to compute the same: what is done without a decision, and with it."""

    without: Cost
    chosen: Cost

    @property
    def gain(self) -> int:
        """The saving of the decision, in bytes that are read in the time; below 0 where it costs."""
        return self.without.total - self.chosen.total

    def __str__(self) -> str:
        names = ("kernels", "bytes read", "bytes written", "instructions")
        changes = [new - old for old, new in zip(self.without, self.chosen, strict=True)]
        terms = [f"{change:+} {name}" for change, name in zip(changes, names, strict=True) if change]
        return f"saves {self.gain} ({', '.join(terms) or 'no change'})"
