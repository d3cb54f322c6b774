# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.definition import OpDef, define
from shlo_disc.shape_dialect.ops.element_types import ALL, REAL
from shlo_disc.shape_dialect.ops.elementwise import check_body, check_called_body
from shlo_disc.shape_dialect.ops.lapack_sizes import shape_operands
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
    positions = shape_operands(op)
    if not positions:
        axis = ir.IntegerAttr(ir.DictAttr(op.attributes["mhlo.backend_config"])["reduction_dim"]).value
        tensor, dims = ir.RankedTensorType(op.results[0].type), dims_of(op.operands[0])
        if tensor.is_dynamic_dim(axis):
            raise DataDependentSize
        count = Expr.const(tensor.shape[axis])
        p.fits([count], dims[axis : axis + 1], op)
        return [(*dims[:axis], count, *dims[axis + 1 :])] * len(op.results)
    shapes = [p.sizes(op.operands[position]) for position in positions]
    for shape in shapes:
        p.fits(shape, dims_of(op.operands[0]), op)
    return shapes


def _check_approx_top_k(op: ir.OpView) -> str | None:
    name = "mhlo.backend_config"
    stated = name in op.attributes and isinstance(op.attributes[name], ir.DictAttr)
    stated = stated and "reduction_dim" in op.attributes[name]
    if not stated:
        return "a top-k that does not name its dimension has no lowering"
    selected = list(op.operands)[: len(op.results)]
    if len({ir.RankedTensorType(v.type).rank for v in (*selected, *op.results)}) != 1:
        return "a top-k of operands or results of several ranks has no lowering"
    return check_called_body(op)


def _check_top_k(op: ir.OpView) -> str | None:
    """The count is an attribute; so is the order, unless it is that of the largest."""
    name = "mhlo.attributes"
    stated = op.attributes[name] if name in op.attributes else ir.DictAttr.get({})
    if not isinstance(stated, ir.DictAttr) or "k" not in stated or not isinstance(stated["k"], ir.IntegerAttr):
        return "a top-k without its number k has no lowering"
    if "largest" in stated and not isinstance(stated["largest"], ir.BoolAttr):
        return "largest is true or false"
    return None


OPS = (
    *define("kernel", "sort", ALL, check=check_body, infer=same_shape, relate=all_alike, tests=_TESTS),
    OpDef("@ApproxTopK", "expand", REAL, REAL, check=_check_approx_top_k, infer=_infer_approx_top_k, tests=_TESTS),
    OpDef(
        "@stablehlo.dynamic_approx_top_k", "expand", REAL, REAL, check=_check_approx_top_k, infer=_infer_approx_top_k,
        tests=_TESTS,
    ),
    OpDef("@stablehlo.dynamic_top_k", "expand", REAL, REAL, infer=_infer_top_k, tests=_TESTS),
    OpDef("@mhlo.topk", "expand", REAL, REAL, check=_check_top_k, infer=_infer_stated_top_k, tests=_TESTS),
)  # fmt: skip
