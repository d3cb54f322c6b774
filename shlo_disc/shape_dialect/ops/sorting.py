# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.definition import OpDef, define
from shlo_disc.shape_dialect.ops.element_types import ALL, REAL
from shlo_disc.shape_dialect.ops.propagation import DataDependentSize, Propagation, same_shape
from shlo_disc.shape_dialect.ops.size_relations import all_alike
from shlo_disc.shape_dialect.symbolic.expr import Expr

_TESTS = "tests/run/test_ops_sort.py"


def _infer_top_k(p: Propagation, op: ir.OpView) -> list[Dims]:
    dims = dims_of(op.operands[0])
    count = p.sizes(op.operands[1])
    p.fits(count, dims[-1:], op)
    return [(*dims[:-1], *count)] * 2


def _infer_stated_top_k(p: Propagation, op: ir.OpView) -> list[Dims]:
    """As `_infer_top_k`; the count is an attribute."""
    dims = dims_of(op.operands[0])
    count = Expr.const(ir.IntegerAttr(ir.DictAttr(op.attributes["mhlo.attributes"])["k"]).value)
    p.fits([count], dims[-1:], op)
    return [(*dims[:-1], count)] * 2


def _infer_approx_top_k(p: Propagation, op: ir.OpView) -> list[Dims]:
    """The sizes are operands; else the count is static, and so are the other sizes or they are the first operand's.

    What is selected from, one operand a result, has the same sizes.
    """
    first, *others = (dims_of(v) for v in list(op.operands)[: len(op.results)])
    for dims in others:
        for a, b in zip(first, dims, strict=True):
            p.equal(a, b, op)
    if "indices_of_shape_operands" not in op.attributes:
        axis = ir.IntegerAttr(ir.DictAttr(op.attributes["mhlo.backend_config"])["reduction_dim"]).value
        tensor, dims = ir.RankedTensorType(op.results[0].type), dims_of(op.operands[0])
        if tensor.is_dynamic_dim(axis):
            raise DataDependentSize
        count = Expr.const(tensor.shape[axis])
        p.fits([count], dims[axis : axis + 1], op)
        return [(*dims[:axis], count, *dims[axis + 1 :])] * len(op.results)
    positions = ir.DenseIntElementsAttr(op.attributes["indices_of_shape_operands"])
    shapes = [p.sizes(op.operands[positions[i]]) for i in range(len(positions))]
    for shape in shapes:
        p.fits(shape, dims_of(op.operands[0]), op)
    return shapes


OPS = (
    *define("kernel", "sort", ALL, infer=same_shape, relate=all_alike, tests=_TESTS),
    OpDef("@ApproxTopK", "expand", REAL, REAL, infer=_infer_approx_top_k, tests=_TESTS),
    OpDef("@stablehlo.dynamic_approx_top_k", "expand", REAL, REAL, infer=_infer_approx_top_k, tests=_TESTS),
    OpDef("@stablehlo.dynamic_top_k", "expand", REAL, REAL, infer=_infer_top_k, tests=_TESTS),
    OpDef("@mhlo.topk", "expand", REAL, REAL, infer=_infer_stated_top_k, tests=_TESTS),
)
