# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windowed ops whose windows are operands become the ops whose windows are attributes."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import ir, rewrite
from shlo_disc.shape_dialect.ops.values import known_elements
from shlo_disc.shape_dialect.utils.regions import called_function, copy_body
from shlo_disc.shape_dialect.utils.windows import window_attributes, window_of_operands
from shlo_disc.transforms.simplify.data_movement import NO_MATCH, Pattern


def dynamic_reduce_window(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """`custom_call @stablehlo.dynamic_reduce_window`, which jax.export emits, is a `reduce_window`."""
    if ir.StringAttr(op.attributes["call_target_name"]).value != "stablehlo.dynamic_reduce_window":
        return NO_MATCH
    window = window_of_operands([known_elements(v) for v in list(op.operands)[-5:]])
    with rewriter.ip, op.location:
        new = ir.Operation.create(
            "stablehlo.reduce_window",
            results=[r.type for r in op.results],
            operands=list(op.operands)[:-5],
            attributes=window_attributes(window, dims_of(op.operands[0]), dims_of(op.results[0])),
            regions=1,
        )
        copy_body(called_function(op).regions[0].blocks[0], new.regions[0])
        rewriter.replace_op(op, new)
    return None


PATTERNS: list[tuple[str, Pattern]] = [("stablehlo.custom_call", dynamic_reduce_window)]
