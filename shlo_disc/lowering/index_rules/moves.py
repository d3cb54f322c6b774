# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that compute nothing: reads by index maps, positions, sizes and constants.

An index map becomes position arithmetic on the reader's index, and a select between its reads, each of which loads only
where its outcome is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shlo_disc.lowering.element_types import element_of
from shlo_disc.lowering.elements import Elements, Positions
from shlo_disc.lowering.index_rules.rule import Rule
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.reduction import scalar_of
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, dims_of_attr
from shlo_disc.shape_dialect.mlir import arith, ir
from shlo_disc.shape_dialect.ops import INDEX_MAPS
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.ops.index_maps import (
    ONE,
    ZERO,
    Amount,
    Coordinate,
    Entry,
    IndexMap,
    Read,
    Regrouped,
    Start,
)
from shlo_disc.shape_dialect.symbolic.expr import Expr


def _constant(e: Elements, op: ir.OpView, value: ir.Value, positions: Positions) -> ir.Value:
    return scalar_of(ir.DenseElementsAttr(op.attributes["value"]), element_of(value.type))


def _shape(e: Elements, op: ir.OpView, value: ir.Value, positions: Positions) -> ir.Value:
    element = element_of(value.type)
    sizes = [e.position_value(Position(e.size_of(d)), element) for d in dims_of_attr(op.attributes["dims"])]
    if not positions:
        return sizes[0]
    result = sizes[0]
    for i, size in enumerate(sizes[1:], 1):
        result = e.select(e.math.compare(arith.CmpIPredicate.eq, positions[0], index_constant(i)), size, result)
    return result


def _iota(e: Elements, op: ir.OpView, value: ir.Value, positions: Positions) -> ir.Value:
    axis = ir.IntegerAttr(op.attributes["iota_dimension"]).value
    return e.position_value(positions[axis], element_of(value.type))


# ---- index maps -------------------------------------------------------------------------------------------------


def _indexed(map_of: Callable[[ir.OpView], IndexMap]) -> Rule:
    def rule(e: Elements, op: ir.OpView, value: ir.Value, positions: Positions) -> ir.Value:
        return _read(e, op, map_of(op), 0, positions)

    return rule


def _read(e: Elements, op: ir.OpView, reads: IndexMap, number: int, positions: Positions) -> ir.Value:
    """The first of the reads from `number` on that lies inside of its operand."""
    read = reads[number]
    operand = op.operands[read.operand]
    places, inside = _places(e, op, read, positions)
    if read.until is not None:
        size = e.size_of(dims_of(operand)[read.until])
        inside = e.math.compare(arith.CmpIPredicate.slt, positions[read.until], size)
        rest = e.math.add(positions[read.until], arith.subi(index_constant(0), size))
        positions = (*positions[: read.until], rest, *positions[read.until + 1 :])
    if inside is None:
        return e.at(operand, places)
    type_ = element_of(op.results[0].type).register()
    if any(not p.is_uniform for p in positions):
        type_ = ir.VectorType.get([e.width], type_)
    return e.where(inside, lambda: e.at(operand, places), lambda: _read(e, op, reads, number + 1, positions), type_)


def _places(e: Elements, op: ir.OpView, read: Read, positions: Positions) -> tuple[Positions, ir.Value | None]:
    """The position of a read in its operand, and the condition that it lies inside; None where it always does."""
    dims = dims_of(op.operands[read.operand])
    regrouped: dict[int, Position] = {}
    places = []
    inside: ir.Value | None = None
    for axis, coordinate in enumerate(read.at):
        if isinstance(coordinate, Regrouped):
            if axis not in regrouped:
                regrouped |= _regrouped(e, coordinate, positions, dims, dims_of(op.results[0]))
            places.append(regrouped[axis])
            continue
        place = _before_step(e, op, coordinate, dims[axis], positions)
        if axis in read.within:
            place, here = _stepped(e, op, coordinate, dims[axis], place)
            inside = here if inside is None else _and(e, inside, here)
        places.append(place)
    return tuple(places), inside


def _before_step(e: Elements, op: ir.OpView, c: Coordinate, size: Expr, positions: Positions) -> Position:
    """The position before it is divided by the coordinate's step."""
    place = Position(index_constant(0)) if c.axis is None else positions[c.axis]
    if c.one is not None:
        place = _broadcast_position(e, c.one, place)
    if c.is_mirrored:
        place = e.math.negate_from(arith.subi(e.size_of(size), index_constant(1)), place)
    if c.stride != ONE:
        place = e.math.scale(place, _amount(e, op, c.stride), _constant_of(op, c.stride))
    if c.minus != ZERO:
        start = _start(e, op, c.minus, positions)
        place = e.math.add(place, e.math.negate_from(index_constant(0), start))
    return place if c.plus == ZERO else e.math.add(place, _start(e, op, c.plus, positions))


