# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The live ranges of values: every launch, loop and branch of a fused program has a place on one line.

A loop stands there once, condition before body. What it uses from outside is needed until its end, for the next
iteration may use it again.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import NamedTuple

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks
from shlo_disc.shape_dialect.ops.segments import RUNS
from shlo_disc.shape_dialect.ops.views import read_for, root
from shlo_disc.shape_dialect.utils.regions import is_condition, terminator_of
from shlo_disc.transforms.decisions import Pattern


@dataclass
class Liveness:
    """Positions: of ops (`begin` and `end` differ for loops and branches), and in order of each value's uses.

    `returned` says of values that leave the block they are made in, which they do once, as which result of what.
    `init_of` says the same of the values that a loop of the same block starts from, and that nothing needs afterwards.
    """

    begin: dict[ir.Operation, int] = field(default_factory=dict)
    end: dict[ir.Operation, int] = field(default_factory=dict)
    uses: dict[ir.Value, list[int]] = field(default_factory=dict)
    returned: dict[ir.Value, tuple[ir.Operation, int]] = field(default_factory=dict)
    init_of: dict[ir.Value, tuple[ir.Operation, int]] = field(default_factory=dict)
    _defined: dict[ir.Value, int] = field(default_factory=dict)
    _position: int = 0

    @staticmethod
    def of(block: ir.Block) -> Liveness:
        """The liveness of an entry block."""
        liveness = Liveness()
        liveness._block(block)
        liveness._find_inits()
        return liveness

    def _block(self, block: ir.Block) -> set[ir.Value]:
        """Place the ops of a block; returns what they use."""
        used: set[ir.Value] = set()
        self._defined.update(dict.fromkeys(block.arguments, self._position))
        terminator = terminator_of(block).operation
        for op in block.operations:
            if op.operation.name not in RUNS and op.operation != terminator:
                continue
            self._position += 1
            self.begin[op.operation] = self._position
            for value in (read for operand in op.operands for read in read_for(operand)):
                used.add(value)
                self._use(value)
            if nested_blocks(op):
                used |= self._control(op)
            self.end[op.operation] = self._position
            self._defined.update(dict.fromkeys(op.results, self._position))
        if not is_condition(block):
            for position, value in enumerate(terminator.operands):
                if block_of(root(value)) == block:
                    self.returned[root(value)] = (block.owner.operation, position)
        return used

    def _control(self, op: ir.OpView) -> set[ir.Value]:
        start = self._position
        used = set().union(*(self._block(nested) for nested in nested_blocks(op)))
        self._position += 1
        if op.operation.name == "stablehlo.while":
            for value in used:
                if self._defined.get(value, 0) < start:
                    self._use(value)
        return used

    def _find_inits(self) -> None:
        for op in self.begin:
            if op.name != "stablehlo.while":
                continue
            for number in range(len(op.operands)):
                found = TAKE_OVER.match(lambda start: start, LoopStart(self, op, number))
                if found is not None:
                    self.init_of[found.source] = (op, number)

    def _use(self, value: ir.Value) -> None:
        self.uses.setdefault(value, []).append(self._position)

    def last_use(self, value: ir.Value) -> int:
        """The position where a value is last needed; 0 when it never is."""
        return self.uses[value][-1] if value in self.uses else 0

    def dies_at(self, value: ir.Value, op: ir.Operation) -> bool:
        """Tells whether a value is last needed where `op` begins."""
        return self.last_use(value) == self.begin[op]

    @staticmethod
    def is_read_in_pieces(value: ir.Value, op: ir.Operation) -> bool:
        """Tells whether an operand of `op` is a piece of a value, or begins where that says."""
        return any(value in read_for(operand) and root(operand) != value for operand in op.operands)

    def is_used_at(self, value: ir.Value, op: ir.Operation) -> bool:
        """Tells whether `op` itself, not what is in it, reads a value."""
        return self._is_used_between(value, self.begin[op], self.begin[op])

    def is_used_after(self, value: ir.Value, op: ir.Operation, last: ir.Operation) -> bool:
        """Tells whether a value is needed after the beginning of `op`, up to `last`."""
        return self._is_used_between(value, self.begin[op] + 1, self.end[last])

    def is_used_behind(self, value: ir.Value, op: ir.Operation, last: ir.Operation) -> bool:
        """Tells whether a value is needed after the end of `op`, up to `last`."""
        return self._is_used_between(value, self.end[op] + 1, self.end[last])

    def _is_used_between(self, value: ir.Value, first: int, last: int) -> bool:
        uses = self.uses.get(value, [])
        following = bisect_left(uses, first)
        return following < len(uses) and uses[following] <= last


def block_of(value: ir.Value) -> ir.Block:
    """The block that defines a value."""
    return value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block


TAKE_OVER = Pattern["LoopStart"]("take-over", "what a loop carries lies where its initial value is")


class LoopStart(NamedTuple):
    """The `number`th value that a loop carries, in the liveness of the whole program."""

    live: Liveness
    loop: ir.Operation
    number: int

    @property
    def source(self) -> ir.Value:
        """The buffer of its initial value."""
        return root(self.loop.operands[self.number])


@TAKE_OVER.requires("the initial value is made in the block of the loop, so that each run of it makes it anew")
def _is_local(found: LoopStart) -> bool:
    return not isinstance(found.source.owner, ir.Block) and block_of(found.source) == found.loop.block


@TAKE_OVER.requires("nothing reads the initial value after the loop has begun")
def _dies_at_the_loop(found: LoopStart) -> bool:
    return found.live.dies_at(found.source, found.loop)
