# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements read and written at places that are data. Places outside are read at the nearest one and not written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.build import shape_tensor
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr, as_expr

from .data_sizes import check_masks, ends_of, has_mask, places_of, rank_of, without_masks
from .graph import Graph, axis_of, numbers_of, working
from .index_ranges import check_equal, check_in_range
from .ordering import running
from .reductions import highest, lowest
from .shapes import corner, count_of, join, piece, start_of, step_of
from .table import translates

_ONE = Expr.const(1)


# ---- places ---------------------------------------------------------------------------------------------------------


def _counted(t: Graph, index: ir.Value, size: Expr, may_be_negative: bool = True) -> ir.Value:
    """Indices (i64) of an axis of some size from the front, of such as may count from the end."""
    value = t.convert(index, torch.int64)
    check_in_range(t, value, size, may_be_negative)
    if not may_be_negative:
        return value
    dims = dims_of(value)
    below = t.compare("LT", value, t.constant(0, torch.int64, dims))
    return t.select(below, build.add(value, t.operand(size, torch.int64, dims)), value)


def _places(t: Graph, indices: Sequence[ir.Value], dims: Dims) -> ir.Value:
    """Indices of several axes, broadcast to `dims`, side by side along a new last axis."""
    columns = [t.reshape(t.stretch(v, dims), (*dims, _ONE)) for v in indices]
    return columns[0] if len(columns) == 1 else join(t, columns, len(dims), (*dims, Expr.const(len(columns))))


def _dimension_numbers(kind: str, names: Sequence[str], lists: Sequence[Sequence[int]], vector: int) -> ir.Attribute:
    """StableHLO's attribute of a gather or scatter: lists of axes by name, and the axis that the places lie along."""
    texts = [f"{name} = [{', '.join(map(str, axes))}]" for name, axes in zip(names, lists, strict=True)]
    return ir.Attribute.parse(f"#stablehlo.{kind}<{', '.join([*texts, f'index_vector_dim = {vector}'])}>")


def gather_at(t: Graph, x: ir.Value, axes: Sequence[int], places: ir.Value) -> ir.Value:
    """The elements of `x` at places along `axes`; the sizes of the places come first, then those of the other axes."""
    source, batch = dims_of(x), dims_of(places)[:-1]
    rest = [a for a in range(len(source)) if a not in axes]
    dims = (*batch, *(source[a] for a in rest))
    if any(source[a].constant == 0 for a in axes):
        return _nothing(t, dims, t.dtype_of(x))
    offsets = list(range(len(batch), len(dims)))
    names = ("offset_dims", "collapsed_slice_dims", "start_index_map")
    attributes: dict[str, ir.Attribute] = {
        "dimension_numbers": _dimension_numbers("gather", names, (offsets, sorted(axes), axes), len(batch)),
        "indices_are_sorted": ir.BoolAttr.get(False),
    }
    sizes = [_ONE if a in axes else d for a, d in enumerate(source)]
    if all(d.constant is not None for d in sizes):
        attributes["slice_sizes"] = numbers_of(sizes)
        return t.op("gather", [x, places], dims, element_type_of(x), **attributes)
    return t.op("dynamic_gather", [x, places, shape_tensor(sizes)], dims, element_type_of(x), **attributes)


def _nothing(t: Graph, dims: Dims, dtype: torch.dtype) -> ir.Value:
    """No elements, read along an axis that has none. Raises UnsupportedError where there are places to read at."""
    if all(d.constant != 0 for d in dims):
        raise t.refuse("an index into an axis of size 0 has no element", "give the axis elements, or no indices")
    return t.constant(0, dtype, dims)


