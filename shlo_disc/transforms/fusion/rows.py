# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Follows rows through a block: along which axis of a value they lie, and where one would depend on another.

The rules of the ops are in `shape_dialect/ops/row_axes.py`; this has the decision which products there may be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.ops.recurrences import DOT
from shlo_disc.shape_dialect.ops.row_axes import has_row_rule, row_axis_of
from shlo_disc.shape_dialect.symbolic.expr import Expr


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
        if not has_row_rule(op):
            self.crossing = op
            return
        axes = [self.axis.get(v) for v in op.operands]
        if all(a is None for a in axes):
            return
        axis = row_axis_of(op, axes)
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
