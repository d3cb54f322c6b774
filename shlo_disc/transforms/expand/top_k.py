# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The custom calls for the largest elements: a sort, of which the beginning is kept.

jax.export emits `stablehlo.dynamic_top_k` where k is symbolic, and `ApproxTopK` (`stablehlo.dynamic_approx_top_k`) for
approx_max_k and approx_min_k, which may leave elements out; as on XLA's CPU, none is left out. `mhlo.topk` is XLA's
spelling of its own op, whose k is an attribute, as is whether the largest or the smallest elements are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.ops import integer_attr
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import ir, rewrite
from shlo_disc.shape_dialect.utils.regions import called_function, copy_body
from shlo_disc.transforms.simplify.data_movement import NO_MATCH, Pattern

APPROXIMATE = ("ApproxTopK", "stablehlo.dynamic_approx_top_k")
EXACT = ("stablehlo.dynamic_top_k", "mhlo.topk")


def top_k(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """A stable sort of the elements and their indices by the call's comparator, or by their own order."""
    target = ir.StringAttr(op.attributes["call_target_name"]).value
    if target not in EXACT and target not in APPROXIMATE:
        return NO_MATCH
    results = list(op.results)
    with rewriter.ip, op.location:
        if target in EXACT:
            value = op.operands[0]
            axis = len(dims_of(value)) - 1
            operands = [value, build.iota(dims_of(value), element_type_of(results[1]), axis)]
            direction = "GT" if _is_of_largest(op) else "LT"
            ordered = _sort(operands, axis, lambda region: _in_order(operands, region, direction))
        else:
            body = called_function(op).regions[0].blocks[0]
            axis = ir.IntegerAttr(ir.DictAttr(op.attributes["mhlo.backend_config"])["reduction_dim"]).value
            ordered = _sort(list(op.operands)[: len(results)], axis, lambda region: copy_body(body, region))
        rewriter.replace_op(op, [build.leading(v, dims_of(r)) for v, r in zip(ordered, results, strict=True)])
    return None


def _sort(operands: Sequence[ir.Value], axis: int, body: Callable[[ir.Region], None]) -> list[ir.Value]:
    sort = ir.Operation.create(
        "stablehlo.sort",
        results=[v.type for v in operands],
        operands=operands,
        attributes={"dimension": integer_attr(axis), "is_stable": ir.BoolAttr.get(True)},
        regions=1,
    )
    body(sort.regions[0])
    return list(sort.results)


def _is_of_largest(op: ir.OpView) -> bool:
    name = "mhlo.attributes"
    stated = ir.DictAttr(op.attributes[name]) if name in op.attributes else ir.DictAttr.get({})
    return "largest" not in stated or bool(ir.BoolAttr(stated["largest"]).value)


def _in_order(operands: Sequence[ir.Value], region: ir.Region, direction: str) -> None:
    """Compares the first operand, floats in total order."""
    scalars = [ir.RankedTensorType.get([], element_type_of(v)) for v in operands for _ in range(2)]
    block = ir.Block.create_at_start(region, scalars)
    with ir.InsertionPoint(block):
        total = isinstance(element_type_of(operands[0]), ir.FloatType)
        left, right, *_ = block.arguments
        ir.Operation.create("stablehlo.return", operands=[build.compare(direction, left, right, total_order=total)])


PATTERNS: list[tuple[str, Pattern]] = [("stablehlo.custom_call", top_k)]
