# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that move elements without computing with them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from shlo_disc.shape_dialect.dialect.ops import integer_attr
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.definition import define, no_flops
from shlo_disc.shape_dialect.ops.dynamic_forms import DynamicForm, StatedSizes, WholeAxes, create, kept_attributes
from shlo_disc.shape_dialect.ops.element_types import ALL
from shlo_disc.shape_dialect.ops.index_maps import (
    ONE,
    ZERO,
    Amount,
    Coordinate,
    Entry,
    IndexMap,
    Read,
    Start,
    amounts,
    broadcast_coordinates,
    identity,
    reshape_coordinates,
    window_start,
)
from shlo_disc.shape_dialect.ops.propagation import Propagation, same_shape
from shlo_disc.shape_dialect.ops.size_relations import (
    Size,
    SizeRelations,
    extent,
    numbers_of,
    one_shape,
    rank,
    related,
    reshape_groups,
)
from shlo_disc.shape_dialect.ops.values import Elements, SymbolicValues, ValueRule, known_elements
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.shape_dialect.symbolic.facts import Relation
from shlo_disc.shape_dialect.utils.attributes import integers

_TESTS = "tests/run/test_ops_movement.py"
_OLD = "tests/run/test_ops_old.py"


# ---- transpose, reverse -----------------------------------------------------------------------------------------


def _infer_transpose(p: Propagation, op: ir.OpView) -> list[Dims]:
    source = dims_of(op.operands[0])
    return [tuple(source[i] for i in integers(op.attributes["permutation"]))]


def _relate_transpose(r: SizeRelations, op: ir.OpView) -> None:
    permutation = numbers_of(op, "permutation")
    r.same_axes(op.operands[0], permutation, op.results[0], range(len(permutation)))


def _map_transpose(op: ir.OpView) -> IndexMap:
    permutation = integers(op.attributes["permutation"])
    return (Read(0, tuple(Coordinate(permutation.index(axis)) for axis in range(len(permutation)))),)


def _map_reverse(op: ir.OpView) -> IndexMap:
    mirrored = set(integers(op.attributes["dimensions"]))
    axes = range(len(dims_of(op.operands[0])))
    return (Read(0, tuple(Coordinate(axis, is_mirrored=axis in mirrored) for axis in axes)),)


# ---- reshape, broadcast -----------------------------------------------------------------------------------------


def _infer_reshape(p: Propagation, op: ir.OpView) -> list[Dims]:
    return _reshaped(p, op, dims_of(op.results[0]))


def _infer_dynamic_reshape(p: Propagation, op: ir.OpView) -> list[Dims]:
    return _reshaped(p, op, p.sizes(op.operands[1]))


def _reshaped(p: Propagation, op: ir.OpView, result: Dims) -> list[Dims]:
    p.equal(product(dims_of(op.operands[0])), product(result), op)
    return [result]


def _relate_reshape(r: SizeRelations, op: ir.OpView) -> None:
    source, result = op.operands[0], op.results[0]
    for group, target in reshape_groups(ir.RankedTensorType(source.type).shape, ir.RankedTensorType(result.type).shape):
        if len(target) != 1:
            r.fix(source, group)
            r.fix(result, target)
        elif len(group) == 1:
            r.same(Size(source, group[0]), Size(result, target[0]))
        else:
            r.computed(Size(result, target[0]), [Size(source, axis) for axis in group])


def map_reshape(op: ir.OpView) -> IndexMap:
    """The index map of a reshape."""
    return (Read(0, reshape_coordinates(dims_of(op.operands[0]), dims_of(op.results[0]))),)


def _elements_of_reshape(values: SymbolicValues, op: ir.OpView) -> Elements | None:
    """The same elements, or one element repeated, as of a scalar that is broadcast."""
    source = values.get(op.operands[0])
    count = math.prod(ir.RankedTensorType(op.results[0].type).shape)
    if source is None or (len(source) != count and len(source) != 1):
        return None
    return source if len(source) == count else source * count


def _form_of_reshape(s: StatedSizes, op: ir.OpView) -> ir.Value:
    result = op.results[0]
    return create("dynamic_reshape", result.type, [op.operands[0], s.sizes(s.dims(result))])


def _infer_broadcast_in_dim(p: Propagation, op: ir.OpView) -> list[Dims]:
    return _broadcast_to(p, op, dims_of(op.results[0]))


def _infer_dynamic_broadcast_in_dim(p: Propagation, op: ir.OpView) -> list[Dims]:
    return _broadcast_to(p, op, p.sizes(op.operands[1]))


