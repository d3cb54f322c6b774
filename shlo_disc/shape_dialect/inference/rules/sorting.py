# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The largest elements along a dimension, as custom calls."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.inference.propagation import DataDependentSize, Propagation, Rule
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr


def _top_k(p: Propagation, op: ir.OpView) -> list[Dims]:
    dims = dims_of(op.operands[0])
    count = p.sizes(op.operands[1])
    p.fits(count, dims[-1:], op)
    return [(*dims[:-1], *count)] * 2


def _approx_top_k(p: Propagation, op: ir.OpView) -> list[Dims]:
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


RULES: dict[str, Rule] = {
    "@ApproxTopK": _approx_top_k,
    "@stablehlo.dynamic_approx_top_k": _approx_top_k,
    "@stablehlo.dynamic_top_k": _top_k,
}
