# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .graph import Graph, working
from .table import translates


def dot(
    t: Graph, x: ir.Value, y: ir.Value, batch: int, inner: tuple[int, int], dtype: torch.dtype | None = None
) -> ir.Value:
    """The first `batch` axes of both stay in step and the `inner` ones are summed along; the others follow in order.

    dtype: of the result; None for that of the operands.
    """
    axes = list(range(batch))
    numbers: Any = stablehlo.DotDimensionNumbers.get(
        lhs_batching_dimensions=axes,
        rhs_batching_dimensions=axes,
        lhs_contracting_dimensions=[inner[0]],
        rhs_contracting_dimensions=[inner[1]],
    )
    left = [d for a, d in enumerate(dims_of(x)) if a != inner[0]]
    right = [d for a, d in enumerate(dims_of(y)) if a != inner[1]]
    dims = (*left, *right[batch:])
    return t.op("dot_general", [x, y], dims, t.element(dtype or t.dtype_of(x)), dot_dimension_numbers=numbers)


def check_dtypes(t: Graph, *operands: ir.Value | None) -> None:
    """Raises UnsupportedError for operands of several dtypes, as PyTorch does when it runs the op."""
    dtypes = [str(t.dtype_of(value)).removeprefix("torch.") for value in operands if value is not None]
    if len(set(dtypes)) > 1:
        raise t.refuse(
            f"its operands have the dtypes {', '.join(dtypes)}, and PyTorch wants one",
            "convert them, such as x.to(weight.dtype) or module.to(x.dtype)",
        )


@translates("mm", "dot", "mv", "bmm")
def plain_product(t: Graph, x: ir.Value, y: ir.Value, *_: Any) -> ir.Value:
    """A product of matrices, of a matrix and a vector, of vectors, or of two batches of matrices."""
    check_dtypes(t, x, y)
    return _product(t, x, y, t.dtype_of(x))


def _product(t: Graph, x: ir.Value, y: ir.Value, dtype: torch.dtype) -> ir.Value:
    batch = len(dims_of(x)) - 2 if len(dims_of(x)) == 3 else 0
    return dot(t, x, y, batch, (len(dims_of(x)) - 1, batch), dtype)


def _added(t: Graph, bias: ir.Value, found: ir.Value, beta: Any, alpha: Any) -> ir.Value:
    """beta * bias + alpha * product; a bias that counts 0 times is not read."""
    kind, dims = working(t.dtype), dims_of(found)
    value = t.convert(found, kind)
    if alpha != 1:
        value = build.multiply(value, t.operand(alpha, kind, dims))
    if beta == 0 and not isinstance(beta, Expr):
        return t.convert(value, t.dtype)
    first = t.operand(bias, kind, dims)
    if beta != 1:
        first = build.multiply(first, t.operand(beta, kind, dims))
    return t.convert(build.add(value, first), t.dtype)


@translates("addmm", "addmv", "baddbmm")
def product_and_sum(t: Graph, bias: ir.Value, x: ir.Value, y: ir.Value, beta: Any = 1, alpha: Any = 1) -> ir.Value:
    """beta * bias + alpha * (x @ y)."""
    check_dtypes(t, bias, x, y)
    return _added(t, bias, _product(t, x, y, working(t.dtype)), beta, alpha)


@translates("addbmm")
def products_and_sum(t: Graph, bias: ir.Value, x: ir.Value, y: ir.Value, beta: Any = 1, alpha: Any = 1) -> ir.Value:
    """beta * bias + alpha * the sum of the products of all pairs of matrices."""
    check_dtypes(t, bias, x, y)
    kind = working(t.dtype)
    found = t.reduce([_product(t, x, y, kind)], [t.constant(0, kind)], [0], "add")[0]
    return _added(t, bias, found, beta, alpha)


@translates("linear")
def linear(t: Graph, x: ir.Value, weight: ir.Value, bias: ir.Value | None = None) -> ir.Value:
    """x @ weight.T + bias along the last axis."""
    check_dtypes(t, x, weight, bias)
    dtype = t.dtype if bias is None else working(t.dtype)
    found = dot(t, x, weight, 0, (len(dims_of(x)) - 1, len(dims_of(weight)) - 1), dtype)
    return found if bias is None else _added(t, bias, found, 1, 1)


@translates("matmul")
def matmul(t: Graph, x: ir.Value, y: ir.Value) -> ir.Value:
    """Python's @: the last two axes are matrices, a vector is one row or column, the other axes are broadcast."""
    check_dtypes(t, x, y)
    left, right = dims_of(x), dims_of(y)
    if len(right) <= 2:
        return dot(t, x, y, 0, (len(left) - 1, max(len(right) - 2, 0)))
    if len(left) == 1:
        return t.reshape(matmul_of(t, t.reshape(x, (Expr.const(1), *left)), y, t.dims[:-1]), t.dims)
    return matmul_of(t, x, y, t.dims[:-2])


def matmul_of(t: Graph, x: ir.Value, y: ir.Value, batch: Sequence[Expr]) -> ir.Value:
    """A product of matrices over the axes `batch`, to which both are broadcast."""
    left, right = (t.stretch(v, (*batch, *dims_of(v)[-2:])) for v in (x, y))
    return dot(t, left, right, len(batch), (len(batch) + 1, len(batch)))


@translates("_int_mm")
def product_of_integers(t: Graph, x: ir.Value, y: ir.Value) -> ir.Value:
    """A product of matrices of 8-bit integers, in 32 bits."""
    return _product(t, x, y, t.dtype)


@translates("_weight_int8pack_mm")
def product_of_narrow_weights(t: Graph, x: ir.Value, weight: ir.Value, scales: ir.Value) -> ir.Value:
    """x @ weight.T, times a scale for each column."""
    found = dot(t, x, t.convert(weight, t.dtype), 0, (1, 1), working(t.dtype))
    return t.convert(build.multiply(found, t.operand(scales, working(t.dtype), dims_of(found))), t.dtype)


@translates("_scaled_mm")
def scaled_product(
    t: Graph, x: ir.Value, y: ir.Value, scale_x: ir.Value, scale_y: ir.Value, bias: ir.Value | None = None,
    scale_of_result: ir.Value | None = None, *_: Any,
) -> ir.Value:  # fmt: skip
    """A product of floats of 8 bits. Both matrices have a scale, or one for each row of x and column of y."""
    if scale_of_result is not None:
        raise t.refuse("a scaled product with a scale of the result has no translation", "multiply the result by it")
    wide, one = torch.float32, Expr.const(1)
    found = _product(t, x, y, wide)
    dims = rows, columns = dims_of(found)
    for scale, of_each in ((scale_x, (rows, one)), (scale_y, (one, columns))):
        if dims_of(scale) != of_each and any(size != one for size in dims_of(scale)):
            raise t.refuse("scales of blocks have no translation", "give one scale, or one for each row and column")
        found = build.multiply(found, t.operand(scale, wide, dims))
    return t.convert(found if bias is None else build.add(found, t.operand(bias, wide, dims)), t.dtype)