def scatter_at(
    t: Graph, x: ir.Value, axes: Sequence[int], places: ir.Value, updates: ir.Value, name: str | None
) -> ir.Value:
    """`x` with the elements at places along `axes` replaced, or changed by an op on elements."""
    batch = len(dims_of(places)) - 1
    windows = list(range(batch, len(dims_of(updates))))
    names = ("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims")
    attributes: dict[str, ir.Attribute] = {
        "scatter_dimension_numbers": _dimension_numbers("scatter", names, (windows, sorted(axes), axes), batch),
        "indices_are_sorted": ir.BoolAttr.get(False),
        "unique_indices": ir.BoolAttr.get(False),
    }
    op = ir.Operation.create("stablehlo.scatter", [x.type], [x, places, updates], attributes, regions=1)
    scalar = ir.RankedTensorType.get([], element_type_of(x))
    t.body(op, [scalar] * 2, lambda old, new: [new if name is None else t.pointwise(name, old, new)])
    return op.results[0]


# ---- reading --------------------------------------------------------------------------------------------------------


@translates("index_select")
def index_select(t: Graph, x: ir.Value, axis: int, index: ir.Value) -> ir.Value:
    """The elements at indices of one axis."""
    if not dims_of(x):
        return x
    number = axis_of(axis, len(dims_of(x)))
    index = t.reshape(index, (t.dims[number],))
    places = _places(t, [_counted(t, index, dims_of(x)[number], False)], dims_of(index))
    return _front_to(t, gather_at(t, x, [number], places), 1, number)


def _front_to(t: Graph, x: ir.Value, count: int, position: int) -> ir.Value:
    """The first `count` axes moved behind the `position` ones that follow them."""
    rank = len(dims_of(x))
    order = [*range(count, count + position), *range(count), *range(count + position, rank)]
    return t.transpose(x, order)


@translates("embedding")
def embedding(t: Graph, table: ir.Value, index: ir.Value, *_: Any) -> ir.Value:
    """The rows of a table."""
    return gather_at(t, table, [0], _places(t, [_counted(t, index, dims_of(table)[0], False)], dims_of(index)))


@translates("gather")
def gather(t: Graph, x: ir.Value, axis: int, index: ir.Value, *_: Any) -> ir.Value:
    """The elements at indices along one axis, each at its position along the others."""
    if not dims_of(x):
        return t.reshape(x, t.dims)
    places = _along(t, axis, index, dims_of(x))
    return gather_at(t, x, list(range(len(dims_of(x)))), places)


def _along(t: Graph, axis: int, index: ir.Value, shape: Dims) -> ir.Value:
    """Places in a tensor: the index along one axis, and the element's own place along the others."""
    dims, rank, number = dims_of(index), len(shape), axis_of(axis, len(shape))
    own = _counted(t, index, shape[number], False)
    return _places(t, [own if a == number else t.iota(dims, a, torch.int64) for a in range(rank)], dims)


@translates("index.Tensor", "_unsafe_index.Tensor")
def index(t: Graph, x: ir.Value, indices: Sequence[ir.Value | None]) -> ir.Value:
    """NumPy's indexing by integer tensors and masks, which are broadcast together."""
    check_masks(t, x, indices)
    if has_mask(t, indices):
        position, count = ends_of(t, indices)
        indices = without_masks(t, indices, t.dims[position + count - 1])
    axes, dims, found = _indexed(t, x, indices)
    read = gather_at(t, x, axes, _places(t, found, dims))
    return _front_to(t, read, len(dims), axes[0]) if _are_together(axes) else read


def _are_together(axes: Sequence[int]) -> bool:
    """Tells whether axes that are indexed follow one another: what they become stays there, and is else in front."""
    return list(axes) == list(range(axes[0], axes[0] + len(axes)))


@translates("masked_select")
def masked_select(t: Graph, x: ir.Value, mask: ir.Value) -> ir.Value:
    """The elements where a mask is true, both broadcast, in row-major order."""
    dims = broadcast_dims([dims_of(x), dims_of(mask)])
    found = places_of(t, t.stretch(mask, dims), t.dims[0])
    return gather_at(t, t.stretch(x, dims), list(range(len(dims))), _places(t, found, t.dims))


