# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that another one replaces, and what stands in their place."""

from __future__ import annotations

from shlo_disc.shape_dialect.build import broadcast
from shlo_disc.shape_dialect.dialect.types import Dims
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.ops.views import root
from shlo_disc.transforms.fusion.attention import readers


def erase_unused(call: ir.Operation) -> None:
    """Erase a call whose result nobody reads, and then those that it alone read."""
    if any(True for _ in readers(call.results[0])):
        return
    producers = [defining_op(root(v)) for v in call.operands]
    erase(call)
    for producer in dict.fromkeys(producers):
        if producer is not None:
            erase_unused(producer)


def zeros(dims: Dims, element: ir.Type) -> ir.Value:
    """Zeros of these sizes, at the insertion point."""
    scalar = ir.RankedTensorType.get([], element)
    number = ir.DenseElementsAttr.get_splat(scalar, ir.FloatAttr.get(element, 0.0))
    zero = ir.Operation.create("stablehlo.constant", results=[scalar], attributes={"value": number})
    return broadcast(zero.results[0], dims, [])


def erase(op: ir.Operation) -> None:
    """Erase an op and the reshapes of its results that nobody reads."""
    for result in op.results:
        for use in list(result.uses):
            erase(use.owner.operation)
    op.erase()