def _broadcast_to(p: Propagation, op: ir.OpView, result: Dims) -> list[Dims]:
    for size, target in zip(dims_of(op.operands[0]), integers(op.attributes["broadcast_dimensions"]), strict=True):
        if size.constant != 1 and p.facts.prove(Relation.eq(size, result[target])) is not True:
            # Either factor vanishes: the size is 1 and broadcast, or it is the result's.
            p.require(Relation.eq((size - 1) * (size - result[target]), 0), op)
    return [result]


def _relate_broadcast_in_dim(r: SizeRelations, op: ir.OpView) -> None:
    for axis, target in enumerate(numbers_of(op, "broadcast_dimensions")):
        if extent(Size(op.operands[0], axis)) > 1:
            r.same(Size(op.operands[0], axis), Size(op.results[0], target))


def map_broadcast_in_dim(op: ir.OpView) -> IndexMap:
    """The index map of a broadcast."""
    targets = integers(op.attributes["broadcast_dimensions"])
    return (Read(0, broadcast_coordinates(dims_of(op.operands[0]), dims_of(op.results[0]), targets)),)


def _elements_of_broadcast_in_dim(values: SymbolicValues, op: ir.OpView) -> Elements | None:
    rank = len(ir.RankedTensorType(op.results[0].type).shape)
    return _elements_of_reshape(values, op) if rank <= 1 else None


def _form_of_broadcast_in_dim(s: StatedSizes, op: ir.OpView) -> ir.Value:
    result, kept = op.results[0], kept_attributes(op, "broadcast_dimensions")
    return create("dynamic_broadcast_in_dim", result.type, [op.operands[0], s.sizes(s.dims(result))], kept)


def _infer_broadcast(p: Propagation, op: ir.OpView) -> list[Dims]:
    return [(*map(Expr.const, integers(op.attributes["broadcast_sizes"])), *dims_of(op.operands[0]))]


# ---- slices -----------------------------------------------------------------------------------------------------


_SLICE = ("start_indices", "limit_indices", "strides")


def _infer_slice(p: Propagation, op: ir.OpView) -> list[Dims]:
    starts, limits, strides = (integers(op.attributes[n]) for n in _SLICE)
    p.fits((Expr.const(n) for n in limits), dims_of(op.operands[0]), op)
    bounds = zip(starts, limits, strides, strict=True)
    return [tuple(ceildiv(Expr.const(limit - start), stride) for start, limit, stride in bounds)]


def _infer_real_dynamic_slice(p: Propagation, op: ir.OpView) -> list[Dims]:
    strides = p.sizes(op.operands[3])
    for stride in strides:
        p.require(Relation.ge(stride, 1), op)
    starts = p.values.get(op.operands[1])
    extents = None if starts else _extents_from_data(p, op)
    if extents is None:
        starts = p.sizes(op.operands[1])
        limits = p.sizes(op.operands[2])
        extents = tuple(limit - start for start, limit in zip(starts, limits, strict=True))
        for start, length in zip(starts, extents, strict=True):
            p.require(Relation.ge(start, 0), op)
            p.require(Relation.ge(length, 0), op)
        p.fits(limits, dims_of(op.operands[0]), op)
    return [tuple(ceildiv(length, stride) for length, stride in zip(extents, strides, strict=True))]


def _extents_from_data(p: Propagation, op: ir.OpView) -> Dims | None:
    """The `sizes` of a slice from `start` to `start + sizes`, where `start` is data (jax.lax.dynamic_slice)."""
    start, limit = op.operands[1], op.operands[2]
    addition = limit.owner
    if isinstance(addition, ir.Block) or addition.operation.name != "stablehlo.add":
        return None
    operands = list(addition.operands)
    if start not in operands:
        return None
    operands.remove(start)
    extents = p.sizes(operands[0])
    for length in extents:
        p.require(Relation.ge(length, 0), op)
    p.fits(extents, dims_of(op.operands[0]), op)
    return extents


def _relate_slice(r: SizeRelations, op: ir.OpView) -> None:
    source, result = op.operands[0], op.results[0]
    for axis, (start, limit, stride) in enumerate(zip(*(numbers_of(op, n) for n in _SLICE), strict=True)):
        whole = Size(source, axis)
        if limit != extent(whole):
            r.fix(result, [axis])
        elif (start, stride) == (0, 1):
            r.same(whole, Size(result, axis))
        else:
            r.computed(Size(result, axis), [whole])


