# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`map`: its body's scalar ops on whole tensors."""

from __future__ import annotations

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir, rewrite
from shlo_disc.shape_dialect.utils.regions import is_constant
from shlo_disc.transforms.simplify.data_movement import Pattern


def map_body(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """Every op of the body, at every place of the result."""
    dims = dims_of(op.results[0])
    body = op.regions[0].blocks[0]
    *inner, terminator = body.operations
    values = dict(zip(body.arguments, op.operands, strict=True))

    def everywhere(value: ir.Value) -> ir.Value:
        """The tensor for a scalar of the body: constants, in the body or before it, are broadcast."""
        if value not in values:
            values[value] = build.broadcast_scalar(value, dims)
        return values[value]

    with rewriter.ip, op.location:
        for scalar in inner:
            clone = scalar.operation.clone()
            if is_constant(scalar):
                values[scalar.results[0]] = build.broadcast_scalar(clone.results[0], dims)
                continue
            with ir.InsertionPoint(clone):
                for position, operand in enumerate(scalar.operands):
                    clone.operands[position] = everywhere(operand)
            clone.results[0].set_type(tensor_type(dims, element_type_of(scalar.results[0])))
            values[scalar.results[0]] = clone.results[0]
        rewriter.replace_op(op, [everywhere(terminator.operands[0])])
    return None


PATTERNS: list[tuple[str, Pattern]] = [("stablehlo.map", map_body)]
