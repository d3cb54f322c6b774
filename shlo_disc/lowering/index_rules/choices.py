# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that read one operand or another, by where the index lies."""

from __future__ import annotations

from shlo_disc.lowering.elements import Elements, Positions
from shlo_disc.lowering.index_rules.movement import known_element, scalar_starts
from shlo_disc.lowering.index_rules.rule import Rule
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import arith, ir
from shlo_disc.shape_dialect.utils.attributes import integers


def _inside(e: Elements, p: Position, low: ir.Value | None, high: ir.Value) -> ir.Value:
    below = e.math.compare(arith.CmpIPredicate.slt, p, high)
    if low is None:
        return below
    return _and(e, e.math.compare(arith.CmpIPredicate.sge, p, low), below)


def _and(e: Elements, a: ir.Value, b: ir.Value) -> ir.Value:
    if isinstance(a.type, ir.VectorType) or isinstance(b.type, ir.VectorType):
        a, b = e.splat(a), e.splat(b)
    return arith.andi(a, b)


def _concatenate(e: Elements, op: ir.OpView, value: ir.Value, positions: Positions) -> ir.Value:
    axis = ir.IntegerAttr(op.attributes["dimension"]).value
    operands = list(op.operands)

    def choose(index: int, position: Position) -> ir.Value:
        operand = operands[index]
        here = (*positions[:axis], position, *positions[axis + 1 :])
        if index == len(operands) - 1:
            return e.at(operand, here)
        size = e.size_of(dims_of(operand)[axis])
        inside = _inside(e, position, None, size)
        rest = e.math.add(position, arith.subi(index_constant(0), size))
        return e.where(inside, lambda: e.at(operand, here), lambda: choose(index + 1, rest))

    return choose(0, positions[axis])


def _pad_amounts(e: Elements, op: ir.OpView, axis: int) -> tuple[ir.Value, ir.Value, int | None]:
    if op.operation.name == "stablehlo.pad":
        low, interior = (integers(op.attributes[n])[axis] for n in ("edge_padding_low", "interior_padding"))
        return index_constant(low), index_constant(interior + 1), interior + 1
    low_value = e.shape_element(op.operands[2], axis).base
    interior_value = e.shape_element(op.operands[4], axis).base
    known = known_element(op.operands[4], axis)
    step = arith.addi(interior_value, index_constant(1))
    return low_value, step, None if known is None else known + 1


def _pad(e: Elements, op: ir.OpView, value: ir.Value, positions: Positions) -> ir.Value:
    source = dims_of(op.operands[0])
    zero = index_constant(0)
    condition: ir.Value | None = None
    moved = []
    for axis, position in enumerate(positions):
        low, step, known_step = _pad_amounts(e, op, axis)
        place = e.math.add(position, arith.subi(zero, low))
        inside = e.math.compare(arith.CmpIPredicate.sge, place, zero)
        if known_step != 1:
            place, rest = e.math.divmod(place, step)
            inside = _and(e, inside, e.math.compare(arith.CmpIPredicate.eq, rest, zero))
        inside = _and(e, inside, e.math.compare(arith.CmpIPredicate.slt, place, e.size_of(source[axis])))
        condition = inside if condition is None else _and(e, condition, inside)
        moved.append(place)
    if condition is None:
        return e.at(op.operands[0], ())
    return e.where(condition, lambda: e.at(op.operands[0], tuple(moved)), lambda: e.at(op.operands[1], ()))


def _dynamic_update_slice(e: Elements, op: ir.OpView, value: ir.Value, positions: Positions) -> ir.Value:
    operand, update = op.operands[0], op.operands[1]
    whole, part = dims_of(operand), dims_of(update)
    starts = scalar_starts(e, list(op.operands)[2:], whole, part)
    zero = index_constant(0)
    condition: ir.Value | None = None
    moved = []
    for position, start, size in zip(positions, starts, part, strict=True):
        place = e.math.add(position, arith.subi(zero, start.base))
        inside = _inside(e, place, zero, e.size_of(size))
        condition = inside if condition is None else _and(e, condition, inside)
        moved.append(place)
    if condition is None:
        return e.at(update, ())
    return e.where(condition, lambda: e.at(update, tuple(moved)), lambda: e.at(operand, positions))


RULES: dict[str, Rule] = {
    "stablehlo.concatenate": _concatenate,
    "stablehlo.dynamic_pad": _pad,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.pad": _pad,
}