def _indexed(t: Graph, x: ir.Value, indices: Sequence[ir.Value | None]) -> tuple[list[int], Dims, list[ir.Value]]:
    """The axes that are indexed, what their indices are broadcast to, and these."""
    axes = [a for a, v in enumerate(indices) if v is not None]
    values = [v for v in indices if v is not None]
    if any(t.dtype_of(v) == torch.uint8 for v in values):
        raise t.refuse("a mask of bytes has no translation", "convert it to torch.bool")
    found = [_counted(t, v, dims_of(x)[a]) for a, v in zip(axes, values, strict=True)]
    return axes, broadcast_dims([dims_of(v) for v in found]), found


def broadcast_dims(shapes: Sequence[Dims]) -> Dims:
    """The sizes that shapes are broadcast to together."""
    rank = max(map(len, shapes))
    found: list[Expr] = [_ONE] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, rank - len(shape)):
            found[axis] = size if found[axis].constant == 1 else found[axis]
    return tuple(found)


# ---- writing --------------------------------------------------------------------------------------------------------


@translates("index_put", "_unsafe_index_put")
def index_put(
    t: Graph, x: ir.Value, indices: Sequence[ir.Value | None], values: ir.Value, accumulate: bool = False, *_: Any
) -> ir.Value:
    """NumPy's assignment by integer tensors and masks; with `accumulate`, values are added."""
    check_masks(t, x, indices)
    if len([v for v in indices if v is not None]) == 1 and (mask := _mask_of(t, x, indices)) is not None:
        own = next(v for v in indices if v is not None)
        replaced = _by_mask(t, x, own, mask, t.convert(values, t.dtype))
        return t.select(mask, build.add(x, replaced), x) if accumulate else replaced
    if has_mask(t, indices):
        indices = without_masks(t, indices, _count_of_values(t, x, indices, dims_of(values)))
    axes, dims, found = _indexed(t, x, indices)
    rest = tuple(d for a, d in enumerate(dims_of(x)) if a not in axes)
    position = axes[0] if _are_together(axes) else 0
    whole = (*rest[:position], *dims, *rest[position:])
    updates = t.stretch(t.convert(values, t.dtype), whole)
    count = len(dims)
    order = [*range(position, position + count), *range(position), *range(position + count, len(whole))]
    return _summed(t, x, axes, _places(t, found, dims), t.transpose(updates, order), "add" if accumulate else None)


def _count_of_values(t: Graph, x: ir.Value, indices: Sequence[ir.Value | None], values: Dims) -> Expr | None:
    """The size of the values to write along the axis of where masks hold; None for values that are broadcast along it.

    indices: with masks among them.
    """
    position, count = ends_of(t, indices)
    behind = len(dims_of(x)) - sum(rank_of(t, v) for v in indices if v is not None) - position
    place = len(values) - behind - 1
    return values[place] if place >= 0 and values[place].constant != 1 else None


def _by_mask(t: Graph, x: ir.Value, own: ir.Value, mask: ir.Value, values: ir.Value) -> ir.Value:
    """`x` with the rows at which the mask `own` holds replaced, by one row for all or by one for each."""
    dims = dims_of(values)
    depth = len(dims_of(x)) - len(dims_of(own))
    if len(dims) <= depth or dims[0].constant == 1:
        return t.select(mask, t.stretch(t.reshape(values, dims[max(0, len(dims) - depth) :]), dims_of(x)), x)
    rows = t.stretch(values, (dims[0], *dims_of(x)[len(dims_of(x)) - depth :]))
    return filled(t, x, own, rows)


