# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorts along the last axis only."""

from __future__ import annotations

from shlo_disc.shape_dialect.build import transpose
from shlo_disc.shape_dialect.dialect.ops import integer_attr
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import ir, rewrite
from shlo_disc.transforms.simplify.data_movement import NO_MATCH, Pattern


def sort_along_last_axis(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """A sort along another axis is one between two transposes."""
    last = len(dims_of(op.operands[0])) - 1
    if "dimension" not in op.attributes:
        op.attributes["dimension"] = integer_attr(last)
    axis = ir.IntegerAttr(op.attributes["dimension"]).value % (last + 1)
    if axis == last:
        return NO_MATCH
    swapped = list(range(last + 1))
    swapped[axis], swapped[last] = last, axis
    with rewriter.ip, op.location:
        clone = op.operation.clone()
        for position, value in enumerate(op.operands):
            with ir.InsertionPoint(clone):
                clone.operands[position] = transpose(value, swapped)
            clone.results[position].set_type(clone.operands[position].type)
        clone.attributes["dimension"] = integer_attr(last)
        rewriter.replace_op(op, [transpose(r, swapped) for r in clone.results])
    return None


PATTERNS: list[tuple[str, Pattern]] = [("stablehlo.sort", sort_along_last_axis)]
