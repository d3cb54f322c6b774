# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that are known in a block of a loop or branch only: what is computed from one is computed there.

JAX reads the size of every array, hidden arguments included, where the program begins. A hidden argument has another
size in each run of a block, so the ops on its size move into the block, behind the selection whose size it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from shlo_disc.errors import Unsupported, UnsupportedError
from shlo_disc.shape_dialect.dialect.ops import ShapeOp
from shlo_disc.shape_dialect.dialect.types import dims_attr
from shlo_disc.shape_dialect.inference.sizes_inside import STAYS_INSIDE
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import ELEMENTWISE, GENERATORS, INDEX_MAPS, VALUE_RULES
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.locations import source_line
from shlo_disc.transforms.control_flow.carried import SELECTION


@dataclass(frozen=True)
class KnownSize:
    """The size of a hidden argument in a block, which is known from the op `known_at` of the block on."""

    block: ir.Block
    known_at: ir.Operation
    size: Expr

    def reaches(self, op: ir.Operation) -> bool:
        """Tells whether the size is known where an op stands."""
        inner = op
        while inner.block != self.block:
            if inner.parent is None or inner.parent.operation.parent is None:
                return False
            inner = inner.parent.operation
        return not inner.is_before_in_block(self.known_at)


_COPIED = frozenset({*VALUE_RULES, *ELEMENTWISE, *GENERATORS, *INDEX_MAPS})
"""Ops that may run anywhere, and again: what JAX finds to be the same in every iteration it computes before a loop."""


def sink_sizes(argument: ir.Value, places: Sequence[KnownSize]) -> None:
    """Compute what depends on the size of a hidden argument in the blocks that know it, in place.

    Raises UnsupportedError where something else depends on it.
    """
    outside = _computed_outside(argument, places)
    for place in places:
        _Sinking(place, outside).run()


def _computed_outside(argument: ir.Value, places: Sequence[KnownSize]) -> set[ir.Operation]:
    """The ops that depend on the size of the argument, and stand where it is not known."""
    found: set[ir.Operation] = set()
    pending = [use.owner.operation for use in argument.uses]
    while pending:
        op = pending.pop()
        if op in found or any(place.reaches(op) for place in places):
            continue
        if op.name not in _COPIED and places:
            reason = "a size that is read from data inside of a loop or branch is used outside of it"
            refuse_size(op, reason, STAYS_INSIDE)
        if op.name not in _COPIED:
            reason = "the number of elements that a mask selects is used, and jax.checkpoint has dropped the selection"
            refuse_size(op, reason, "use the sum of the mask")
        found.add(op)
        pending += [use.owner.operation for result in op.results for use in result.uses]
    return found


def is_around(outer: ir.Block, inner: ir.Block) -> bool:
    """Tells whether a block is another one, or an op of it has that in a region."""
    block: ir.Block | None = inner
    while block is not None:
        if block == outer:
            return True
        block = block.owner.operation.block if block.owner.operation.parent is not None else None
    return False


@dataclass
class _Sinking:
    """The work on one block: `outside` are the ops whose results depend on the size."""

    place: KnownSize
    outside: set[ir.Operation]
    computed: dict[ir.Value, ir.Value] = field(default_factory=dict)

    def run(self) -> None:
        """Have the ops of the block, and of those in it, read the results of copies."""
        for op in [op for block in all_blocks(self.place.block) for op in block.operations]:
            if op.operation not in self.outside:
                self._read_copies(op.operation)

    def _read_copies(self, op: ir.Operation) -> None:
        for number, value in enumerate(op.operands):
            op.operands[number] = self._copied(value)

    def _copied(self, value: ir.Value) -> ir.Value:
        """The value in the block; itself where it does not depend on the size."""
        if value not in self.computed:
            op = defining_op(value)
            self.computed[value] = value if op is None or op not in self.outside else self._copy(value, op)
        return self.computed[value]

    def _copy(self, value: ir.Value, op: ir.Operation) -> ir.Value:
        point = ir.InsertionPoint(self.place.known_at)
        if op.name == "stablehlo.get_dimension_size":
            with point, op.location:
                return ShapeOp(dims_attr([self.place.size]), result=value.type).results[0]
        operands = list(map(self._copied, op.operands))
        clone = op.clone(ip=point)
        for number, operand in enumerate(operands):
            clone.operands[number] = operand
        return clone.results[list(op.results).index(value)]


def refuse_size(op: ir.OpView | ir.Operation, reason: str, advice: str) -> None:
    """Raises UnsupportedError at an op that asks for a size, or uses it."""
    name = f"custom_call @{SELECTION}" if op.operation.name == "stablehlo.custom_call" else op.operation.name
    raise UnsupportedError([Unsupported(name, "", source_line(op.location), reason, advice)])


__all__ = ["KnownSize", "is_around", "refuse_size", "sink_sizes"]
