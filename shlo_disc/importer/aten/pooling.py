# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows of which one number is made, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, product, tensor_type
from shlo_disc.shape_dialect.dialect.window import WINDOW, Window, window_attribute
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr, as_expr

from .graph import Graph, for_each, pairs, working
from .indexing import gather, written
from .reductions import largest, lowest, smallest, summed
from .shapes import corner, pad, piece
from .table import translates

_ZERO, _ONE = Expr.const(0), Expr.const(1)


def windows(
    t: Graph,
    x: ir.Value,
    dims: Dims,
    name: str,
    start: float | int,
    window: Sequence[int],
    stride: Sequence[int],
    pads: Sequence[tuple[Expr, Expr]],
    dilation: Sequence[int],
    holes: Sequence[int] = (),
) -> ir.Value:
    """Each window over the last axes reduced by an op on elements from a neutral start.

    pads: how many neutral elements lie before and behind each axis. holes: how far apart the elements of `x` stand, 1
    by default.
    """
    lead = len(dims) - len(window)

    def numbers(values: Sequence[int]) -> list[int]:
        return [*[1] * lead, *values]

    size, strides, spacing, reach = map(numbers, (window, stride, holes or [1] * len(window), dilation))
    low, high = ([*[_ZERO] * lead, *(p[side] for p in pads)] for side in (0, 1))
    is_static = all(e.constant is not None for e in (*low, *high))
    attributes: dict[str, ir.Attribute] = {
        "window_dimensions": ir.DenseI64ArrayAttr.get(size),
        "window_strides": ir.DenseI64ArrayAttr.get(strides),
        "padding": pairs([e.constant or 0 for pair in zip(low, high, strict=True) for e in pair]),
        "base_dilations": ir.DenseI64ArrayAttr.get(spacing),
        "window_dilations": ir.DenseI64ArrayAttr.get(reach),
    }
    if not is_static:
        parts = (*(tuple(map(Expr.const, part)) for part in (size, strides, spacing, reach)), tuple(low), tuple(high))
        attributes[WINDOW] = window_attribute(Window(*parts))
    scalar = t.constant(start, t.dtype_of(x))
    types = [tensor_type(dims, element_type_of(x))]
    op = ir.Operation.create("stablehlo.reduce_window", types, [x, scalar], attributes, regions=1)
    t.body(op, [scalar.type] * 2, lambda a, b: [t.pointwise(name, a, b)])
    return op.results[0]


def _pool_pads(
    x: ir.Value, dims: Dims, window: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], ceil: bool,
) -> list[tuple[Expr, Expr]]:  # fmt: skip
    """Padding at both ends; with `ceil`, enough behind for the last window that starts inside."""
    if not ceil:
        return [(Expr.const(p), Expr.const(p)) for p in padding]
    sizes, counts = (d[-len(window) :] for d in (dims_of(x), dims))
    return [
        (Expr.const(p), (count - 1) * s + (w - 1) * d + 1 - size - p)
        for size, count, w, s, p, d in zip(sizes, counts, window, stride, padding, dilation, strict=True)
    ]


@translates("max_pool2d", "max_pool1d", "max_pool3d")
def max_pool(
    t: Graph, x: ir.Value, window: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,), ceil: bool = False,
) -> ir.Value:  # fmt: skip
    """The largest element of each window."""
    rank = {"max_pool1d": 1, "max_pool2d": 2, "max_pool3d": 3}[str(t.node.target).split(".")[1]]
    window = for_each(window, rank)
    stride = for_each(stride, rank) if stride else window
    padding, dilation = for_each(padding, rank), for_each(dilation, rank)
    pads = _pool_pads(x, t.dims, window, stride, padding, dilation, ceil)
    low = -math.inf if t.dtype.is_floating_point else int(torch.iinfo(t.dtype).min)
    return windows(t, x, t.dims, "maximum", low, window, stride, pads, dilation)