def filled(t: Graph, x: ir.Value, mask: ir.Value, values: ir.Value) -> ir.Value:
    """`x` with the rows at which a mask holds replaced by those of `values`, in order.

    mask: of the first axes of `x`; what follows them is a row. Where there are too few values the last one is repeated.
    """
    dims, rank, count = dims_of(x), len(dims_of(mask)), dims_of(values)[0]
    row = t.constant(0, t.dtype_of(x), (_ONE, *dims[rank:]))
    readable = join(
        t, [values, row], 0, (count + 1, *dims[rank:])
    )  # there may be no values, where the mask never holds
    last = t.operand(Expr.maximum(count - 1, 0), torch.int64, dims_of(mask))
    places = build.minimum(_numbers(t, mask), last)
    read = gather_at(t, readable, [0], t.reshape(places, (*dims_of(mask), _ONE)))
    return t.select(t.broadcast(mask, dims, range(rank)), read, x)


def _numbers(t: Graph, mask: ir.Value) -> ir.Value:
    """The number of elements before an element that are true, in row-major order (i64)."""
    flat = t.convert(t.reshape(mask, (product(dims_of(mask)),)), torch.int64)
    counts = running(t, flat, 0, "add", 0)
    return t.reshape(build.subtract(counts, flat), dims_of(mask))


@translates("masked_scatter")
def masked_scatter(t: Graph, x: ir.Value, mask: ir.Value, source: ir.Value) -> ir.Value:
    """A tensor whose elements where a mask is true are replaced by those of another tensor, in order."""
    values = t.reshape(source, (product(dims_of(source)),))
    return filled(t, t.stretch(x, t.dims), t.stretch(mask, t.dims), values)


def _mask_of(t: Graph, x: ir.Value, indices: Sequence[ir.Value | None]) -> ir.Value | None:
    """A mask over the first axes of `x`, broadcast over all of them."""
    first = indices[0]
    if first is None or t.dtype_of(first) != torch.bool:
        return None
    return t.broadcast(first, dims_of(x), range(len(dims_of(first))))


def _summed(
    t: Graph, x: ir.Value, axes: Sequence[int], places: ir.Value, updates: ir.Value, name: str | None
) -> ir.Value:
    """`scatter_at`, whose sums of halves are formed in single precision."""
    kind = working(t.dtype_of(x)) if name in ("add", "multiply") else t.dtype_of(x)
    found = scatter_at(t, t.convert(x, kind), axes, places, t.convert(updates, kind), name)
    return t.convert(found, t.dtype)


def written(t: Graph, x: ir.Value, axis: int, index: ir.Value, source: Any, name: str | None) -> ir.Value:
    """`x` with elements of `source` at indices along one axis, each at its own place of the others."""
    dims = dims_of(index)
    if isinstance(source, ir.Value) and dims_of(source) and dims_of(source) != dims:
        source = corner(t, source, dims)
    updates = t.operand(source, t.dtype, dims)
    if not dims_of(x):
        whole = [t.reshape(v, (_ONE,)) for v in (x, index, updates)]
        return t.reshape(written(t, whole[0], 0, whole[1], whole[2], name), ())
    return _summed(t, x, list(range(len(dims_of(x)))), _along(t, axis, index, dims_of(x)), updates, name)


@translates("scatter.src", "scatter.value")
def scatter(t: Graph, x: ir.Value, axis: int, index: ir.Value, source: Any) -> ir.Value:
    """A tensor with some elements replaced."""
    return written(t, x, axis, index, source, None)


@translates("scatter_add")
def scatter_add(t: Graph, x: ir.Value, axis: int, index: ir.Value, source: ir.Value) -> ir.Value:
    """A tensor with values added to some elements."""
    return written(t, x, axis, index, source, "add")


@translates("scatter.reduce", "scatter.value_reduce")
def scatter_by_name(t: Graph, x: ir.Value, axis: int, index: ir.Value, source: Any, reduce: str) -> ir.Value:
    """A tensor with values added to some elements, or multiplied with them."""
    return written(t, x, axis, index, source, reduce)


