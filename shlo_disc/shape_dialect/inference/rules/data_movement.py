# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that move elements: the sizes of windows, pads, concatenations and gathers."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.inference.propagation import Propagation, Rule
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.shape_dialect.symbolic.facts import Relation
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.shape_dialect.utils.op_sets import BARRIER


def _transpose(p: Propagation, op: ir.OpView) -> list[Dims]:
    source = dims_of(op.operands[0])
    return [tuple(source[i] for i in integers(op.attributes["permutation"]))]


def _reshape(p: Propagation, op: ir.OpView) -> list[Dims]:
    result = dims_of(op.results[0])
    p.equal(product(dims_of(op.operands[0])), product(result), op)
    return [result]


def _dynamic_reshape(p: Propagation, op: ir.OpView) -> list[Dims]:
    result = p.sizes(op.operands[1])
    p.equal(product(dims_of(op.operands[0])), product(result), op)
    return [result]


def _slice(p: Propagation, op: ir.OpView) -> list[Dims]:
    names = ("start_indices", "limit_indices", "strides")
    starts, limits, strides = (integers(op.attributes[n]) for n in names)
    p.fits((Expr.const(n) for n in limits), dims_of(op.operands[0]), op)
    bounds = zip(starts, limits, strides, strict=True)
    return [tuple(ceildiv(Expr.const(limit - start), stride) for start, limit, stride in bounds)]


def _real_dynamic_slice(p: Propagation, op: ir.OpView) -> list[Dims]:
    strides = p.sizes(op.operands[3])
    for stride in strides:
        p.require(Relation.ge(stride, 1), op)
    starts = p.values.get(op.operands[1])
    extents = None if starts else _extents_from_data(p, op)
    if extents is None:
        starts = p.sizes(op.operands[1])
        limits = p.sizes(op.operands[2])
        extents = tuple(limit - start for start, limit in zip(starts, limits, strict=True))
        for start, extent in zip(starts, extents, strict=True):
            p.require(Relation.ge(start, 0), op)
            p.require(Relation.ge(extent, 0), op)
        p.fits(limits, dims_of(op.operands[0]), op)
    return [tuple(ceildiv(extent, stride) for extent, stride in zip(extents, strides, strict=True))]


def _extents_from_data(p: Propagation, op: ir.OpView) -> Dims | None:
    """The `sizes` of a slice from `start` to `start + sizes`, where `start` is data (jax.lax.dynamic_slice)."""
    start, limit = op.operands[1], op.operands[2]
    addition = limit.owner
    if isinstance(addition, ir.Block) or addition.operation.name != "stablehlo.add":
        return None
    operands = list(addition.operands)
    if start not in operands:
        return None
    operands.remove(start)
    extents = p.sizes(operands[0])
    for extent in extents:
        p.require(Relation.ge(extent, 0), op)
    p.fits(extents, dims_of(op.operands[0]), op)
    return extents


def _dynamic_slice(p: Propagation, op: ir.OpView) -> list[Dims]:
    sizes = tuple(Expr.const(s) for s in integers(op.attributes["slice_sizes"]))
    p.fits(sizes, dims_of(op.operands[0]), op)
    return [sizes]


def _dynamic_update_slice(p: Propagation, op: ir.OpView) -> list[Dims]:
    whole = dims_of(op.operands[0])
    p.fits(dims_of(op.operands[1]), whole, op)
    return [whole]


def _dynamic_broadcast(p: Propagation, op: ir.OpView) -> list[Dims]:
    return _stretched(p, op, p.sizes(op.operands[1]))


def _broadcast(p: Propagation, op: ir.OpView) -> list[Dims]:
    return _stretched(p, op, dims_of(op.results[0]))


def _stretched(p: Propagation, op: ir.OpView, result: Dims) -> list[Dims]:
    for size, target in zip(dims_of(op.operands[0]), integers(op.attributes["broadcast_dimensions"]), strict=True):
        if size.constant != 1 and p.facts.prove(Relation.eq(size, result[target])) is not True:
            # Either factor vanishes: the size is 1 and stretched, or it is the result's.
            p.require(Relation.eq((size - 1) * (size - result[target]), 0), op)
    return [result]


def _concatenate(p: Propagation, op: ir.OpView) -> list[Dims]:
    axis = ir.IntegerAttr(op.attributes["dimension"]).value
    shapes = [dims_of(v) for v in op.operands]
    for other in shapes[1:]:
        for i, (a, b) in enumerate(zip(shapes[0], other, strict=True)):
            if i != axis:
                p.equal(a, b, op)
    total = sum((s[axis] for s in shapes), Expr.const(0))
    return [shapes[0][:axis] + (total,) + shapes[0][axis + 1 :]]


def padded_size(size: Expr, low: Expr, high: Expr, interior: Expr) -> Expr:
    """The size after StableHLO `pad`."""
    inner = size if interior.constant == 0 else size + interior * Expr.maximum(size - 1, 0)
    return low + inner + high


def _pad(p: Propagation, op: ir.OpView) -> list[Dims]:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    amounts = [[Expr.const(i) for i in integers(op.attributes[n])] for n in names]
    return [tuple(padded_size(*column) for column in zip(dims_of(op.operands[0]), *amounts, strict=True))]


def _dynamic_pad(p: Propagation, op: ir.OpView) -> list[Dims]:
    amounts = [p.sizes(op.operands[i]) for i in (2, 3, 4)]
    for interior in amounts[2]:
        p.require(Relation.ge(interior, 0), op)
    return [tuple(padded_size(*column) for column in zip(dims_of(op.operands[0]), *amounts, strict=True))]


def _barrier(_: Propagation, op: ir.OpView) -> list[Dims]:
    return [dims_of(v) for v in op.operands]


RULES: dict[str, Rule] = {
    BARRIER: _barrier,
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.dynamic_broadcast_in_dim": _dynamic_broadcast,
    "stablehlo.dynamic_pad": _dynamic_pad,
    "stablehlo.dynamic_reshape": _dynamic_reshape,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.pad": _pad,
    "stablehlo.real_dynamic_slice": _real_dynamic_slice,
    "stablehlo.reshape": _reshape,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
}
