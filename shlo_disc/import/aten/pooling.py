# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows of which one number is made, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, product, tensor_type
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .graph import Graph, for_each, pairs, working
from .indexing import written
from .reductions import summed
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
    pads: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    holes: Sequence[int] = (),
) -> ir.Value:
    """Each window over the last axes reduced by an op on elements from a neutral start.

    holes: how far apart the elements of `x` stand, 1 by default.
    """
    lead = len(dims) - len(window)

    def numbers(values: Sequence[int]) -> ir.Attribute:
        return ir.DenseI64ArrayAttr.get([*[1] * lead, *values])

    scalar = t.constant(start, t.dtype_of(x))
    attributes: dict[str, ir.Attribute] = {
        "window_dimensions": numbers(window),
        "window_strides": numbers(stride),
        "padding": pairs([0, 0] * lead + [n for pair in pads for n in pair]),
        "base_dilations": numbers(holes or [1] * len(window)),
        "window_dilations": numbers(dilation),
    }
    types = [tensor_type(dims, element_type_of(x))]
    op = ir.Operation.create("stablehlo.reduce_window", types, [x, scalar], attributes, regions=1)
    t.body(op, [scalar.type] * 2, lambda a, b: [t.pointwise(name, a, b)])
    return op.results[0]


def _pool_pads(
    t: Graph, x: ir.Value, window: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], ceil: bool,
) -> list[tuple[int, int]]:  # fmt: skip
    """Padding at both ends; with `ceil`, enough behind for the last window that starts inside."""
    if not ceil:
        return [(p, p) for p in padding]
    sizes, counts = (d[-len(window) :] for d in (dims_of(x), t.dims))
    found = []
    for size, count, w, s, p, d in zip(sizes, counts, window, stride, padding, dilation, strict=True):
        if size.constant is None or count.constant is None:
            raise t.refuse("pooling with ceil_mode over symbolic sizes has no lowering", "pad first, without ceil_mode")
        found.append((p, (count.constant - 1) * s + (w - 1) * d + 1 - size.constant - p))
    return found


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
    pads = _pool_pads(t, x, window, stride, padding, dilation, ceil)
    low = -math.inf if t.dtype.is_floating_point else int(torch.iinfo(t.dtype).min)
    return windows(t, x, t.dims, "maximum", low, window, stride, pads, dilation)


@translates("avg_pool2d", "avg_pool1d", "avg_pool3d")
def avg_pool(
    t: Graph, x: ir.Value, window: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
    ceil: bool = False, with_padding: bool = True, divisor: int | None = None,
) -> ir.Value:  # fmt: skip
    """The mean of each window, by how many elements it has, those of the padding with or without."""
    rank = {"avg_pool1d": 1, "avg_pool2d": 2, "avg_pool3d": 3}[str(t.node.target).split(".")[1]]
    window = for_each(window, rank)
    stride = for_each(stride, rank) if stride else window
    padding = for_each(padding, rank)
    if ceil:
        raise t.refuse("a mean of windows with ceil_mode has no lowering", "pad first, without ceil_mode")
    kind = working(t.dtype)
    pads = [(p, p) for p in padding]
    found = windows(t, t.convert(x, kind), t.dims, "add", 0, window, stride, pads, [1] * rank)
    count = t.constant(divisor or math.prod(window), kind, t.dims)
    if not with_padding and not divisor and any(padding):
        ones = t.constant(1, kind, dims_of(x))
        count = windows(t, ones, t.dims, "add", 0, window, stride, pads, [1] * rank)
    return t.convert(t.pointwise("divide", found, count), t.dtype)


@translates("_adaptive_avg_pool2d", "adaptive_avg_pool2d", "adaptive_avg_pool1d")
def adaptive_avg_pool(t: Graph, x: ir.Value, size: Sequence[Any]) -> ir.Value:
    """The mean of as many windows as there shall be, of one size, or of all there is."""
    dims, rank = dims_of(x), len(size)
    along = list(range(len(dims) - rank, len(dims)))
    kind = working(t.dtype)
    value = t.convert(x, kind)
    wide: list[Expr] = list(dims[: len(dims) - rank])
    for axis, count in zip(along, size, strict=True):
        if count != 1 and (dims[axis].constant is None or dims[axis].constant % count):
            raise t.refuse("adaptive pooling to windows of different sizes has no lowering", "pool to size 1")
        wide += [Expr.const(count), dims[axis] // count]
    axes = [len(dims) - rank + 2 * i + 1 for i in range(rank)]
    total = summed(t, t.reshape(value, wide), axes)
    count = t.operand(product(wide[a] for a in axes), kind, dims_of(total))
    return t.reshape(t.convert(t.pointwise("divide", total, count), t.dtype), t.dims)


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
    """The largest element of each window and where it is in its plane, the first of equal ones, or the last NaN."""
    window = for_each(window, 2)
    stride = for_each(stride, 2) if stride else window
    padding, dilation = for_each(padding, 2), for_each(dilation, 2)
    pads = _pool_pads(t, x, window, stride, padding, dilation, ceil)
    dims, kind, lead = dims_of(x), t.dtype, len(dims_of(x)) - 2
    low = -math.inf if kind.is_floating_point else int(torch.iinfo(kind).min)
    before, behind = ([_ZERO] * lead + [Expr.const(p[side]) for p in pads] for side in (0, 1))
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
            is_better = t.pointwise("or", is_better, t.compare("NE", value, value))
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
        along = t.pointwise("multiply", along, t.constant(stride[axis], torch.int64, t.dims))
        found.append(t.pointwise("add", along, t.constant(at[axis] - padding[axis], torch.int64, t.dims)))
    row = t.pointwise("multiply", found[0], t.operand(width, torch.int64))
    return t.pointwise("add", row, found[1])


@translates("max_pool2d_with_indices_backward")
def max_pool_backward(t: Graph, gradient: ir.Value, x: ir.Value, *arguments: Any) -> ir.Value:
    """The gradient of each window added where its largest element is."""
    index, dims = arguments[-1], dims_of(x)
    flat, source = ((*d[:-2], d[-2] * d[-1]) for d in (dims, dims_of(gradient)))
    zeros = t.constant(0, t.dtype, flat)
    found = written(t, zeros, len(flat) - 1, t.reshape(index, source), t.reshape(gradient, source), "add")
    return t.reshape(found, dims)


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
    if ceil or (not with_padding and any(padding) and not divisor):
        raise t.refuse("the gradient of a mean of windows of different sizes has no translation", "pad first")
    kind, rank = working(t.dtype), len(t.dims)
    count = t.constant(divisor or math.prod(window), kind, dims_of(gradient))
    each = t.pointwise("divide", t.convert(gradient, kind), count)
    pads = [(w - 1 - p, w - 1 - p + s - 1) for w, p, s in zip(window, padding, stride, strict=True)]
    sizes = [
        (d - 1) * s + 1 + low + high - w + 1
        for d, s, (low, high), w in zip(dims_of(gradient)[-2:], stride, pads, window, strict=True)
    ]
    dims = (*t.dims[: rank - 2], *sizes)
    found = windows(t, each, dims, "add", 0, window, [1, 1], pads, [1, 1], stride)
    return t.convert(corner(t, found, t.dims), t.dtype)
