# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A dot_general of any layout as batched matrix products over strided views, without transposes.

Sizes that lie next to each other in every operand that has them become one; those that do not become batch sizes, with
a stride of zero where an operand lacks them. A transpose of the result is only another set of strides.
"""

from __future__ import annotations

import itertools

from shlo_disc.shape_dialect.dialect.library import is_narrow_product, library_function_of
from shlo_disc.shape_dialect.dialect.problems import MAX_BATCH, Axis, MatrixProduct
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import func, ir, stablehlo
from shlo_disc.shape_dialect.ops.element_types import SUM_TYPES
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.transforms.simplify.dot import is_rounded

_ZERO = Expr.const(0)


def strides_of(dims: Dims) -> list[Expr]:
    """Row-major strides in elements."""
    return [product(dims[i + 1 :]) for i in range(len(dims))]


def match_product(fusion: func.FuncOp) -> MatrixProduct | None:
    """The product that is a fusion of kind "dot"; None when the dtype or the layout has none."""
    operations = list(fusion.entry_block.operations)
    dot = operations[0]
    if is_narrow_product(dot):
        return _of_narrow_weight(fusion, dot)
    if dot.operation.name != "stablehlo.dot_general" or len(operations) > 3:
        return None
    element = str(element_type_of(dot.operands[0]))
    if str(element_type_of(dot.results[0])) != SUM_TYPES.get(element) and not is_rounded(dot):
        return None
    arguments = list(fusion.entry_block.arguments)
    if any(v not in arguments for v in dot.operands):
        return None
    strides = strides_of(dims_of(dot.results[0]))
    if len(operations) == 3:
        permutation = integers(operations[1].attributes["permutation"])
        transposed = strides_of(dims_of(operations[1].results[0]))
        strides = [transposed[permutation.index(i)] for i in range(len(strides))]
    lhs, rhs = (arguments.index(v) for v in dot.operands)
    return _choose(element, lhs, rhs, *_axes(dot, strides))


def narrow_arguments(fusion: func.FuncOp) -> tuple[int, ...]:
    """`Dot.narrow` of a fusion of kind "dot"."""
    call = next(iter(fusion.entry_block.operations))
    if not is_narrow_product(call):
        return ()
    read = [name for name in ("scale", "zero") if name in library_function_of(call).parameters]
    arguments = list(fusion.entry_block.arguments)
    return tuple(arguments.index(v) for v in list(call.operands)[1 : 2 + len(read)])


def _of_narrow_weight(fusion: func.FuncOp, call: ir.OpView) -> MatrixProduct:
    """The product of a call of `dequantized_dot`, whose weight as floats is the last operand, if it is there."""
    told, one = library_function_of(call).parameters, Expr.const(1)
    rows, columns = Expr.const(told["k"]), Expr.const(told["n"])
    lhs, narrow = call.operands[0], narrow_arguments(fusion)
    last = list(fusion.entry_block.arguments).index(call.operands[len(call.operands) - 1])
    written = len(call.operands) > 1 + len(narrow)
    step, along = (one, rows) if told["dense_columns"] else (columns, one)
    m = Axis(product(dims_of(call.results[0])) // told["n"], rows, _ZERO, columns)
    element = str(element_type_of(lhs))
    return MatrixProduct(
        element,
        0,
        last if written else narrow[0],
        (),
        m,
        Axis(columns, _ZERO, along, one),
        Axis(rows, one, step, _ZERO),
    )


def _axes(dot: ir.OpView, strides: list[Expr]) -> tuple[list[Axis], list[Axis], list[Axis], list[Axis]]:
    """The batch, m, n and k loops, outermost first, neighbours merged."""
    numbers = stablehlo.DotDimensionNumbers(dot.attributes["dot_dimension_numbers"])
    lhs_dims, rhs_dims = dims_of(dot.operands[0]), dims_of(dot.operands[1])
    lhs_strides, rhs_strides = strides_of(lhs_dims), strides_of(rhs_dims)
    lhs_batch, rhs_batch = list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)
    lhs_inner, rhs_inner = list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)
    lhs_free = [i for i in range(len(lhs_dims)) if i not in {*lhs_batch, *lhs_inner}]
    rhs_free = [i for i in range(len(rhs_dims)) if i not in {*rhs_batch, *rhs_inner}]
    result = iter(strides)
    batch = [
        Axis(lhs_dims[i], lhs_strides[i], rhs_strides[j], next(result))
        for i, j in zip(lhs_batch, rhs_batch, strict=True)
    ]
    m = [Axis(lhs_dims[i], lhs_strides[i], _ZERO, next(result)) for i in lhs_free]
    n = [Axis(rhs_dims[j], _ZERO, rhs_strides[j], next(result)) for j in rhs_free]
    k = [
        Axis(lhs_dims[i], lhs_strides[i], rhs_strides[j], _ZERO)
        for i, j in sorted(zip(lhs_inner, rhs_inner, strict=True))
    ]
    return _merge(batch), _merge(m), _merge(n), _merge(k)


def _merge(axes: list[Axis]) -> list[Axis]:
    merged: list[Axis] = []
    for axis in (a for a in axes if a.size.constant != 1):
        last = merged[-1] if merged else None
        if last is not None and all(
            getattr(last, side) == getattr(axis, side) * axis.size for side in ("lhs", "rhs", "result")
        ):
            merged[-1] = Axis(last.size * axis.size, axis.lhs, axis.rhs, axis.result)
        else:
            merged.append(axis)
    return merged


def _choose(
    element: str, lhs: int, rhs: int, batch: list[Axis], m: list[Axis], n: list[Axis], k: list[Axis]
) -> MatrixProduct | None:
    """The split into one matrix product and batch sizes in which every matrix has a unit stride."""
    one = Expr.const(1)
    unit = [Axis(one, one, one, one)]
    if len(k) > 1:
        return None
    inner = (k or unit)[0]
    for row, column in itertools.product(reversed(m or unit), reversed(n or unit)):
        outer = batch + [a for a in m if a is not row] + [a for a in n if a is not column]
        units = one in (row.lhs, inner.lhs) and one in (column.rhs, inner.rhs) and one in (row.result, column.result)
        if units and len(outer) <= MAX_BATCH:
            return MatrixProduct(element, lhs, rhs, tuple(outer), row, column, inner)
    return None