@translates("avg_pool2d", "avg_pool1d", "avg_pool3d")
def avg_pool(
    t: Graph, x: ir.Value, window: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
    ceil: bool = False, with_padding: bool = True, divisor: int | None = None,
) -> ir.Value:  # fmt: skip
    """The mean of each window, over its number of elements, with or without padding."""
    rank = {"avg_pool1d": 1, "avg_pool2d": 2, "avg_pool3d": 3}[str(t.node.target).split(".")[1]]
    window = for_each(window, rank)
    stride = for_each(stride, rank) if stride else window
    padding = for_each(padding, rank)
    pads = _pool_pads(x, t.dims, window, stride, padding, [1] * rank, ceil)
    kind = working(t.dtype)
    found = windows(t, t.convert(x, kind), t.dims, "add", 0, window, stride, pads, [1] * rank)
    count = _divisors(t, x, t.dims, window, stride, pads, padding if with_padding else [0] * rank, divisor)
    return t.convert(build.divide(found, count), t.dtype)


def _divisors(
    t: Graph,
    x: ir.Value,
    dims: Dims,
    window: Sequence[int],
    stride: Sequence[int],
    pads: Sequence[tuple[Expr, Expr]],
    counted: Sequence[int],
    divisor: int | None,
) -> ir.Value:
    """The number of elements in each window, `counted` of the padding at both ends of each axis included; or `divisor`.

    dims: the sizes of the windows' result.
    """
    kind, rank, lead = working(t.dtype), len(window), len(dims) - len(window)
    rest = [(low - p, high - p) for (low, high), p in zip(pads, counted, strict=True)]
    if divisor or all(e.constant == 0 for pair in rest for e in pair):
        return t.constant(divisor or math.prod(window), kind, dims)
    along = [d + 2 * p for d, p in zip(dims_of(x)[lead:], counted, strict=True)]
    ones = t.constant(1, kind, (*[_ONE] * lead, *along))
    found = windows(t, ones, (*[_ONE] * lead, *dims[lead:]), "add", 0, window, stride, rest, [1] * rank)
    return t.broadcast(t.reshape(found, dims[lead:]), dims, range(lead, len(dims)))


@translates(
    "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"
)
def adaptive_avg_pool(t: Graph, x: ir.Value, size: Sequence[Any]) -> ir.Value:
    """The means of `count` windows, from floor(i * n / count) to ceil((i + 1) * n / count)."""
    value = t.convert(x, working(t.dtype))
    rank = len(dims_of(x))
    for axis, count in enumerate(map(as_expr, size), rank - len(size)):
        value = _means(t, value, axis, count)
    return t.convert(value, t.dtype)


def _means(t: Graph, x: ir.Value, axis: int, count: Expr) -> ir.Value:
    """The means of `count` windows along an axis."""
    dims, kind = dims_of(x), t.dtype_of(x)
    length, rest = dims[axis] // count, dims[axis] % count
    if rest.constant == 0:
        wide = (*dims[:axis], count, length, *dims[axis + 1 :])
        total = summed(t, t.reshape(x, wide), [axis + 1])
        return build.divide(total, t.operand(length, kind, dims_of(total)))
    wide = (*dims[:axis], count, *dims[axis:])
    inside, counts = _adaptive_windows(t, dims[axis], count, kind)
    own = t.broadcast(x, wide, [a for a in range(len(wide)) if a != axis])
    zeros = t.constant(0, kind, wide)
    total = summed(t, t.select(t.broadcast(inside, wide, [axis, axis + 1]), own, zeros), [axis + 1])
    return build.divide(total, t.broadcast(counts, dims_of(total), [axis]))


def _adaptive_windows(t: Graph, size: Expr, count: Expr, kind: torch.dtype) -> tuple[ir.Value, ir.Value]:
    """The mask of the `size` elements that each of `count` windows has, [count, size], and their numbers, [count]."""
    dims = (count, size)
    window, place = (t.iota(dims, axis, torch.int64) for axis in (0, 1))
    n, many = (t.operand(e, torch.int64, dims) for e in (size, count))
    one = t.constant(1, torch.int64, dims)
    start = build.divide(build.multiply(window, n), many)
    beyond = build.multiply(build.add(window, one), n)
    end = build.divide(build.add(beyond, build.subtract(many, one)), many)
    inside = build.and_(t.compare("GE", place, start), t.compare("LT", place, end))
    return inside, summed(t, t.convert(inside, kind), [1])