def map_slice(op: ir.OpView) -> IndexMap:
    """The index map of a slice. A start that is data is clamped; one that is a size was checked before the call."""
    starts, strides = amounts(op, "start_indices", 1), amounts(op, "strides", 3)
    whole, part = dims_of(op.operands[0]), dims_of(op.results[0])
    found = []
    for axis, (start, stride) in enumerate(zip(starts, strides, strict=True)):
        if whole[axis] == part[axis]:
            found.append(Coordinate(axis))
        elif isinstance(start, Entry):
            at = (Coordinate(plus=Expr.const(start.number)),)
            found.append(Coordinate(axis, stride, plus=window_start(1, at, whole[axis], part[axis], stride)))
        else:
            found.append(Coordinate(axis, stride, plus=start))
    return (Read(0, tuple(found)),)


def _elements_of_slice(values: SymbolicValues, op: ir.OpView) -> Elements | None:
    source = values.get(op.operands[0])
    if source is None or len(ir.RankedTensorType(op.results[0].type).shape) != 1:
        return None
    start, limit, stride = (list(op.attributes[n])[0] for n in _SLICE)
    return source[start:limit:stride]


def _window_of_slice(op: ir.OpView) -> Dims:
    return tuple(map(Expr.const, integers(op.attributes["limit_indices"])))


def _window_of_real_dynamic_slice(op: ir.OpView) -> Dims:
    """The end of a slice; its size where its start is data, by which it is moved to lie inside."""
    if any(stride.constant != 1 for stride in known_elements(op.operands[3])):
        raise ValueError("a stride")
    limits = op.operands[2].owner
    is_known = not isinstance(limits, ir.Block) and limits.operation.name in ("disc.shape", "stablehlo.constant")
    return known_elements(op.operands[2]) if is_known else dims_of(op.results[0])


def _form_of_slice(s: StatedSizes, op: ir.OpView) -> ir.Value:
    bounds = [s.sizes(s.numbers(op, name)) for name in _SLICE]
    return create("real_dynamic_slice", op.results[0].type, [op.operands[0], *bounds])


def _same_axes(op: ir.OpView) -> list[tuple[int, int]]:
    return [(axis, axis) for axis in range(rank(op.results[0]))]


def _infer_dynamic_slice(p: Propagation, op: ir.OpView) -> list[Dims]:
    sizes = tuple(Expr.const(s) for s in integers(op.attributes["slice_sizes"]))
    p.fits(sizes, dims_of(op.operands[0]), op)
    return [sizes]


def _relate_dynamic_slice(r: SizeRelations, op: ir.OpView) -> None:
    r.fix(op.results[0])


def _map_dynamic_slice(op: ir.OpView) -> IndexMap:
    starts = _starts(dims_of(op.operands[0]), dims_of(op.results[0]), 1)
    return (Read(0, tuple(Coordinate(axis, plus=start) for axis, start in enumerate(starts))),)


def _window_of_dynamic_slice(op: ir.OpView) -> Dims:
    return dims_of(op.results[0])


def _form_of_dynamic_slice(s: StatedSizes, op: ir.OpView) -> ir.Value:
    """The start is clamped such that the slice fits, as `dynamic_slice` does."""
    operand, starts = op.operands[0], list(op.operands)[1:]
    sizes = s.numbers(op, "slice_sizes")
    kind = ir.RankedTensorType(starts[0].type)
    one = ir.RankedTensorType.get([1], kind.element_type)
    vector = ir.RankedTensorType.get([len(starts)], kind.element_type)
    parts = [create("reshape", one, [start]) for start in starts]
    start = parts[0] if len(parts) == 1 else create("concatenate", vector, parts, {"dimension": integer_attr(0)})
    extents = s.sizes(sizes, vector)
    last = s.sizes([whole - size for whole, size in zip(s.dims(operand), sizes, strict=True)], vector)
    zero = s.sizes([Expr.const(0)] * len(starts), vector)
    start = create("clamp", vector, [zero, start, last])
    limit = create("add", vector, [start, extents])
    strides = s.sizes([Expr.const(1)] * len(starts), vector)
    return create("real_dynamic_slice", op.results[0].type, [operand, start, limit, strides])


def _starts(whole: Dims, part: Dims, first: int) -> list[Amount | Start]:
    """The starts of a window, which are operands from number `first` on."""
    return [window_start(first + axis, (), *pair) for axis, pair in enumerate(zip(whole, part, strict=True))]


def _infer_dynamic_update_slice(p: Propagation, op: ir.OpView) -> list[Dims]:
    whole = dims_of(op.operands[0])
    p.fits(dims_of(op.operands[1]), whole, op)
    return [whole]


def _relate_dynamic_update_slice(r: SizeRelations, op: ir.OpView) -> None:
    r.same_shape([op.operands[0], op.results[0]])