def _stepped(e: Elements, op: ir.OpView, c: Coordinate, size: Expr, place: Position) -> tuple[Position, ir.Value]:
    """The position of an element, and the condition that there is one."""
    zero = index_constant(0)
    inside = e.math.compare(arith.CmpIPredicate.sge, place, zero)
    if c.step != ONE:
        place, rest = e.math.divmod(place, _amount(e, op, c.step))
        inside = _and(e, inside, e.math.compare(arith.CmpIPredicate.eq, rest, zero))
    return place, _and(e, inside, e.math.compare(arith.CmpIPredicate.slt, place, e.size_of(size)))


def _and(e: Elements, a: ir.Value, b: ir.Value) -> ir.Value:
    if isinstance(a.type, ir.VectorType) or isinstance(b.type, ir.VectorType):
        a, b = e.splat(a), e.splat(b)
    return arith.andi(a, b)


def _broadcast_position(e: Elements, size: Expr, position: Position) -> Position:
    """The position where the size is not 1, and else 0."""
    zero = index_constant(0)
    is_one = arith.cmpi(arith.CmpIPredicate.eq, e.size_of(size), index_constant(1))
    if position.is_uniform:
        return Position(arith.select(is_one, zero, position.base))
    return Position(None, 0, e.select(is_one, zero, e.math.as_lanes(position)))


def _regrouped(e: Elements, c: Regrouped, positions: Positions, source: Dims, result: Dims) -> dict[int, Position]:
    """The positions along a group of axes of a reshape's operand."""
    offset = e.linear_offset(tuple(positions[a] for a in c.axes), tuple(result[a] for a in c.axes))
    found = {}
    for axis in reversed(c.group[1:]):
        offset, found[axis] = e.math.divmod(offset, e.size_of(source[axis]))
    return {**found, c.group[0]: offset}


def _constant_of(op: ir.OpView, amount: Amount) -> int | None:
    """The number that an amount always is."""
    if not isinstance(amount, Entry):
        return amount.constant
    shape = defining_op(op.operands[amount.operand])
    if shape is None or shape.name != "disc.shape":
        return None
    entry = dims_of_attr(shape.attributes["dims"])[amount.number].constant
    return None if entry is None else entry + amount.more


def _amount(e: Elements, op: ir.OpView, amount: Amount) -> ir.Value:
    if isinstance(amount, Entry):
        value = e.shape_element(op.operands[amount.operand], amount.number).base
        return arith.addi(value, index_constant(amount.more)) if amount.more else value
    return e.size_of(amount)


def _start(e: Elements, op: ir.OpView, amount: Amount | Start, positions: Positions) -> Position:
    if not isinstance(amount, Start):
        return Position(_amount(e, op, amount))
    indices = op.operands[amount.operand]
    at = tuple(_before_step(e, op, c, size, positions) for c, size in zip(amount.at, dims_of(indices), strict=True))
    start = e.as_index(e.at(indices, at), element_of(indices.type))
    if amount.stride == ONE:
        return e.clamp(start, arith.subi(e.size_of(amount.size), _amount(e, op, amount.extent)))
    one = index_constant(1)
    last = arith.muli(arith.subi(_amount(e, op, amount.extent), one), _amount(e, op, amount.stride))
    return e.clamp(start, arith.subi(arith.subi(e.size_of(amount.size), one), last))


def window_starts(e: Elements, values: Sequence[ir.Value], whole: Dims, part: Dims) -> list[Position]:
    """The starts, one scalar an axis, of a window of sizes `part`, clamped so that it lies inside `whole`."""
    starts = []
    for value, size, window in zip(values, whole, part, strict=True):
        start = e.as_index(e.at(value, ()), element_of(value.type))
        starts.append(e.clamp(start, arith.subi(e.size_of(size), e.size_of(window))))
    return starts


RULES: dict[str, Rule] = {
    "disc.shape": _shape,
    "stablehlo.constant": _constant,
    "stablehlo.dynamic_iota": _iota,
    "stablehlo.iota": _iota,
    **{name: _indexed(map_of) for name, map_of in INDEX_MAPS.items()},
}
