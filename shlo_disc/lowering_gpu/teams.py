# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Teams: the threads that work on a row together, a part of a warp, a warp or a whole block.

Short rows have small teams, several of them in a block, which need no barriers. Where the facts do not tell how long
rows are, the size is a number that the kernel finds when it starts; it is the same in all of its blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu.grid import THREADS, WARP, thread
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.shape_dialect.mlir import arith, ir
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.shape_dialect.symbolic.facts import Relation

PART = 8
"""Threads of the smallest teams."""

SHORT = 4 * PART
"""The longest row of the smallest teams."""

Step = tuple[int, int]
"""The size of a team, and how long a row is at least, for it to be as large."""


@dataclass(frozen=True)
class Team:
    """The team that a thread is in, for rows of `length` elements.

    steps: the sizes that teams may have, in ascending order. shift: the size as a power of two. lane, number: those of
    the thread in its team, and of the team in its block.
    """

    length: Expr
    steps: tuple[Step, ...]
    shift: ir.Value
    lane: ir.Value
    number: ir.Value

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes that teams may have."""
        return tuple(size for size, _ in self.steps)

    @property
    def is_block(self) -> bool:
        """Tells whether a team is known to be a block."""
        return self.sizes == (THREADS,)

    def is_larger_than(self, size: int) -> ir.Value:
        """Tells whether teams are, decided at run time."""
        return arith.cmpi(arith.CmpIPredicate.ugt, self.shift, index_constant(log2(size)))

    def groups(self, rows: ir.Value) -> ir.Value:
        """The number of groups of rows that a block works on at once; the last may be partial."""
        in_block = arith.subi(index_constant(log2(THREADS)), self.shift)
        rest = arith.subi(arith.shli(index_constant(1), in_block), index_constant(1))
        return arith.shrui(arith.addi(rows, rest), in_block)

    def row(self, group: ir.Value) -> ir.Value:
        """The row of this team in a group of rows."""
        in_block = arith.subi(index_constant(log2(THREADS)), self.shift)
        return arith.addi(arith.shli(group, in_block), self.number)

    def blocks(self, rows: Expr) -> Expr:
        """The number of blocks with work: larger teams make more of them, so the most is what the last step says."""
        (size, _), *rest = self.steps
        found = [ceildiv(rows, THREADS // size)]
        found += [ceildiv(rows, THREADS // size) * is_at_least(self.length, least) for size, least in rest]
        return found[0] if len(found) == 1 else Expr.maximum(*found)


def is_at_least(value: Expr, bound: int) -> Expr:
    """1 where a size is at least a positive number, else 0."""
    return Expr.minimum(1, value // bound)


def team_of_rows(frame: GpuFrame, length: Expr, longest: int) -> Team:
    """The team for rows of `length` elements; a warp takes those of at most `longest`."""
    steps = _possible(frame, length, ((PART, 0), (WARP, SHORT + 1), (THREADS, longest + 1)))
    names = {PART: f"{PART} threads a row", WARP: "a warp a row", THREADS: "a block a row"}
    shift = index_constant(log2(steps[0][0]))
    for (size, _), (larger, least) in zip(steps, steps[1:], strict=False):
        frame.guard(names[size], names[larger], Relation.le(length, least - 1))
        is_long = arith.cmpi(arith.CmpIPredicate.uge, frame.size_of(length), index_constant(least))
        shift = arith.select(is_long, index_constant(log2(larger)), shift)
    size = arith.shli(index_constant(1), shift)
    lane = arith.andi(thread(), arith.subi(size, index_constant(1)))
    return Team(length, steps, shift, lane, arith.shrui(thread(), shift))


def _possible(frame: GpuFrame, length: Expr, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps that rows may be on, by what is known of their length."""
    low, high = frame.facts.range(length)
    ends = [*(least for _, least in steps[1:]), None]
    return tuple(
        (size, least)
        for (size, least), end in zip(steps, ends, strict=True)
        if (high is None or high >= least) and (low is None or end is None or low < end)
    )


def log2(size: int) -> int:
    """The exponent of a power of two."""
    return size.bit_length() - 1
