# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indices that are known to be multiples of a number of lanes."""

from __future__ import annotations

from collections.abc import Callable, Collection

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts

SizeOf = Callable[[Expr], ir.Value]


class Multiples:
    """The indices that are multiples of `number`, a power of two, by the ops that they come from.

    sizes: what is a multiple besides the sizes that the facts say so of.
    """

    def __init__(self, number: int, facts: Facts, sizes: Collection[Expr] = ()):
        self.number = number
        self._facts = facts
        self._sizes = sizes
        self._known: dict[ir.Value, bool] = {}

    def note(self, *values: ir.Value) -> None:
        """Remember values that are multiples."""
        self._known.update(dict.fromkeys(values, True))

    def noting(self, size_of: SizeOf) -> SizeOf:
        """`size_of`, whose values are remembered where the sizes are multiples."""

        def noted(size: Expr) -> ir.Value:
            value = size_of(size)
            if self._is_size(size):
                self.note(value)
            return value

        return noted

    def _is_size(self, size: Expr) -> bool:
        return self._facts.divides(self.number, size) or any(self._facts.divides(k, size) for k in self._sizes)

    def holds(self, value: ir.Value) -> bool:
        """Tells whether an index, or an integer that it is a cast of, is known to be a multiple."""
        if value not in self._known:
            self._known[value] = self._follows(value)
        return self._known[value]

    def _follows(self, value: ir.Value) -> bool:
        """Wrapping around and cutting off upper bits leave multiples of a power of two as they are."""
        if isinstance(value.owner, ir.Block) or isinstance(value.type, ir.VectorType):
            return False
        number, op = constant_of_index(value), value.owner.operation
        if number is not None:
            return number % self.number == 0
        if op.name == "arith.muli":
            return any(map(self.holds, op.operands))
        if op.name == "arith.select":
            return all(map(self.holds, list(op.operands)[1:]))
        return op.name in _KEEPING and all(map(self.holds, op.operands))


_KEEPING = frozenset(
    {"arith.addi", "arith.index_cast", "arith.index_castui", "arith.maxsi", "arith.minsi", "arith.subi"}
)
"""Ops whose result is a multiple where all operands are."""


def constant_of_index(value: ir.Value) -> int | None:
    """The number that a scalar always is."""
    if isinstance(value.owner, ir.Block) or value.owner.name != "arith.constant":
        return None
    return int(ir.IntegerAttr(value.owner.operation.attributes["value"]).value)
