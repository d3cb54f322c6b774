# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes, constants, and ops that read their operand at another index."""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.lowering.element_types import element_of
from shlo_disc.lowering.elements import Elements, Positions
from shlo_disc.lowering.index_rules.rule import Rule
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.reduction import scalar_of
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, dims_of_attr, product
from shlo_disc.shape_dialect.mlir import arith, ir, stablehlo
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.attributes import integers


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


# ---- positions that move ----------------------------------------------------------------------------------------


def _broadcast(e: Elements, op: ir.OpView, value: ir.Value, positions: Positions) -> ir.Value:
    result = dims_of(value)
    source = dims_of(op.operands[0])
    moved = []
    for size, target in zip(source, integers(op.attributes["broadcast_dimensions"]), strict=True):
        moved.append(_stretched(e, size, result[target], positions[target]))
    return e.at(op.operands[0], tuple(moved))


def _stretched(e: Elements, size: Expr, target: Expr, position: Position) -> Position:
    zero = index_constant(0)
    if size.constant == 1:
        return Position(zero)
    if size == target:
        return position
    is_one = arith.cmpi(arith.CmpIPredicate.eq, e.size_of(size), index_constant(1))
    if position.is_uniform:
        return Position(arith.select(is_one, zero, position.base))
    return Position(None, 0, e.select(is_one, zero, e.math.as_lanes(position)))


def _transpose(e: Elements, op: ir.OpView, value: ir.Value, positions: Positions) -> ir.Value:
    permutation = integers(op.attributes["permutation"])
    moved = [positions[permutation.index(i)] for i in range(len(permutation))]
    return e.at(op.operands[0], tuple(moved))


def _reverse(e: Elements, op: ir.OpView, value: ir.Value, positions: Positions) -> ir.Value:
    moved = list(positions)
    for axis in integers(op.attributes["dimensions"]):
        last = arith.subi(e.size_of(dims_of(value)[axis]), index_constant(1))
        moved[axis] = e.math.negate_from(last, positions[axis])
    return e.at(op.operands[0], tuple(moved))


def _matched_groups(source: Dims, result: Dims) -> list[tuple[range, range]]:
    """Pair runs of axes of the two shapes that hold equally many elements, cut where leading products agree.

    Behind an axis of size 0 all products are 0, which says nothing of the axes.
    """
    cuts = [(0, 0)]
    prefix_source = [product(source[:i]) for i in range(len(source) + 1)]
    prefix_result = [product(result[:j]) for j in range(len(result) + 1)]
    for i in range(1, len(source)):
        for j in range(cuts[-1][1] + 1, len(result)):
            if prefix_source[i] == prefix_result[j] and prefix_source[i].constant != 0:
                cuts.append((i, j))
                break
    cuts.append((len(source), len(result)))
    return [(range(a, c), range(b, d)) for (a, b), (c, d) in zip(cuts, cuts[1:], strict=False)]


def _reshape(e: Elements, op: ir.OpView, value: ir.Value, positions: Positions) -> ir.Value:
    source, result = dims_of(op.operands[0]), dims_of(value)
    moved: list[Position] = [Position(index_constant(0))] * len(source)
    for source_axes, result_axes in _matched_groups(source, result):
        wanted = [a for a in source_axes if source[a].constant != 1]
        given = [a for a in result_axes if result[a].constant != 1]
        if [source[a] for a in wanted] == [result[a] for a in given]:
            for a, b in zip(wanted, given, strict=True):
                moved[a] = positions[b]
            continue
        if not wanted:
            continue
        offset = e.linear_offset(tuple(positions[a] for a in given), tuple(result[a] for a in given))
        for axis in reversed(wanted[1:]):
            offset, moved[axis] = e.math.divmod(offset, e.size_of(source[axis]))
        moved[wanted[0]] = offset
    return e.at(op.operands[0], tuple(moved))


def _slice(e: Elements, op: ir.OpView, value: ir.Value, positions: Positions) -> ir.Value:
    starts, strides = integers(op.attributes["start_indices"]), integers(op.attributes["strides"])
    moved = [
        e.math.add(e.math.scale(p, index_constant(stride), stride), index_constant(start))
        for p, start, stride in zip(positions, starts, strides, strict=True)
    ]
    return e.at(op.operands[0], tuple(moved))


