# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The body of a scatter: what it makes of an element and an update, and whether the order of updates shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shlo_disc.lowering.element_types import element_of
from shlo_disc.lowering.elements import constant_of
from shlo_disc.lowering.elementwise import Elementwise
from shlo_disc.lowering.reduction import Combiner
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.access import defining_op

_MONOIDS = frozenset(("add", "and", "maximum", "minimum", "multiply", "or", "xor"))

_ROUNDED = frozenset(("add", "multiply", "subtract"))
"""Ops whose results on floats differ in the last bits between two orders."""

_LOOPS = frozenset(("stablehlo.remainder",))
"""Ops that are loops on floats."""


@dataclass(frozen=True)
class Combination:
    """The way a body makes result `index` of the element `old` and the update `new`, its arguments of that number.

    name: "add", "maximum", ... where it is one op on the two, "subtract" where that takes the update away, "replace"
    where it is the update, None for any other. is_independent: it looks at no other argument.
    """

    index: int
    name: str | None
    is_independent: bool
    is_float: bool

    @property
    def shows_order(self) -> bool:
        """Tells whether another order of updates may give another result, beyond rounding."""
        return self.name is None or self.name == "replace"

    @property
    def shows_rounding(self) -> bool:
        """Tells whether another order may round otherwise."""
        return self.is_float and self.name in _ROUNDED


class ScatterBody:
    """The body of one scatter."""

    def __init__(self, op: ir.OpView):
        self.op = op
        self.count = len(op.results)
        self.block = op.regions[0].blocks[0]
        *self.ops, self.terminator = self.block.operations
        self.combinations = [self._combination(index) for index in range(self.count)]

    @property
    def has_atomic_form(self) -> bool:
        """Tells whether each result can be combined by itself, in one step that is no loop."""
        loops = any(op.operation.name in _LOOPS and element_of(op.results[0].type).is_float for op in self.ops)
        return not loops and all(c.is_independent for c in self.combinations)

    @property
    def shows_order(self) -> bool:
        """Tells whether another order of updates may give other results, beyond rounding."""
        return any(c.shows_order for c in self.combinations)

    @property
    def shows_rounding(self) -> bool:
        """Tells whether another order may round otherwise."""
        return any(c.shows_rounding for c in self.combinations)

    def combined(self, index: int, old: ir.Value, new: ir.Value, elementwise: Elementwise) -> ir.Value:
        """Result `index`, an independent one, on register values."""

        def with_others(value: ir.Value) -> list[ir.Value]:
            types = [element_of(r.type).register() for r in self.op.results]
            return [value if number == index else constant_of(type_) for number, type_ in enumerate(types)]

        return Combiner(self.op, elementwise).combine(with_others(old), with_others(new), exact=True)[index]

    def _combination(self, index: int) -> Combination:
        old, new = self.block.arguments[index], self.block.arguments[self.count + index]
        result = self.terminator.operands[index]
        is_independent = _arguments_below(result) <= {old, new}
        return Combination(index, _name(result, old, new), is_independent, element_of(old.type).is_float)


def _name(result: ir.Value, old: ir.Value, new: ir.Value) -> str | None:
    if result == new:
        return "replace"
    op = defining_op(result)
    if op is None:
        return None
    name, operands = op.name.removeprefix("stablehlo."), list(op.operands)
    if name in _MONOIDS and operands in ([old, new], [new, old]):
        return name
    return name if name == "subtract" and operands == [old, new] else None


def _arguments_below(value: ir.Value) -> set[ir.Value]:
    """The arguments of the body that a value is computed from."""
    found: set[ir.Value] = set()
    pending: Sequence[ir.Value] = [value]
    seen: set[ir.Value] = set()
    while pending:
        *pending, current = pending
        if current in seen:
            continue
        seen.add(current)
        op = defining_op(current)
        if op is None:
            found.add(current)
        else:
            pending = [*pending, *op.operands]
    return found
