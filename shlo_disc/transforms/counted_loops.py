# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that count from 0 up to a size, as scans do."""

from __future__ import annotations

from typing import NamedTuple

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.expr import Expr
from shlo_disc.shape_dialect.regions import constant_of, nested_blocks, terminator_of
from shlo_disc.shape_dialect.types import dims_of, dims_of_attr, element_type_of

Affine = tuple[int, Expr]
"""`factor * counter + offset`."""

ZERO: Affine = (0, Expr.const(0))
STEP: Affine = (1, Expr.const(1))


class Count(NamedTuple):
    """The position of the counter among the carried values, and the number of iterations."""

    position: int
    trip: Expr


def count_of(loop: ir.OpView) -> Count | None:
    """The counter and the number of iterations of a loop, when they are known from the sizes."""
    condition, body = nested_blocks(loop)
    test = _defining(terminator_of(condition).operands[0])
    if test is None or test.name != "stablehlo.compare" or "LT" not in str(test.attributes["comparison_direction"]):
        return None
    arguments = list(condition.arguments)
    bound = affine(test.operands[1], None)
    if test.operands[0] not in arguments or bound is None:
        return None
    position = arguments.index(test.operands[0])
    start = affine(loop.operands[position], None)
    following = affine(terminator_of(body).operands[position], body.arguments[position])
    return Count(position, bound[1]) if (start, following) == (ZERO, STEP) else None


def affine(value: ir.Value, counter: ir.Value | None) -> Affine | None:
    """An integer scalar in terms of a counter; None when it is anything else. Sizes and places fit 32 bits."""
    if counter is not None and value == counter:
        return 1, Expr.const(0)
    op = _defining(value)
    if op is None or dims_of(value):
        return None
    constant = constant_of(value)
    if constant is not None:
        number = ir.DenseElementsAttr(constant.attributes["value"]).get_splat_value().value
        return (0, Expr.const(number)) if isinstance(number, int) else None
    if op.name == "disc.shape":
        return 0, dims_of_attr(op.attributes["dims"])[0]
    if op.name == "stablehlo.convert":
        types = {str(element_type_of(v)) for v in (op.operands[0], value)}
        return affine(op.operands[0], counter) if types <= {"i32", "i64"} else None
    if op.name not in ("stablehlo.add", "stablehlo.subtract"):
        return None
    left, right = (affine(v, counter) for v in op.operands)
    if left is None or right is None:
        return None
    sign = 1 if op.name == "stablehlo.add" else -1
    return left[0] + sign * right[0], left[1] + sign * right[1]


def _defining(value: ir.Value) -> ir.Operation | None:
    return None if isinstance(value.owner, ir.Block) else value.owner.operation