def _window_of_dynamic_update_slice(op: ir.OpView) -> Dims:
    return dims_of(op.operands[1])


def _map_dynamic_update_slice(op: ir.OpView) -> IndexMap:
    starts = _starts(dims_of(op.operands[0]), dims_of(op.operands[1]), 2)
    at = tuple(Coordinate(axis, minus=start) for axis, start in enumerate(starts))
    within = tuple(axis for axis, c in enumerate(at) if not c.is_identity)
    update = Read(1, at, within)
    return (update, Read(0, identity(len(at)))) if within else (update,)


# ---- concatenate, pad -------------------------------------------------------------------------------------------


def _infer_concatenate(p: Propagation, op: ir.OpView) -> list[Dims]:
    axis = ir.IntegerAttr(op.attributes["dimension"]).value
    shapes = [dims_of(v) for v in op.operands]
    for other in shapes[1:]:
        for i, (a, b) in enumerate(zip(shapes[0], other, strict=True)):
            if i != axis:
                p.equal(a, b, op)
    total = sum((s[axis] for s in shapes), Expr.const(0))
    return [shapes[0][:axis] + (total,) + shapes[0][axis + 1 :]]


def _relate_concatenate(r: SizeRelations, op: ir.OpView) -> None:
    axis = ir.IntegerAttr(op.attributes["dimension"]).value
    others = [i for i in range(rank(op.results[0])) if i != axis]
    for operand in op.operands:
        r.same_axes(operand, others, op.results[0], others)
    r.computed(Size(op.results[0], axis), [Size(v, axis) for v in op.operands])


def _map_concatenate(op: ir.OpView) -> IndexMap:
    axis = ir.IntegerAttr(op.attributes["dimension"]).value
    at, last = identity(len(dims_of(op.results[0]))), len(op.operands) - 1
    return tuple(Read(number, at, until=axis if number < last else None) for number in range(last + 1))


def _elements_of_concatenate(values: SymbolicValues, op: ir.OpView) -> Elements | None:
    operands = values.operands(op)
    if operands is None or ir.IntegerAttr(op.attributes["dimension"]).value != 0:
        return None
    return tuple(e for o in operands for e in o)


_PADDING = ("edge_padding_low", "edge_padding_high", "interior_padding")


def padded_size(size: Expr, low: Expr, high: Expr, interior: Expr) -> Expr:
    """The size after StableHLO `pad`."""
    inner = size if interior.constant == 0 else size + interior * Expr.maximum(size - 1, 0)
    return low + inner + high


def _infer_pad(p: Propagation, op: ir.OpView) -> list[Dims]:
    return _padded(op, [[Expr.const(i) for i in integers(op.attributes[n])] for n in _PADDING])


def _infer_dynamic_pad(p: Propagation, op: ir.OpView) -> list[Dims]:
    padding = [p.sizes(op.operands[i]) for i in (2, 3, 4)]
    for interior in padding[2]:
        p.require(Relation.ge(interior, 0), op)
    return _padded(op, padding)


def _padded(op: ir.OpView, padding: Sequence[Sequence[Expr]]) -> list[Dims]:
    return [tuple(padded_size(*column) for column in zip(dims_of(op.operands[0]), *padding, strict=True))]


def _relate_pad(r: SizeRelations, op: ir.OpView) -> None:
    source, result = op.operands[0], op.results[0]
    for axis, padding in enumerate(zip(*(numbers_of(op, n) for n in _PADDING), strict=True)):
        related(r, Size(source, axis), Size(result, axis), unchanged=not any(padding))


def map_pad(op: ir.OpView) -> IndexMap:
    """The index map of a pad."""
    columns = zip(*(amounts(op, name, operand) for name, operand in zip(_PADDING, (2, 3, 4), strict=True)), strict=True)
    at, within = [], []
    for axis, (low, high, interior) in enumerate(columns):
        if (low, high, interior) == (ZERO, ZERO, ZERO):
            at.append(Coordinate(axis))
            continue
        within.append(axis)
        step = Entry(interior.operand, interior.number, 1) if isinstance(interior, Entry) else interior + ONE
        at.append(Coordinate(axis, minus=low, step=step))
    inner = Read(0, tuple(at), tuple(within))
    return (inner, Read(1, ())) if within else (inner,)


def _form_of_pad(s: StatedSizes, op: ir.OpView) -> ir.Value:
    padding = [s.sizes(s.numbers(op, name)) for name in _PADDING]
    return create("dynamic_pad", op.results[0].type, [*op.operands, *padding])


