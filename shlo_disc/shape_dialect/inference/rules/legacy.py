# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Legacy ops: those of older StableHLO versions."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.inference.propagation import Propagation, Rule
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.attributes import integers


def _broadcast(p: Propagation, op: ir.OpView) -> list[Dims]:
    return [(*map(Expr.const, integers(op.attributes["broadcast_sizes"])), *dims_of(op.operands[0]))]


def _dot(p: Propagation, op: ir.OpView) -> list[Dims]:
    lhs, rhs = (dims_of(v) for v in op.operands)
    p.equal(lhs[-1], rhs[0], op)
    return [lhs[:-1] + rhs[1:]]


def _einsum(p: Propagation, op: ir.OpView) -> list[Dims]:
    """A letter is one size wherever it stands."""
    *terms, result = ir.StringAttr(op.attributes["einsum_config"]).value.replace("->", ",").split(",")
    sizes: dict[str, Expr] = {}
    for term, operand in zip(terms, op.operands, strict=True):
        for letter, size in zip(term, dims_of(operand), strict=True):
            p.equal(sizes.setdefault(letter, size), size, op)
    return [tuple(sizes[letter] for letter in result)]


def _torch_index_select(p: Propagation, op: ir.OpView) -> list[Dims]:
    operand, index = dims_of(op.operands[0]), dims_of(op.operands[1])
    axis, batch = (ir.IntegerAttr(op.attributes[name]).value for name in ("dim", "batch_dims"))
    for a, b in zip(operand[:batch], index[:batch], strict=True):
        p.equal(a, b, op)
    return [(*operand[:axis], *index[batch:], *operand[axis + 1 :])]


RULES: dict[str, Rule] = {
    "stablehlo.broadcast": _broadcast,
    "stablehlo.dot": _dot,
    "stablehlo.einsum": _einsum,
    "stablehlo.torch_index_select": _torch_index_select,
    "stablehlo.unary_einsum": _einsum,
}
