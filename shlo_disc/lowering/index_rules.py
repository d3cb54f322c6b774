# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which elements of its operands an op needs for an element of its result: one row an op."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shlo_disc.lowering.elements import Elements, Positions
from shlo_disc.lowering.elementwise import Element, convert, element_of, round_to
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.reduction import Combiner, scalar_of
from shlo_disc.mlir import arith, ir, math, scf, stablehlo
from shlo_disc.shape_dialect.expr import Expr
from shlo_disc.shape_dialect.propagate import integers
from shlo_disc.shape_dialect.types import Dims, dims_of, dims_of_attr, product

Rule = Callable[[Elements, ir.OpView, ir.Value, Positions], ir.Value]


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
    """Pair runs of axes of the two shapes that hold equally many elements, cut where leading products agree."""
    cuts = [(0, 0)]
    prefix_source = [product(source[:i]) for i in range(len(source) + 1)]
    prefix_result = [product(result[:j]) for j in range(len(result) + 1)]
    for i in range(1, len(source)):
        for j in range(cuts[-1][1] + 1, len(result)):
            if prefix_source[i] == prefix_result[j]:
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
    starts_are_data = not _is_shape(op.operands[1])
    whole, part = dims_of(op.operands[0]), dims_of(value)
    moved = []
    for axis, position in enumerate(positions):
        stride = e.shape_element(op.operands[3], axis)
        start = e.shape_element(op.operands[1], axis)
        if starts_are_data:
            last = arith.muli(arith.subi(e.size_of(part[axis]), index_constant(1)), stride.base)
            top = arith.subi(arith.subi(e.size_of(whole[axis]), index_constant(1)), last)
            start = e.clamp(start, top)
        constant = _known_element(op.operands[3], axis)
        moved.append(e.math.add(e.math.scale(position, stride.base, constant), start))
    return e.at(op.operands[0], tuple(moved))


def _is_shape(value: ir.Value) -> bool:
    """Known from the sizes alone, and checked against them before the call."""
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.operation.name in ("disc.shape", "stablehlo.constant")


def _known_element(value: ir.Value, position: int) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    if owner.operation.name == "disc.shape":
        return dims_of_attr(owner.attributes["dims"])[position].constant
    if owner.operation.name == "stablehlo.constant":
        attribute = ir.DenseElementsAttr(owner.attributes["value"])
        return int(attribute.get_splat_value().value) if attribute.is_splat else None
    return None


def _scalar_starts(e: Elements, values: Sequence[ir.Value], whole: Dims, part: Dims) -> list[Position]:
    """The start of a window of size `part`, clamped so that it lies inside `whole`."""
    starts = []
    for value, size, window in zip(values, whole, part, strict=True):
        start = e.as_index(e.at(value, ()), element_of(value.type))
        starts.append(e.clamp(start, arith.subi(e.size_of(size), e.size_of(window))))
    return starts


def _dynamic_slice(e: Elements, op: ir.OpView, value: ir.Value, positions: Positions) -> ir.Value:
    starts = _scalar_starts(e, list(op.operands)[1:], dims_of(op.operands[0]), dims_of(value))
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


# ---- choices ------------------------------------------------------------------------------------------------------


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
    known = _known_element(op.operands[4], axis)
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
    starts = _scalar_starts(e, list(op.operands)[2:], whole, part)
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


# ---- loops --------------------------------------------------------------------------------------------------------