@translates("_adaptive_avg_pool2d_backward")
def adaptive_avg_pool_backward(t: Graph, gradient: ir.Value, x: ir.Value) -> ir.Value:
    """The gradient of each window divided by its number of elements, added to all of them."""
    value, rank = t.convert(gradient, working(t.dtype)), len(t.dims)
    for axis in (rank - 2, rank - 1):
        value = _means_backward(t, value, axis, dims_of(x)[axis])
    return t.convert(value, t.dtype)


def _means_backward(t: Graph, gradient: ir.Value, axis: int, size: Expr) -> ir.Value:
    dims, kind = dims_of(gradient), t.dtype_of(gradient)
    inside, counts = _adaptive_windows(t, size, dims[axis], kind)
    each = build.divide(gradient, t.broadcast(counts, dims, [axis]))
    wide = (*dims[: axis + 1], size, *dims[axis + 1 :])
    own = t.broadcast(each, wide, [a for a in range(len(wide)) if a != axis + 1])
    chosen = t.select(t.broadcast(inside, wide, [axis, axis + 1]), own, t.constant(0, kind, wide))
    return summed(t, chosen, [axis])


# ---- where the largest elements are ---------------------------------------------------------------------------------


@translates("max_pool2d_with_indices")
def max_pool_with_indices(
    t: Graph,
    x: ir.Value,
    window: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil: bool = False,
) -> tuple[ir.Value, ir.Value]:
    """The largest element of each window and its position in its plane: the first of equal ones, or the last NaN."""
    window = for_each(window, 2)
    stride = for_each(stride, 2) if stride else window
    padding, dilation = for_each(padding, 2), for_each(dilation, 2)
    pads = _pool_pads(x, t.dims, window, stride, padding, dilation, ceil)
    dims, kind, lead = dims_of(x), t.dtype, len(dims_of(x)) - 2
    low = -math.inf if kind.is_floating_point else int(torch.iinfo(kind).min)
    before, behind = ([_ZERO] * lead + [p[side] for p in pads] for side in (0, 1))
    wide = tuple(d + a + b for d, a, b in zip(dims, before, behind, strict=True))
    padded = pad(t, x, t.constant(low, kind), before, behind, wide)
    offsets = [(a * dilation[0], b * dilation[1]) for a in range(window[0]) for b in range(window[1])]
    candidates = []
    for at in offsets:
        value = padded
        for axis in (0, 1):
            value = piece(t, value, lead + axis, Expr.const(at[axis]), t.dims[lead + axis], stride[axis])
        candidates.append((value, _places_in_plane(t, at, stride, padding, dims[-1])))
    (best, place), *others = candidates
    for value, own in others:
        is_better = t.compare("GT", value, best)
        if kind.is_floating_point:
            is_better = build.or_(is_better, t.compare("NE", value, value))
        best, place = t.select(is_better, value, best), t.select(is_better, own, place)
    return best, place


def _places_in_plane(
    t: Graph, at: tuple[int, int], stride: Sequence[int], padding: Sequence[int], width: Expr
) -> ir.Value:
    """row * width + column of one element of each window."""
    lead = len(t.dims) - 2
    found = []
    for axis in (0, 1):
        along = t.iota(t.dims, lead + axis, torch.int64)
        along = build.multiply(along, t.constant(stride[axis], torch.int64, t.dims))
        found.append(build.add(along, t.constant(at[axis] - padding[axis], torch.int64, t.dims)))
    row = build.multiply(found[0], t.operand(width, torch.int64))
    return build.add(row, found[1])


