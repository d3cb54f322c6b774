# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Selection of the element of its operand by a window of a `select_and_scatter`.

The body of the op keeps the one that has been selected so far, or not, for one element of the window after the other;
those in the padding are passed over.
"""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.lowering.element_types import constant_like, element_of
from shlo_disc.lowering.elements import Elements, Positions, constant_of
from shlo_disc.lowering.index_rules import nest
from shlo_disc.lowering.index_rules.windows import conjunction, window_position
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.reduction import Combiner
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import arith, func, ir
from shlo_disc.shape_dialect.utils.windows import window_of


def selection_in(fusion: func.FuncOp) -> ir.OpView:
    """The op of a fusion of that kind."""
    return next(op for op in fusion.entry_block.operations if op.operation.name.endswith("select_and_scatter"))


class WindowSelection:
    """The windows of one op. With `has_lanes`, lanes stand side by side along the last axis."""

    def __init__(self, op: ir.OpView, elements: Elements, has_lanes: bool):
        self.op = op
        self.elements = elements
        self.has_lanes = has_lanes
        self.window = window_of(op)
        self.dims = dims_of(op.operands[0])
        self.element = element_of(op.operands[0].type)
        self.select = Combiner(op, elements.elementwise)

    def at(self, place: Positions) -> tuple[ir.Value, ir.Value]:
        """For the window of the source element at `place`: the row-major offset of the selected element, without the
        lanes' column, and whether the window has any element."""
        elements, window = self.elements, self.window
        axes = [axis for axis in range(len(self.dims)) if window.size[axis].constant != 1]
        columns = elements.size_of(self.dims[-1]) if self.has_lanes else index_constant(1)
        no = arith.constant(ir.IntegerType.get_signless(1), 0)
        nothing = elements.splat(constant_of(self.element.register()))
        start = [nothing, elements.splat(index_constant(0)), no]

        def body(indices: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
            best, where, found = carried
            index_of = dict(zip(axes, indices, strict=True))
            there: list[Position] = []
            conditions: list[ir.Value] = []
            for axis, position in enumerate(place):
                size = elements.size_of(self.dims[axis])
                moved, needed = window_position(elements, window, axis, size, position, index_of.get(axis))
                there.append(moved)
                conditions += needed
            yes = constant_like(no, 1)
            inside = conjunction(elements, conditions) or yes
            with elements.only_where(inside):
                value = elements.splat(elements.at(self.op.operands[0], tuple(there)))
            (keeps,) = self.select.combine([best], [value])
            replaces = arith.xori(keeps, constant_like(keeps, 1))
            first = elements.splat(arith.xori(found, yes))
            takes = arith.andi(arith.ori(replaces, first), elements.splat(inside))
            rows = there[:-1] if self.has_lanes else there
            offset = elements.splat(arith.muli(self._row_major(rows), columns))
            return [
                elements.select(takes, value, best),
                elements.select(takes, offset, where),
                arith.ori(found, inside),
            ]

        _, where, found = nest(elements, [elements.size_of(window.size[a]) for a in axes], start, body)
        return where, found

    def _row_major(self, place: Sequence[Position]) -> ir.Value:
        offset = index_constant(0)
        for position, dim in zip(place, self.dims, strict=False):
            offset = arith.addi(arith.muli(offset, self.elements.size_of(dim)), position.base)
        return offset
