# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions along sizes of 1, which gradients are full of, are reshapes."""

from __future__ import annotations

import math

from shlo_disc.shape_dialect.build import view
from shlo_disc.shape_dialect.dense import array_of
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import ir, rewrite
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.shape_dialect.utils.regions import is_constant
from shlo_disc.transforms.simplify.data_movement import NO_MATCH, Pattern

_FLOATS = frozenset({"bf16", "f16", "f32", "f64"})


def reduce_of_ones(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """A reduction along sizes of 1 by an op whose neutral element is where it starts."""
    if len(op.results) != 1 or op.operands[0].type == op.results[0].type:
        return NO_MATCH
    dims = dims_of(op.operands[0])
    if any(dims[axis].constant != 1 for axis in integers(op.attributes["dimensions"])) or not starts_neutral(op):
        return NO_MATCH
    with rewriter.ip, op.location:
        rewriter.replace_op(op, [view(op.operands[0], dims_of(op.results[0]))])
    return None


def starts_neutral(op: ir.OpView) -> bool:
    """Tells whether a reduction of one tensor combines elements by one op and starts at its neutral element."""
    combining, *rest = op.regions[0].blocks[0].operations
    start = op.operands[1].owner
    if len(rest) != 1 or set(combining.operands) != set(op.regions[0].blocks[0].arguments):
        return False
    if rest[0].operands[0] != combining.results[0]:
        return False
    if isinstance(start, ir.Block) or not is_constant(start):
        return False
    neutral = neutral_of(combining.operation.name, ir.RankedTensorType(op.operands[1].type).element_type)
    return neutral is not None and array_of(start.operation).ravel()[0] == neutral


def neutral_of(name: str, element: ir.Type) -> float | None:
    """The neutral element of a combination; None where that is not known."""
    if str(element) in _FLOATS:
        known = {"add": 0.0, "multiply": 1.0, "maximum": -math.inf, "minimum": math.inf}
        return known.get(name.removeprefix("stablehlo."))
    if not isinstance(element, ir.IntegerType):
        return None
    bits = element.width
    least = 0 if element.is_unsigned or bits == 1 else -(1 << (bits - 1))
    most = least + (1 << bits) - 1
    ones = -1 if least else most
    known = {"add": 0, "multiply": 1, "maximum": least, "minimum": most, "and": ones, "or": 0, "xor": 0}
    return known.get(name.removeprefix("stablehlo."))


PATTERNS: list[tuple[str, Pattern]] = [("stablehlo.reduce", reduce_of_ones)]
