# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""When values are needed: every launch, loop and branch of a fused program has a place on one line.

A loop stands there once, condition before body. What it uses from outside is needed until its end, for the next
iteration may use it again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.regions import is_condition, nested_blocks, terminator_of
from shlo_disc.transforms.segments import RUNS
from shlo_disc.transforms.views import root


@dataclass
class Liveness:
    """Positions: of ops (`begin` and `end` differ for loops and branches) and of the last use of each buffer's value.

    `returned` says for each value that leaves a block whose position on the terminator it has; a block's values leave
    once. `init_of` says the same for the values that a loop of the same block starts from, and that nothing else needs.
    """

    begin: dict[ir.Operation, int] = field(default_factory=dict)
    end: dict[ir.Operation, int] = field(default_factory=dict)
    last_use: dict[ir.Value, int] = field(default_factory=dict)
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
            for value in op.operands:
                used.add(root(value))
                self.last_use[root(value)] = self._position
            if nested_blocks(op):
                used |= self._control(op)
            self.end[op.operation] = self._position
            self._defined.update(dict.fromkeys(op.results, self._position))
        if not is_condition(block):
            self.returned.update({root(v): (block.owner.operation, i) for i, v in enumerate(terminator.operands)})
        return used

    def _control(self, op: ir.OpView) -> set[ir.Value]:
        start = self._position
        used = set().union(*(self._block(nested) for nested in nested_blocks(op)))
        self._position += 1
        if op.operation.name == "stablehlo.while":
            for value in used:
                if self._defined.get(value, 0) < start:
                    self.last_use[value] = self._position
        return used

    def _find_inits(self) -> None:
        for op in self.begin:
            if op.name != "stablehlo.while":
                continue
            roots = [root(v) for v in op.operands]
            for position, value in enumerate(roots):
                owner = value.owner
                is_local = not isinstance(owner, ir.Block) and owner.operation.block == op.block
                if is_local and self.dies_at(value, op) and roots.count(value) == 1:
                    self.init_of[value] = (op, position)

    def dies_at(self, value: ir.Value, op: ir.Operation) -> bool:
        """Whether a value is last needed where `op` begins."""
        return self.last_use.get(value) == self.begin[op]
