# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bitcasts between element types of different widths: shifts of unsigned integers. The first part is the lowest."""

from __future__ import annotations

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.build import broadcast, convert
from shlo_disc.shape_dialect.dialect.types import bits_of, dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import ir, rewrite
from shlo_disc.transforms.simplify.data_movement import NO_MATCH, Pattern


def _bits(element: ir.Type) -> ir.IntegerType:
    """The unsigned integer of an element's width; a boolean is its own."""
    if bits_of(element) == 1:
        return ir.IntegerType.get_signless(1)
    return ir.IntegerType.get_unsigned(bits_of(element))


def bitcast_that_changes_rank(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """Parts are shifted out along a further axis, or the last axis is shifted together."""
    source, target = element_type_of(op.operands[0]), element_type_of(op.results[0])
    if bits_of(source) == bits_of(target):
        return NO_MATCH
    with rewriter.ip, op.location:
        value = convert(op.operands[0], _bits(source), "bitcast_convert")
        parts = _split if bits_of(source) > bits_of(target) else _join
        rewriter.replace_op(op, [convert(parts(value, op.results[0]), target, "bitcast_convert")])
    return None


def _split(value: ir.Value, result: ir.Value) -> ir.Value:
    dims, wide, part = dims_of(result), _bits(element_type_of(value)), _bits(element_type_of(result))
    axis = len(dims) - 1
    index = build.iota(dims, wide, axis)
    amount = build.multiply(index, build.constant(part.width, wide, dims))
    shifted = build.shift_right_logical(broadcast(value, dims, range(axis)), amount)
    if part.width == 1:
        shifted = build.and_(shifted, build.constant(1, wide, dims))
    return convert(shifted, part)


def _join(value: ir.Value, result: ir.Value) -> ir.Value:
    dims, part, wide = dims_of(result), _bits(element_type_of(value)), _bits(element_type_of(result))
    total = build.constant(0, wide, dims)
    for i in range(wide.width // part.width):
        word = convert(build.column(value, i), wide)
        word = build.shift_left(word, build.constant(i * part.width, wide, dims))
        total = build.or_(total, word)
    return total


PATTERNS: list[tuple[str, Pattern]] = [("stablehlo.bitcast_convert", bitcast_that_changes_rank)]
