# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with sparse matrices: rows of the other one are gathered, multiplied, and added to those of the result."""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.custom_calls import CSR_PRODUCT
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.dialect.window import Window
from shlo_disc.shape_dialect.mlir import ir, rewrite
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.windows import window_attributes
from shlo_disc.transforms.simplify.data_movement import NO_MATCH, Pattern

_ZERO = Expr.const(0)


def csr_product(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """The sum of each row in the order of its elements; padding belongs to no row, and is dropped."""
    if ir.StringAttr(op.attributes["call_target_name"]).value != CSR_PRODUCT:
        return NO_MATCH
    data, starts, columns, rhs = list(op.operands)[:4]
    with rewriter.ip, op.location:
        (count,), rest = dims_of(data), dims_of(rhs)[1:]
        taken = _taken_rows(rhs, build.view(columns, (count, build.ONE)))
        products = build.multiply(build.broadcast(data, (count, *rest), [0]), taken)
        zeros = build.constant(0, element_type_of(data), dims_of(op.results[0]))
        rewriter.replace_op(op, [_added(zeros, _rows_of_elements(starts, count), products)])
    return None


def _rows_of_elements(starts: ir.Value, count: Expr) -> ir.Value:
    """The row of each element, [count, 1]: one less than the number of rows that start at it or before it.

    Rows that start behind all elements are dropped by the scatter, and elements behind the last row have none.
    """
    kind, (bounds,) = element_type_of(starts), dims_of(starts)
    ones, zeros = build.constant(1, kind, (bounds,)), build.constant(0, kind, (count,))
    begun = _running_sum(_added(zeros, build.view(starts, (bounds, build.ONE)), ones))
    return build.view(build.subtract(begun, build.constant(1, kind, (count,))), (count, build.ONE))


def _running_sum(value: ir.Value) -> ir.Value:
    (count,), element = dims_of(value), element_type_of(value)
    window = Window((count,), (build.ONE,), (build.ONE,), (build.ONE,), (count - 1,), (_ZERO,))
    attributes = window_attributes(window, (count,), (count,))
    operands = [value, build.constant(0, element)]
    return _with_sum("stablehlo.reduce_window", value.type, operands, attributes)


def _taken_rows(value: ir.Value, places: ir.Value) -> ir.Value:
    """The rows of `value` at places [n, 1], which are clamped to the rows that there are."""
    count, rest = dims_of(places)[0], dims_of(value)[1:]
    numbers = ir.Attribute.parse(
        f"#stablehlo.gather<offset_dims = {[*range(1, len(rest) + 1)]}, collapsed_slice_dims = [0], "
        "start_index_map = [0], index_vector_dim = 1>"
    )
    operands = [value, places, build.shape_tensor((build.ONE, *rest))]
    type_ = tensor_type((count, *rest), element_type_of(value))
    return build.create("dynamic_gather", operands, type_, {"dimension_numbers": numbers})


def _added(value: ir.Value, places: ir.Value, updates: ir.Value) -> ir.Value:
    """`value` with updates added to its rows at places [n, 1], in order; places outside are dropped."""
    windows = [*range(1, len(dims_of(updates)))]
    numbers = ir.Attribute.parse(
        f"#stablehlo.scatter<update_window_dims = {windows}, inserted_window_dims = [0], "
        "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>"
    )
    attributes = {"scatter_dimension_numbers": numbers}
    return _with_sum("stablehlo.scatter", value.type, [value, places, updates], attributes)


def _with_sum(name: str, type_: ir.Type, operands: Sequence[ir.Value], attributes: dict[str, ir.Attribute]) -> ir.Value:
    """An op whose body adds."""
    scalar = ir.RankedTensorType.get([], element_type_of(operands[0]))
    op = ir.Operation.create(name, results=[type_], operands=list(operands), attributes=attributes, regions=1)
    with ir.InsertionPoint(ir.Block.create_at_start(op.regions[0], [scalar, scalar])) as point:
        ir.Operation.create("stablehlo.return", operands=[build.add(*point.block.arguments)])
    return op.results[0]


PATTERNS: list[tuple[str, Pattern]] = [("stablehlo.custom_call", csr_product)]