@translates("put")
def put(t: Graph, x: ir.Value, index: ir.Value, source: ir.Value, accumulate: bool = False) -> ir.Value:
    """A tensor with elements replaced, or added to, at indices of all its elements in row-major order."""
    size, count = product(dims_of(x)), product(dims_of(index))
    check_equal(t, product(dims_of(source)), count, "the number of elements to put")
    places = _places(t, [_counted(t, t.reshape(index, (count,)), size)], (count,))
    updates = t.reshape(t.convert(source, t.dtype), (count,))
    found = _summed(t, t.reshape(x, (size,)), [0], places, updates, "add" if accumulate else None)
    return t.reshape(found, t.dims)


_REDUCTIONS = {"sum": "add", "mean": "add", "prod": "multiply", "amax": "maximum", "amin": "minimum"}


@translates("scatter_reduce.two")
def scatter_reduce(
    t: Graph, x: ir.Value, axis: int, index: ir.Value, source: ir.Value, reduce: str, include_self: bool = True
) -> ir.Value:
    """A tensor with some elements reduced with values."""
    if include_self and reduce != "mean":
        return written(t, x, axis, index, source, _REDUCTIONS[reduce])
    count = _received(t, axis, index, t.dims)
    if not include_self:
        starts = {"prod": 1, "amax": lowest(t.dtype), "amin": highest(t.dtype)}
        is_reduced = t.compare("GT", count, t.constant(0, torch.int64, t.dims))
        x = t.select(is_reduced, t.constant(starts.get(reduce, 0), t.dtype, t.dims), x)
    found = written(t, x, axis, index, source, _REDUCTIONS[reduce])
    if reduce != "mean":
        return found
    one = t.constant(1, torch.int64, t.dims)
    return _quotient(t, found, build.add(count, one) if include_self else build.maximum(count, one))


def _received(t: Graph, axis: int, index: ir.Value, dims: Dims) -> ir.Value:
    """The number of values (i64) that each element of a tensor receives by indices along an axis."""
    if not dims:
        return t.reshape(_received(t, 0, t.reshape(index, (_ONE,)), (_ONE,)), ())
    zeros, ones = t.constant(0, torch.int64, dims), t.constant(1, torch.int64, dims_of(index))
    return scatter_at(t, zeros, list(range(len(dims))), _along(t, axis, index, dims), ones, "add")


def _quotient(t: Graph, total: ir.Value, count: ir.Value) -> ir.Value:
    """A sum over a positive number (i64); that of integers is rounded down."""
    kind = working(t.dtype)
    found = build.divide(t.convert(total, kind), t.convert(count, kind))
    if t.dtype.is_floating_point:
        return t.convert(found, t.dtype)
    rest = build.subtract(total, build.multiply(found, t.convert(count, kind)))
    is_below = t.compare("LT", rest, t.constant(0, kind, t.dims))
    return t.select(is_below, build.subtract(found, t.constant(1, kind, t.dims)), found)