# ---- legacy ops -------------------------------------------------------------------------------------------------


def _infer_torch_index_select(p: Propagation, op: ir.OpView) -> list[Dims]:
    operand, index = dims_of(op.operands[0]), dims_of(op.operands[1])
    axis, batch = (ir.IntegerAttr(op.attributes[name]).value for name in ("dim", "batch_dims"))
    for a, b in zip(operand[:batch], index[:batch], strict=True):
        p.equal(a, b, op)
    return [(*operand[:axis], *index[batch:], *operand[axis + 1 :])]


OPS = (
    *define(
        "index", "broadcast_in_dim", ALL, infer=_infer_broadcast_in_dim, relate=_relate_broadcast_in_dim,
        dynamic_form=DynamicForm(_form_of_broadcast_in_dim, of_type=True),
        index_map=map_broadcast_in_dim, values=ValueRule(_elements_of_broadcast_in_dim, arranges=True), flops=no_flops,
        cost=0, code=0, tests=_TESTS,
    ),
    *define(
        "index", "concatenate", ALL, infer=_infer_concatenate, relate=_relate_concatenate, index_map=_map_concatenate,
        values=ValueRule(_elements_of_concatenate, arranges=True), flops=no_flops, code=8, code_of_each=True,
        tests=_TESTS,
    ),
    *define(
        "index", "dynamic_broadcast_in_dim", ALL, infer=_infer_dynamic_broadcast_in_dim,
        index_map=map_broadcast_in_dim, size_operands=(1,), flops=no_flops, code=0, tests=_TESTS,
    ),
    *define(
        "index", "dynamic_pad", ALL, infer=_infer_dynamic_pad, index_map=map_pad, size_operands=(2, 3, 4),
        flops=no_flops, code=12, tests=_TESTS,
    ),
    *define(
        "index", "dynamic_reshape", ALL, infer=_infer_dynamic_reshape, index_map=map_reshape, size_operands=(1,),
        flops=no_flops, code=0, tests=_TESTS,
    ),
    *define(
        "index", "dynamic_slice", ALL, infer=_infer_dynamic_slice, relate=_relate_dynamic_slice,
        dynamic_form=DynamicForm(_form_of_dynamic_slice),
        index_map=_map_dynamic_slice, window=_window_of_dynamic_slice, flops=no_flops, code=6, tests=_TESTS,
    ),
    *define(
        "index", "dynamic_update_slice", ALL, infer=_infer_dynamic_update_slice, relate=_relate_dynamic_update_slice,
        index_map=_map_dynamic_update_slice, window=_window_of_dynamic_update_slice, flops=no_flops, code=12,
        tests=_TESTS,
    ),
    *define(
        "index", "pad", ALL, infer=_infer_pad, relate=_relate_pad, dynamic_form=DynamicForm(_form_of_pad),
        index_map=map_pad, flops=no_flops, code=12, tests=_TESTS,
    ),
    *define(
        "index", "real_dynamic_slice", ALL, infer=_infer_real_dynamic_slice, index_map=map_slice,
        window=_window_of_real_dynamic_slice, size_operands=(1, 2, 3), flops=no_flops, tests=_TESTS,
    ),
    *define(
        "index", "reshape", ALL, infer=_infer_reshape, relate=_relate_reshape,
        dynamic_form=DynamicForm(_form_of_reshape, of_type=True), index_map=map_reshape,
        values=ValueRule(_elements_of_reshape, arranges=True), flops=no_flops, cost=0, code=0, tests=_TESTS,
    ),
    *define(
        "index", "reverse", ALL, infer=same_shape, relate=one_shape, index_map=_map_reverse, flops=no_flops, code=4,
        tests=_TESTS,
    ),
    *define(
        "index", "slice", ALL, infer=_infer_slice, relate=_relate_slice,
        dynamic_form=DynamicForm(_form_of_slice, whole=WholeAxes("limit_indices", _same_axes)),
        index_map=map_slice, values=ValueRule(_elements_of_slice), window=_window_of_slice, flops=no_flops,
        tests=_TESTS,
    ),
    *define(
        "index", "transpose", ALL, infer=_infer_transpose, relate=_relate_transpose, index_map=_map_transpose,
        flops=no_flops, tests=_TESTS,
    ),
    *define("expand", "broadcast", ALL, infer=_infer_broadcast, tests=_OLD),
    *define("expand", "torch_index_select", ALL, infer=_infer_torch_index_select, tests=_OLD),
)  # fmt: skip

__all__ = ["OPS", "map_broadcast_in_dim", "map_pad", "map_reshape", "map_slice", "padded_size"]