@translates("adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(t: Graph, x: ir.Value, size: Sequence[Any]) -> tuple[ir.Value, ir.Value]:
    """The largest element of each window, for a given number of windows, and its position in its channel.

    Of equal elements it is the first. One axis after the other is done, the last one first.
    """
    dims, value = dims_of(x), x
    place: ir.Value | None = None
    step = Expr.const(1)
    for axis in range(len(dims) - 1, len(dims) - 1 - len(size), -1):
        value, at = _largest_of_windows(t, value, axis, t.dims[axis])
        own = build.multiply(at, t.operand(step, torch.int64, dims_of(at)))
        place = own if place is None else build.add(own, gather(t, place, axis, at))
        step = step * dims[axis]
    assert place is not None  # noqa: S101  # there are two axes or three
    return value, place


def _largest_of_windows(t: Graph, x: ir.Value, axis: int, count: Expr) -> tuple[ir.Value, ir.Value]:
    """The largest element of each of `count` windows along an axis, and its index there."""
    dims, kind = dims_of(x), t.dtype_of(x)
    wide = (*dims[:axis], count, *dims[axis:])
    inside = t.broadcast(_adaptive_windows(t, dims[axis], count, torch.int64)[0], wide, [axis, axis + 1])
    own = t.broadcast(x, wide, [a for a in range(len(wide)) if a != axis])
    least = t.constant(lowest(kind), kind, wide)
    found = largest(t, t.select(inside, own, least), [axis + 1])
    hits = t.compare("EQ", own, t.broadcast(found, wide, [a for a in range(len(wide)) if a != axis + 1]))
    if kind.is_floating_point:
        hits = build.or_(hits, t.compare("NE", own, own))
    beyond = t.constant(int(torch.iinfo(torch.int64).max), torch.int64, wide)
    places = t.select(build.and_(hits, inside), t.iota(wide, axis + 1, torch.int64), beyond)
    return found, smallest(t, places, [axis + 1])


@translates("adaptive_max_pool2d_backward", "adaptive_max_pool3d_backward")
def adaptive_max_pool_backward(t: Graph, gradient: ir.Value, x: ir.Value, index: ir.Value) -> ir.Value:
    """The gradient of each window added where its largest element is."""
    rank = 2 if "2d" in str(t.node.target) else 3
    return _scattered(t, gradient, dims_of(x), index, rank)


def _scattered(t: Graph, gradient: ir.Value, dims: Dims, index: ir.Value, rank: int) -> ir.Value:
    """Gradients added at places among the elements of the last `rank` axes."""
    flat, source = ((*d[:-rank], product(d[-rank:])) for d in (dims, dims_of(gradient)))
    zeros = t.constant(0, t.dtype, flat)
    found = written(t, zeros, len(flat) - 1, t.reshape(index, source), t.reshape(gradient, source), "add")
    return t.reshape(found, dims)


@translates("max_pool2d_with_indices_backward")
def max_pool_backward(t: Graph, gradient: ir.Value, x: ir.Value, *arguments: Any) -> ir.Value:
    """The gradient of each window added where its largest element is."""
    return _scattered(t, gradient, dims_of(x), arguments[-1], 2)


@translates("avg_pool2d_backward")
def avg_pool_backward(
    t: Graph,
    gradient: ir.Value,
    x: ir.Value,
    window: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil: bool,
    with_padding: bool,
    divisor: int | None,
) -> ir.Value:
    """The gradient of each window spread over its elements: a sum of windows of the gradient with holes."""
    window = for_each(window, 2)
    stride = for_each(stride, 2) if stride else window
    padding = for_each(padding, 2)
    kind, rank, source = working(t.dtype), len(t.dims), dims_of(gradient)
    forwards = _pool_pads(x, source, window, stride, padding, [1, 1], ceil)
    count = _divisors(t, x, source, window, stride, forwards, padding if with_padding else [0, 0], divisor)
    each = build.divide(t.convert(gradient, kind), count)
    pads = [(w - 1 - p, w - 1 - p + s - 1) for w, p, s in zip(window, padding, stride, strict=True)]
    sizes = [
        (d - 1) * s + 1 + low + high - w + 1
        for d, s, (low, high), w in zip(source[-2:], stride, pads, window, strict=True)
    ]
    dims = (*t.dims[: rank - 2], *sizes)
    around = [(Expr.const(low), Expr.const(high)) for low, high in pads]
    found = windows(t, each, dims, "add", 0, window, [1, 1], around, [1, 1], stride)
    return t.convert(corner(t, found, t.dims), t.dtype)
