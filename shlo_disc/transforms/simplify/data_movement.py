# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Broadcast, reshape, transpose, reverse and convert algebra.

A pattern returns None when it rewrote and True when it did not match.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from shlo_disc.shape_dialect.dialect.ops import ShapeOp
from shlo_disc.shape_dialect.dialect.types import (
    dims_attr,
    dims_of,
)
from shlo_disc.shape_dialect.mlir import ir, rewrite
from shlo_disc.shape_dialect.ops import BROADCASTS, RESHAPES
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.shape_dialect.utils.regions import constant_of
from shlo_disc.transforms.simplify.slice_gathers import ONE_SLICE, OneSlice

Pattern = Callable[[ir.OpView, rewrite.PatternRewriter], bool | None]

NO_MATCH = True


def defined_by(value: ir.Value, names: Collection[str]) -> ir.Operation | None:
    """The op that defines `value`, if it is one of `names`."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) or owner.operation.name not in names else owner.operation


def _is_static(value: ir.Value) -> bool:
    return ir.RankedTensorType(value.type).has_static_shape


def _create(op: ir.OpView, name: str, operands: list[ir.Value], attributes: dict[str, ir.Attribute]) -> ir.Operation:
    return ir.Operation.create(
        name, results=[op.results[0].type], operands=operands, attributes=attributes, loc=op.location
    )


def identity_data_movement(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """An op that moves nothing: same type in and out, and its map is the identity. A slice as large as all is all."""
    if op.operands[0].type != op.results[0].type:
        return NO_MATCH
    attributes = op.attributes
    rank = ir.RankedTensorType(op.results[0].type).rank
    for key in ("broadcast_dimensions", "permutation"):
        if key in attributes and integers(attributes[key]) != list(range(rank)):
            return NO_MATCH
    rewriter.replace_op(op, [op.operands[0]])
    return None


def static_broadcast(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """`dynamic_broadcast_in_dim` to a static shape is `broadcast_in_dim`."""
    if not _is_static(op.results[0]) or not _is_static(op.operands[0]):
        return NO_MATCH
    attributes = {"broadcast_dimensions": op.attributes["broadcast_dimensions"]}
    with rewriter.ip:
        rewriter.replace_op(op, _create(op, "stablehlo.broadcast_in_dim", [op.operands[0]], attributes))
    return None


def broadcast_of_broadcast(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """The composition of two broadcasts is one, as long as the inner one's sizes survive unchanged."""
    inner = defined_by(op.operands[0], BROADCASTS)
    if inner is None:
        return NO_MATCH
    outer_dims = integers(op.attributes["broadcast_dimensions"])
    inner_dims = integers(inner.attributes["broadcast_dimensions"])
    composed = ir.DenseI64ArrayAttr.get([outer_dims[d] for d in inner_dims])
    with rewriter.ip:
        operands = [inner.operands[0], *list(op.operands)[1:]]
        rewriter.replace_op(op, _create(op, op.operation.name, operands, {"broadcast_dimensions": composed}))
    return None