@translates("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(t: Graph, x: ir.Value, mask: ir.Value, number: Any) -> ir.Value:
    """A number where a mask is true."""
    return t.select(t.stretch(mask, t.dims), t.operand(number, t.dtype), t.operand(x, t.dtype))


@translates("slice_scatter")
def slice_replaced(
    t: Graph, x: ir.Value, source: ir.Value, axis: int = 0, start: Any = None, end: Any = None, step: Any = 1
) -> ir.Value:
    """A tensor with a slice replaced by another tensor. PyTorch does not check its size while it traces the op."""
    axis = axis_of(axis, len(t.dims))
    size, count = t.dims[axis], dims_of(source)[axis]
    first, source = start_of(start, size), t.convert(source, t.dtype)
    if any(e is not None and as_expr(e).constant is None for e in (start, end)):
        check_equal(t, count, count_of(first, end, size, step_of(t, step)), "the size of what replaces a slice")
    if step_of(t, step) == 1:
        ahead = piece(t, x, axis, Expr.const(0), first)
        behind = piece(t, x, axis, first + count, size - first - count)
        return join(t, [ahead, source, behind], axis, t.dims)
    along = build.multiply(t.iota((count,), 0, torch.int64), t.constant(step, torch.int64, (count,)))
    at = build.add(along, t.operand(first, torch.int64, (count,)))
    return scatter_at(t, x, [axis], _places(t, [at], (count,)), _to_front(t, source, axis), None)


def _to_front(t: Graph, x: ir.Value, axis: int) -> ir.Value:
    """One axis moved before the others."""
    return t.transpose(x, [axis, *(a for a in range(len(dims_of(x))) if a != axis)])


# ---- diagonals ------------------------------------------------------------------------------------------------------


@translates("diagonal", "diagonal_copy")
def diagonal(t: Graph, x: ir.Value, offset: int = 0, first: int = 0, second: int = 1) -> ir.Value:
    """The diagonal of two axes, as the last axis."""
    rank = len(dims_of(x))
    axes = [axis_of(first, rank), axis_of(second, rank)]
    return _front_to(t, gather_at(t, x, axes, _diagonal_places(t, t.dims[-1], offset)), 1, rank - 2)


@translates("diagonal_scatter")
def diagonal_replaced(
    t: Graph, x: ir.Value, source: ir.Value, offset: int = 0, first: int = 0, second: int = 1
) -> ir.Value:
    """A tensor whose diagonal over two axes is replaced by the last axis of another tensor."""
    rank = len(t.dims)
    axes = [axis_of(first, rank), axis_of(second, rank)]
    source = t.convert(source, t.dtype)
    places = _diagonal_places(t, dims_of(source)[-1], offset)
    return scatter_at(t, x, axes, places, _to_front(t, source, rank - 2), None)


def _diagonal_places(t: Graph, count: Expr, offset: int) -> ir.Value:
    """The row and the column of each element of a diagonal."""
    along = t.iota((count,), 0, torch.int64)
    moved = build.add(along, t.constant(abs(offset), torch.int64, (count,)))
    return _places(t, [along, moved] if offset >= 0 else [moved, along], (count,))


# ---- strides --------------------------------------------------------------------------------------------------------


@translates("as_strided")
def as_strided(t: Graph, x: ir.Value, _: Sequence[Any], strides: Sequence[Any], offset: Any = None) -> ir.Value:
    """The elements at offset + the sum of index * stride of a row-major tensor that covers its memory."""
    memory = _memory(t, x)
    return gather_at(t, memory, [0], _strided_places(t, t.dims, strides, offset))


@translates("as_strided_scatter", "prims.as_strided_scatter.default")
def as_strided_replaced(
    t: Graph, x: ir.Value, source: ir.Value, _: Sequence[Any], strides: Sequence[Any], offset: Any = None
) -> ir.Value:
    """A tensor that covers its memory, whose elements at offset + the sum of index * stride are replaced."""
    memory, dims = _memory(t, x), dims_of(source)
    places = _strided_places(t, dims, strides, offset)
    return t.reshape(scatter_at(t, memory, [0], places, t.convert(source, t.dtype), None), t.dims)


def _memory(t: Graph, x: ir.Value) -> ir.Value:
    """The memory of the op's first operand, as a vector."""
    value: Any = t.node.args[0].meta["val"]
    count = product(dims_of(x))
    size = t.sizes.size_of(value.untyped_storage().nbytes())
    if not value.is_contiguous() or size != count * value.dtype.itemsize:
        raise t.refuse("strides of a tensor that is not all of its memory have no translation", "clone it first")
    return t.reshape(x, (count,))


def _strided_places(t: Graph, dims: Dims, strides: Sequence[Any], offset: Any) -> ir.Value:
    place = t.operand(0 if offset is None else offset, torch.int64, dims)
    for axis, stride in enumerate(strides):
        along = t.iota(dims, axis, torch.int64)
        place = build.add(place, build.multiply(along, t.operand(stride, torch.int64, dims)))
    return t.reshape(place, (*dims, _ONE))
