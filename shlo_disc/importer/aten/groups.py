# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of groups, each with a matrix or a range of terms of its own, as layers with experts have them."""

from __future__ import annotations

from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.custom_calls import RAGGED_DOT
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.ragged import PARAMETERS
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .graph import Graph
from .products import dot
from .table import translates

_ONE = Expr.const(1)


@translates("_grouped_mm")
def grouped_product(t: Graph, x: ir.Value, y: ir.Value, ends: Any = None, bias: Any = None, *_: Any) -> ir.Value:
    """A product for each group: of the rows, the columns or the terms up to its end; what no group has is 0."""
    if bias is not None:
        raise t.refuse("a grouped product with a bias has no translation", "add the bias to the result")
    ranks = len(dims_of(x)), len(dims_of(y))
    if ends is None and ranks == (3, 3):
        return dot(t, x, y, 1, (2, 1), t.dtype)
    if ends is None or ranks == (3, 3):
        raise t.refuse("this form of a grouped product has no translation", "give the groups' ends")
    if ranks == (2, 3):
        return _product(t, x, y, ends, t.dims)
    if ranks == (2, 2):
        return _product(t, x, y, ends, t.dims, contracts=True, lhs_flipped=True)
    columns, rows = t.dims[::-1]
    return t.transpose(_product(t, y, x, ends, (columns, rows), lhs_flipped=True, rhs_flipped=True), (1, 0))


@translates("transformers.grouped_mm_fallback.default")
def rows_by_matrices(t: Graph, x: ir.Value, weights: ir.Value, ends: ir.Value) -> ir.Value:
    """The rows up to each end times the matrix of their group; rows after the last end are 0."""
    return _product(t, x, weights, ends, t.dims)


@translates("transformers.grouped_mm_fallback_backward.default")
def rows_by_matrices_backward(
    t: Graph, x: ir.Value, weights: ir.Value, ends: ir.Value, gradient: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """The gradients of the rows and of the matrices."""
    rows = _product(t, gradient, weights, ends, dims_of(x), rhs_flipped=True)
    return rows, _product(t, x, gradient, ends, dims_of(weights), contracts=True)


def _product(t: Graph, lhs: ir.Value, rhs: ir.Value, ends: ir.Value, dims: Dims, **flags: bool) -> ir.Value:
    """The custom call, whose flags are those of shape_dialect/ops/ragged.py. ends: of the groups, in order."""
    ends = t.convert(ends, torch.int64)
    before = build.pad(ends, [_ONE], [-_ONE], [0])
    numbers: dict[str, ir.Attribute] = {
        name: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), int(flags.get(name, False))) for name in PARAMETERS
    }
    attributes: dict[str, ir.Attribute] = {
        "call_target_name": ir.StringAttr.get(RAGGED_DOT), "mhlo.backend_config": ir.DictAttr.get(numbers)
    }  # fmt: skip
    operands = [lhs, rhs, build.subtract(ends, before)]
    return t.op("custom_call", operands, dims, t.element(t.dtype), **attributes)