def static_reshape(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """`dynamic_reshape` to a static shape is `reshape`."""
    if not _is_static(op.results[0]) or not _is_static(op.operands[0]):
        return NO_MATCH
    with rewriter.ip:
        rewriter.replace_op(op, _create(op, "stablehlo.reshape", [op.operands[0]], {}))
    return None


def reshape_of_reshape(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """Only the last shape counts."""
    inner = defined_by(op.operands[0], RESHAPES)
    if inner is None:
        return NO_MATCH
    if op.operation.name == "stablehlo.reshape" and not _is_static(inner.operands[0]):
        return NO_MATCH
    with rewriter.ip:
        operands = [inner.operands[0], *list(op.operands)[1:]]
        rewriter.replace_op(op, _create(op, op.operation.name, operands, {}))
    return None


def transpose_of_transpose(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """The composition of two permutations is one."""
    inner = defined_by(op.operands[0], ("stablehlo.transpose",))
    if inner is None:
        return NO_MATCH
    first = integers(inner.attributes["permutation"])
    composed = ir.DenseI64ArrayAttr.get([first[i] for i in integers(op.attributes["permutation"])])
    with rewriter.ip:
        rewriter.replace_op(op, _create(op, "stablehlo.transpose", [inner.operands[0]], {"permutation": composed}))
    return None


def reverse_of_reverse(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """Two reversals are one, of the axes that only one of them reverses; of none it is the operand."""
    inner = defined_by(op.operands[0], ("stablehlo.reverse",))
    if inner is None:
        return NO_MATCH
    first, second = (set(integers(o.attributes["dimensions"])) for o in (inner, op))
    axes = sorted(first ^ second)
    source = inner.operands[0]
    if not axes and source.type == op.results[0].type:
        rewriter.replace_op(op, [source])
        return None
    with rewriter.ip:
        attributes: dict[str, ir.Attribute] = {"dimensions": ir.DenseI64ArrayAttr.get(axes)}
        rewriter.replace_op(op, _create(op, "stablehlo.reverse", [source], attributes))
    return None


def unit_broadcast_is_reshape(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """A broadcast that only inserts sizes of 1 is a reshape, which costs nothing."""
    operand_dims = dims_of(op.operands[0])
    result_dims = dims_of(op.results[0])
    kept = integers(op.attributes["broadcast_dimensions"])
    if not operand_dims or kept != sorted(kept):
        return NO_MATCH
    inserted = [d for i, d in enumerate(result_dims) if i not in kept]
    same = all(a == result_dims[i] for a, i in zip(operand_dims, kept, strict=True))
    if not same or any(d.constant != 1 for d in inserted):
        return NO_MATCH
    dynamic = len(op.operands) == 2
    with rewriter.ip:
        name = "stablehlo.dynamic_reshape" if dynamic else "stablehlo.reshape"
        rewriter.replace_op(op, _create(op, name, list(op.operands), {}))
    return None


def constant_bounds_are_shapes(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """Bounds of a slice that are constants of several values are a `disc.shape`, which a kernel knows at once."""
    found = [(i, constant_of(v)) for i, v in enumerate(op.operands) if i]
    known = {i: ir.DenseElementsAttr(c.attributes["value"]) for i, c in found if c is not None}
    known = {i: attribute for i, attribute in known.items() if not attribute.is_splat}
    if not known:
        return NO_MATCH
    operands = list(op.operands)
    with rewriter.ip:
        for i, attribute in known.items():
            dims = dims_attr([Expr.const(int(n)) for n in np.array(attribute)])
            operands[i] = ShapeOp(dims, result=operands[i].type, loc=op.location).results[0]
        rewriter.replace_op(op, _create(op, op.operation.name, operands, {}))
    return None


def gather_of_one_slice(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """A gather of a single slice at known indices, which lies inside whatever the symbols are, is a slice."""
    found = ONE_SLICE.match(lambda op: OneSlice(op, Facts()), op)
    if found is None:
        return NO_MATCH
    with rewriter.ip, op.location:
        rewriter.replace_op(op, [found.slice()])
    return None


PATTERNS: list[tuple[str, Pattern]] = [
    ("stablehlo.broadcast_in_dim", broadcast_of_broadcast),
    ("stablehlo.broadcast_in_dim", identity_data_movement),
    ("stablehlo.broadcast_in_dim", unit_broadcast_is_reshape),
    ("stablehlo.convert", identity_data_movement),
    ("stablehlo.dynamic_broadcast_in_dim", broadcast_of_broadcast),
    ("stablehlo.dynamic_broadcast_in_dim", identity_data_movement),
    ("stablehlo.dynamic_broadcast_in_dim", static_broadcast),
    ("stablehlo.dynamic_broadcast_in_dim", unit_broadcast_is_reshape),
    ("stablehlo.dynamic_reshape", identity_data_movement),
    ("stablehlo.dynamic_reshape", reshape_of_reshape),
    ("stablehlo.dynamic_reshape", static_reshape),
    ("stablehlo.dynamic_gather", gather_of_one_slice),
    ("stablehlo.gather", gather_of_one_slice),
    ("stablehlo.real_dynamic_slice", constant_bounds_are_shapes),
    ("stablehlo.real_dynamic_slice", identity_data_movement),
    ("stablehlo.reshape", identity_data_movement),
    ("stablehlo.reshape", reshape_of_reshape),
    ("stablehlo.reverse", reverse_of_reverse),
    ("stablehlo.transpose", identity_data_movement),
    ("stablehlo.transpose", transpose_of_transpose),
]