def nest(
    e: Elements,
    sizes: Sequence[ir.Value],
    start: list[ir.Value],
    body: Callable[[list[ir.Value], list[ir.Value]], list[ir.Value]],
) -> list[ir.Value]:
    """A loop nest over `sizes` carrying `start`; `body(indices, carried)` gives the next carried values."""

    def level(depth: int, indices: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
        if depth == len(sizes):
            return body(indices, carried)
        loop = scf.ForOp(index_constant(0), sizes[depth], index_constant(1), carried)
        with ir.InsertionPoint(loop.body), e.scope():
            scf.yield_(level(depth + 1, [*indices, loop.induction_variable], list(loop.inner_iter_args)))
        return list(loop.results)

    return level(0, [], start)


def _reduce(e: Elements, op: ir.OpView, value: ir.Value, positions: Positions) -> ir.Value:
    count = len(op.operands) // 2
    inputs, inits = list(op.operands)[:count], list(op.operands)[count:]
    reduced = sorted(integers(op.attributes["dimensions"]))
    dims = dims_of(inputs[0])
    combiner = Combiner(op, e.elementwise)
    start = [e.at(v, ()) for v in inits]
    if any(not p.is_uniform for p in positions):
        start = [e.splat(v) for v in start]

    def body(indices: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
        kept, inner = iter(positions), iter(indices)
        where = tuple(Position(next(inner)) if a in reduced else next(kept) for a in range(len(dims)))
        elements = [e.at(v, where) for v in inputs]
        if any(isinstance(c.type, ir.VectorType) for c in carried):
            elements = [e.splat(v) for v in elements]
        return combiner.combine(carried, elements)

    results = combiner.rounded(nest(e, [e.size_of(dims[a]) for a in reduced], start, body))
    return results[list(op.results).index(value)]


def _dot_general(e: Elements, op: ir.OpView, value: ir.Value, positions: Positions) -> ir.Value:
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    lhs, rhs = op.operands[0], op.operands[1]
    element, result = element_of(lhs.type), element_of(value.type)
    lhs_batch, rhs_batch = list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)
    lhs_inner, rhs_inner = list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)
    lhs_free = [a for a in range(len(dims_of(lhs))) if a not in {*lhs_batch, *lhs_inner}]
    rhs_free = [a for a in range(len(dims_of(rhs))) if a not in {*rhs_batch, *rhs_inner}]
    batch, rest = positions[: len(lhs_batch)], positions[len(lhs_batch) :]
    rows, columns = rest[: len(lhs_free)], rest[len(lhs_free) :]
    accumulator = _accumulator(element, result)

    def place(
        batch_axes: list[int], free_axes: list[int], free: Positions, inner_axes: list[int], indices: list[ir.Value]
    ) -> Positions:
        where = dict(zip(batch_axes, batch, strict=True)) | dict(zip(free_axes, free, strict=True))
        where |= {a: Position(i) for a, i in zip(inner_axes, indices, strict=True)}
        return tuple(where[a] for a in range(len(where)))

    def body(indices: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
        a = e.at(lhs, place(lhs_batch, lhs_free, rows, lhs_inner, indices))
        b = e.at(rhs, place(rhs_batch, rhs_free, columns, rhs_inner, indices))
        a, b = (_widen(e, v, element, accumulator, carried[0]) for v in (a, b))
        return [_multiply_add(a, b, carried[0], accumulator)]

    start = _zero(accumulator)
    if any(not p.is_uniform for p in positions):
        start = e.splat(start)
    sizes = [e.size_of(dims_of(lhs)[a]) for a in lhs_inner]
    (total,) = nest(e, sizes, [start], body)
    return round_to(convert(total, accumulator, result), result)


def _accumulator(element: Element, result: Element) -> Element:
    if element.is_half:
        return Element("f32") if result.name != "f64" else result
    return result if result.width > element.width else element


def _widen(e: Elements, value: ir.Value, element: Element, accumulator: Element, carried: ir.Value) -> ir.Value:
    held = Element("f32") if element.is_half else element
    wide = convert(value, held, accumulator) if held.name != accumulator.name else value
    return e.splat(wide) if isinstance(carried.type, ir.VectorType) else wide


def _zero(element: Element) -> ir.Value:
    type_ = element.register()
    if isinstance(type_, ir.IntegerType):
        return arith.constant(type_, 0)
    return arith.constant(type_, 0.0)


def _multiply_add(a: ir.Value, b: ir.Value, total: ir.Value, element: Element) -> ir.Value:
    if element.is_float:
        return math.fma(a, b, total)
    if element.is_bool:
        return arith.ori(total, arith.andi(a, b))
    return arith.addi(total, arith.muli(a, b))


INDEX_RULES: dict[str, Rule] = {
    "disc.shape": _shape,
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.constant": _constant,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.dynamic_broadcast_in_dim": _broadcast,
    "stablehlo.dynamic_gather": _gather,
    "stablehlo.dynamic_iota": _iota,
    "stablehlo.dynamic_pad": _pad,
    "stablehlo.dynamic_reshape": _reshape,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.gather": _gather,
    "stablehlo.iota": _iota,
    "stablehlo.pad": _pad,
    "stablehlo.real_dynamic_slice": _real_dynamic_slice,
    "stablehlo.reduce": _reduce,
    "stablehlo.reshape": _reshape,
    "stablehlo.reverse": _reverse,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
}

__all__ = ["INDEX_RULES", "nest"]
