# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Follows rows through a block: along which axis of a value they lie, and where one would depend on another.

Each op has a rule: from the axes along which the rows of its operands lie (None where an operand depends on no row) the
axis of the result, of which row i depends on row i of the operands. There is none where rows meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.shape_dialect.utils.op_sets import ELEMENTWISE
from shlo_disc.transforms.fusion.access import BROADCASTS, GENERATORS, RESHAPES, defining_op
from shlo_disc.transforms.policy import policy

DOT = "stablehlo.dot_general"

_SLICES = frozenset({"stablehlo.dynamic_slice", "stablehlo.real_dynamic_slice", "stablehlo.slice"})

Axes = list[int | None]


@dataclass
class RowAnalysis:
    """The rows of the values of `body`, of which there are `rows`.

    `axis` has an entry for each value that depends on the row: the axis that the rows lie along. `crossing` is the
    first op in which rows meet, or of which that is not known; `mixing` the first product that is not one of rows with
    a matrix from outside.
    """

    body: ir.Block
    rows: Expr
    axis: dict[ir.Value, int] = field(default_factory=dict)
    crossing: ir.Operation | None = None
    mixing: ir.Operation | None = None

    def run(self, ops: Iterable[ir.OpView]) -> None:
        """Follow the rows through `ops`, up to the first in which they meet."""
        for op in ops:
            if self.crossing is None and self.mixing is None:
                self._visit(op.operation)

    def _visit(self, op: ir.Operation) -> None:
        if op.name == DOT:
            if self._is_product_of_rows(op):
                self.axis[op.results[0]] = 0
            else:
                self.mixing = op
            return
        rule = _elementwise if op.name in ELEMENTWISE else _RULES.get(op.name)
        if rule is None or len(op.results) != 1:
            self.crossing = op
            return
        axes = [self.axis.get(v) for v in op.operands]
        if all(a is None for a in axes):
            return
        axis = rule(op, axes)
        if axis is None or dims_of(op.results[0])[axis] != self.rows:
            self.crossing = op
        else:
            self.axis[op.results[0]] = axis

    def _is_product_of_rows(self, op: ir.Operation) -> bool:
        """A product of rows [rows, k] with a matrix [k, n] from outside."""
        lhs, rhs = op.operands
        numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
        ranks = [len(dims_of(v)) for v in (lhs, rhs)]
        contracted = [list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)]
        is_plain = ranks == [2, 2] and contracted == [[1], [0]] and not list(numbers.lhs_batching_dimensions)
        if op.block != self.body or not is_plain:
            return False
        types = {str(element_type_of(v)) for v in (lhs, rhs, op.results[0])}
        sizes = (*dims_of(rhs), *dims_of(op.results[0])[1:])
        known = {"f32", "f64", *policy().rounded_products}
        if len(types) != 1 or not types <= known or any(d.constant in (None, 0) for d in sizes):
            return False
        producer = defining_op(rhs)
        is_inside = rhs.owner == self.body if producer is None else producer.block == self.body
        return not is_inside and self.axis.get(lhs, 0) == 0 and dims_of(lhs)[0] == self.rows


def _elementwise(op: ir.Operation, axes: Axes) -> int | None:
    different = {a for a in axes if a is not None}
    return different.pop() if len(different) == 1 else None


def _first(op: ir.Operation, axes: Axes) -> int | None:
    """The axis of operand 0, when no other operand depends on the row."""
    return axes[0] if not any(a is not None for a in axes[1:]) else None


def _broadcast(op: ir.Operation, axes: Axes) -> int | None:
    axis = _first(op, axes)
    return None if axis is None else integers(op.attributes["broadcast_dimensions"])[axis]


def _reshape(op: ir.Operation, axes: Axes) -> int | None:
    axis = _first(op, axes)
    if axis is None:
        return None
    source, result = dims_of(op.operands[0]), dims_of(op.results[0])
    before = product(source[:axis])
    places = (i for i, d in enumerate(result) if d == source[axis] and product(result[:i]) == before)
    return next(places, None)


def _slice(op: ir.Operation, axes: Axes) -> int | None:
    """A slice that takes all rows."""
    axis = _first(op, axes)
    if axis is None or dims_of(op.operands[0])[axis] != dims_of(op.results[0])[axis]:
        return None
    return axis


def _pad(op: ir.Operation, axes: Axes) -> int | None:
    axis = _first(op, axes)
    amounts = ("edge_padding_low", "edge_padding_high", "interior_padding")
    if axis is None or any(integers(op.attributes[name])[axis] for name in amounts):
        return None
    return axis


def _transpose(op: ir.Operation, axes: Axes) -> int | None:
    axis = _first(op, axes)
    return None if axis is None else integers(op.attributes["permutation"]).index(axis)


def _concatenate(op: ir.Operation, axes: Axes) -> int | None:
    axis = _elementwise(op, axes)
    return None if axis == ir.IntegerAttr(op.attributes["dimension"]).value else axis


def _reverse(op: ir.Operation, axes: Axes) -> int | None:
    axis = _first(op, axes)
    return None if axis in integers(op.attributes["dimensions"]) else axis


def _gather(op: ir.Operation, axes: Axes) -> int | None:
    """Indices that depend on the row, into a table that does not."""
    axis = axes[1]
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    if axes[0] is not None or axis is None or axis == numbers.index_vector_dim:
        return None
    batch = [i for i in range(len(dims_of(op.results[0]))) if i not in list(numbers.offset_dims)]
    return batch[axis - (axis > numbers.index_vector_dim)]


def _reduce(op: ir.Operation, axes: Axes) -> int | None:
    """A reduction of one value along other axes."""
    axis = _first(op, axes)
    reduced = integers(op.attributes["dimensions"])
    return None if axis is None or axis in reduced else axis - sum(1 for a in reduced if a < axis)


_RULES: dict[str, Callable[[ir.Operation, Axes], int | None]] = {
    **dict.fromkeys(BROADCASTS, _broadcast),
    **dict.fromkeys(GENERATORS, _first),
    **dict.fromkeys(RESHAPES, _reshape),
    **dict.fromkeys(_SLICES, _slice),
    "stablehlo.concatenate": _concatenate,
    "stablehlo.gather": _gather,
    "stablehlo.pad": _pad,
    "stablehlo.reduce": _reduce,
    "stablehlo.reverse": _reverse,
    "stablehlo.transpose": _transpose,
}