def _real_dynamic_slice(e: Elements, op: ir.OpView, value: ir.Value, positions: Positions) -> ir.Value:
    starts_are_data = not is_shape(op.operands[1])
    whole, part = dims_of(op.operands[0]), dims_of(value)
    moved = []
    for axis, position in enumerate(positions):
        stride = e.shape_element(op.operands[3], axis)
        start = e.shape_element(op.operands[1], axis)
        if starts_are_data:
            last = arith.muli(arith.subi(e.size_of(part[axis]), index_constant(1)), stride.base)
            top = arith.subi(arith.subi(e.size_of(whole[axis]), index_constant(1)), last)
            start = e.clamp(start, top)
        constant = known_element(op.operands[3], axis)
        moved.append(e.math.add(e.math.scale(position, stride.base, constant), start))
    return e.at(op.operands[0], tuple(moved))


def is_shape(value: ir.Value) -> bool:
    """Known from the sizes alone, and checked against them before the call."""
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.operation.name in ("disc.shape", "stablehlo.constant")


def known_element(value: ir.Value, position: int) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    if owner.operation.name == "disc.shape":
        return dims_of_attr(owner.attributes["dims"])[position].constant
    if owner.operation.name == "stablehlo.constant":
        attribute = ir.DenseElementsAttr(owner.attributes["value"])
        return int(attribute.get_splat_value().value) if attribute.is_splat else None
    return None


def scalar_starts(e: Elements, values: Sequence[ir.Value], whole: Dims, part: Dims) -> list[Position]:
    """The start of a window of size `part`, clamped so that it lies inside `whole`."""
    starts = []
    for value, size, window in zip(values, whole, part, strict=True):
        start = e.as_index(e.at(value, ()), element_of(value.type))
        starts.append(e.clamp(start, arith.subi(e.size_of(size), e.size_of(window))))
    return starts


def _dynamic_slice(e: Elements, op: ir.OpView, value: ir.Value, positions: Positions) -> ir.Value:
    starts = scalar_starts(e, list(op.operands)[1:], dims_of(op.operands[0]), dims_of(value))
    moved = tuple(e.math.add(p, s) for p, s in zip(positions, starts, strict=True))
    return e.at(op.operands[0], moved)


def _gather(e: Elements, op: ir.OpView, value: ir.Value, positions: Positions) -> ir.Value:
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    operand, indices = op.operands[0], op.operands[1]
    offset_dims = list(numbers.offset_dims)
    batch = [p for i, p in enumerate(positions) if i not in offset_dims]
    offsets = iter(positions[i] for i in offset_dims)
    dims = dims_of(operand)
    collapsed = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    moved = [Position(index_constant(0)) if a in collapsed else next(offsets) for a in range(len(dims))]
    vector_axis = numbers.index_vector_dim
    for component, axis in enumerate(numbers.start_index_map):
        where = list(batch)
        if vector_axis < len(dims_of(indices)):
            where.insert(vector_axis, Position(index_constant(component)))
        start = e.as_index(e.at(indices, tuple(where)), element_of(indices.type))
        window = _slice_size(e, op, axis)
        start = e.clamp(start, arith.subi(e.size_of(dims[axis]), window))
        moved[axis] = e.math.add(moved[axis], start)
    for axis, indices_axis in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
        moved[axis] = batch[indices_axis - (indices_axis > vector_axis)]
    return e.at(operand, tuple(moved))


def _slice_size(e: Elements, op: ir.OpView, axis: int) -> ir.Value:
    if op.operation.name == "stablehlo.dynamic_gather":
        return e.shape_element(op.operands[2], axis).base
    return index_constant(integers(op.attributes["slice_sizes"])[axis])


RULES: dict[str, Rule] = {
    "disc.shape": _shape,
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.constant": _constant,
    "stablehlo.dynamic_broadcast_in_dim": _broadcast,
    "stablehlo.dynamic_gather": _gather,
    "stablehlo.dynamic_iota": _iota,
    "stablehlo.dynamic_reshape": _reshape,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.gather": _gather,
    "stablehlo.iota": _iota,
    "stablehlo.real_dynamic_slice": _real_dynamic_slice,
    "stablehlo.reshape": _reshape,
    "stablehlo.reverse": _reverse,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
}
