# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of networks: softmax, normalisations, convolutions, pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, product, tensor_type
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .graph import Graph, axis_of, pairs, working
from .reductions import largest, moments, spread, summed
from .table import translates

_ONE = Expr.const(1)


# ---- softmax --------------------------------------------------------------------------------------------------------


def softmax_along(t: Graph, x: ir.Value, axis: int, is_masked: bool = False) -> ir.Value:
    """exp(x) over its sum along an axis. Where `is_masked`, an axis of which all is -inf gives 0 and not NaN."""
    dims = dims_of(x)
    peak = largest(t, x, [axis])
    if is_masked:
        none = t.compare("EQ", peak, t.constant(-math.inf, t.dtype_of(x), dims_of(peak)))
        peak = t.select(none, t.constant(0, t.dtype_of(x), dims_of(peak)), peak)
    powers = t.pointwise("exponential", t.pointwise("subtract", x, spread(t, peak, dims, [axis])))
    total = summed(t, powers, [axis])
    if is_masked:
        total = t.select(none, t.constant(1, t.dtype_of(x), dims_of(total)), total)
    return t.pointwise("divide", powers, spread(t, total, dims, [axis]))


@translates("_softmax", "softmax.int", "_safe_softmax")
def softmax(t: Graph, x: ir.Value, axis: int, *_: Any) -> ir.Value:
    """exp(x) over its sum along an axis."""
    value = t.convert(x, working(t.dtype))
    if not t.dims:
        return t.convert(softmax_along(t, t.reshape(value, (_ONE,)), 0), t.dtype)
    is_masked = "_safe" in str(t.node.target)
    return t.convert(softmax_along(t, value, axis_of(axis, len(t.dims)), is_masked), t.dtype)


@translates("_log_softmax", "log_softmax.int")
def log_softmax(t: Graph, x: ir.Value, axis: int, *_: Any) -> ir.Value:
    """x less the logarithm of the sum of exp(x) along an axis."""
    value = t.convert(x, working(t.dtype))
    value = value if t.dims else t.reshape(value, (_ONE,))
    dims = dims_of(value)
    along = [axis_of(axis, len(dims))]
    low = t.pointwise("subtract", value, spread(t, largest(t, value, along), dims, along))
    total = t.pointwise("log", summed(t, t.pointwise("exponential", low), along))
    found = t.pointwise("subtract", low, spread(t, total, dims, along))
    return t.reshape(t.convert(found, t.dtype), t.dims)


# ---- normalisations -------------------------------------------------------------------------------------------------


def _scaled(t: Graph, x: ir.Value, weight: ir.Value | None, bias: ir.Value | None, axes: Sequence[int]) -> ir.Value:
    """x * weight + bias, whose axes stand at `axes` of x."""
    dims, kind = dims_of(x), t.dtype_of(x)
    for value, name in ((weight, "multiply"), (bias, "add")):
        if value is not None:
            x = t.pointwise(name, x, t.broadcast(t.convert(value, kind), dims, axes))
    return x


def _inverse(t: Graph, spread_out: ir.Value, epsilon: Any) -> ir.Value:
    """1 / sqrt(variance + epsilon)."""
    return t.pointwise(
        "rsqrt", t.pointwise("add", spread_out, t.operand(epsilon, t.dtype_of(spread_out), dims_of(spread_out)))
    )


def _normalised(t: Graph, x: ir.Value, axes: Sequence[int], epsilon: Any) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Along axes less the mean and over the deviation; the mean and what is multiplied by, without the axes."""
    dims = dims_of(x)
    variance, mean = moments(t, x, axes)
    inverse = _inverse(t, variance, epsilon)
    distance = t.pointwise("subtract", x, spread(t, mean, dims, axes))
    return t.pointwise("multiply", distance, spread(t, inverse, dims, axes)), mean, inverse


@translates("native_layer_norm")
def native_layer_norm(
    t: Graph, x: ir.Value, shape: Sequence[Any], weight: ir.Value | None, bias: ir.Value | None, epsilon: float
) -> tuple[ir.Value, ...]:
    """Normalised along the last axes; the mean and the inverse deviation."""
    rank = len(dims_of(x))
    axes = list(range(rank - len(shape), rank))
    found, mean, inverse = _normalised(t, t.convert(x, working(t.dtype)), axes, epsilon)
    found = t.convert(_scaled(t, found, weight, bias, axes), t.dtype)
    return found, *(t.convert(t.reshape(v, o.dims), o.dtype) for v, o in zip((mean, inverse), t.outs[1:], strict=True))


@translates("layer_norm")
def layer_norm(
    t: Graph, x: ir.Value, shape: Sequence[Any], weight: Any = None, bias: Any = None, epsilon: float = 1e-5, *_: Any
) -> ir.Value:
    """Normalised along the last axes."""
    rank = len(dims_of(x))
    axes = list(range(rank - len(shape), rank))
    found, _mean, _inverse_ = _normalised(t, t.convert(x, working(t.dtype)), axes, epsilon)
    return t.convert(_scaled(t, found, weight, bias, axes), t.dtype)


@translates("native_group_norm")
def native_group_norm(
    t: Graph, x: ir.Value, weight: Any, bias: Any, _n: Any, _c: Any, _hw: Any, groups: int, epsilon: float
) -> tuple[ir.Value, ...]:
    """Normalised over each group of channels; the mean and the inverse deviation of each group."""
    dims = dims_of(x)
    count = Expr.const(groups)
    wide = (dims[0], count, dims[1] // groups, *dims[2:])
    value = t.reshape(t.convert(x, working(t.dtype)), wide)
    found, mean, inverse = _normalised(t, value, list(range(2, len(wide))), epsilon)
    found = t.convert(_scaled(t, t.reshape(found, dims), weight, bias, [1]), t.dtype)
    return found, *(t.convert(t.reshape(v, o.dims), o.dtype) for v, o in zip((mean, inverse), t.outs[1:], strict=True))


def _batch_norm(
    t: Graph, x: ir.Value, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: Any, epsilon: Any
) -> tuple[ir.Value, ir.Value, ir.Value, ir.Value | None, ir.Value | None]:
    """Normalised over all axes but the channels: the result, saved mean and inverse, and the new running statistics."""
    kind = working(t.dtype_of(x))
    value, dims = t.convert(x, kind), dims_of(x)
    axes = [a for a in range(len(dims)) if a != 1]
    new_mean, new_variance = mean, variance
    if training or mean is None:
        spread_out, average = moments(t, value, axes)
        if mean is not None:
            count = t.operand(product(dims[a] for a in axes), kind, (dims[1],))
            less = t.pointwise("subtract", count, t.constant(1, kind, (dims[1],)))
            unbiased = t.pointwise("multiply", spread_out, t.pointwise("divide", count, less))
            new_mean, new_variance = _moved(t, mean, average, momentum), _moved(t, variance, unbiased, momentum)
    else:
        average, spread_out = t.convert(mean, kind), t.convert(variance, kind)
    inverse = _inverse(t, spread_out, epsilon)
    distance = t.pointwise("subtract", value, t.broadcast(average, dims, [1]))
    found = t.pointwise("multiply", distance, t.broadcast(inverse, dims, [1]))
    found = t.convert(_scaled(t, found, weight, bias, [1]), t.dtype_of(x))
    return found, average, inverse, new_mean, new_variance


def _moved(t: Graph, old: ir.Value, new: ir.Value, momentum: Any) -> ir.Value:
    """The running statistics after a batch."""
    kind, dims = t.dtype_of(old), dims_of(old)
    rate = t.operand(momentum, kind, dims)
    rest = t.pointwise("subtract", t.constant(1, kind, dims), rate)
    moved = t.pointwise("multiply", t.convert(new, kind), rate)
    return t.pointwise("add", moved, t.pointwise("multiply", old, rest))


def _saved(t: Graph, mean: ir.Value, inverse: ir.Value, training: bool) -> list[ir.Value]:
    """What the backward pass is given: nothing where the running statistics were used."""
    return [
        t.convert(t.reshape(v, o.dims), o.dtype) if training else t.constant(0, o.dtype, o.dims)
        for v, o in zip((mean, inverse), t.outs[1:3], strict=True)
    ]


@translates("_native_batch_norm_legit_functional")
def batch_norm_functional(
    t: Graph, x: ir.Value, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: Any, epsilon: Any
) -> tuple[ir.Value | None, ...]:
    """With the new running statistics as results."""
    found, average, inverse, *new = _batch_norm(t, x, weight, bias, mean, variance, training, momentum, epsilon)
    return found, *_saved(t, average, inverse, training), *new


@translates("_native_batch_norm_legit.no_stats")
def batch_norm_without_statistics(
    t: Graph, x: ir.Value, weight: Any, bias: Any, training: bool, momentum: Any, epsilon: Any
) -> tuple[ir.Value, ...]:
    """Without running statistics."""
    found, average, inverse, *_ = _batch_norm(t, x, weight, bias, None, None, training, momentum, epsilon)
    return found, *_saved(t, average, inverse, True)


@translates("_native_batch_norm_legit_no_training")
def batch_norm_for_inference(
    t: Graph, x: ir.Value, weight: Any, bias: Any, mean: Any, variance: Any, momentum: Any, epsilon: Any
) -> tuple[ir.Value, ...]:
    """By the running statistics."""
    found, average, inverse, *_ = _batch_norm(t, x, weight, bias, mean, variance, False, momentum, epsilon)
    return found, *_saved(t, average, inverse, False)


@translates("native_dropout")
def native_dropout(t: Graph, x: ir.Value, _: float, train: bool | None) -> tuple[ir.Value, ir.Value]:
    """x itself, outside of training."""
    if train or train is None:
        raise t.refuse("dropout while training has no translation yet", "call eval(), or set p=0")
    return x, t.constant(True, torch.bool, t.dims)


# ---- convolutions ---------------------------------------------------------------------------------------------------


@translates("convolution")
def convolution(
    t: Graph,
    x: ir.Value,
    kernel: ir.Value,
    bias: ir.Value | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> ir.Value:
    """A convolution over the axes behind batch and features, or the transpose of one."""
    rank = len(dims_of(kernel)) - 2
    if len(dims_of(x)) == rank + 1:
        x = t.reshape(x, (_ONE, *dims_of(x)))
    stride, padding, dilation, more = (_for_each(v, rank) for v in (stride, padding, dilation, output_padding))
    pads = [(p, p) for p in padding]
    base = [1] * rank
    if transposed:
        kernel = _turned(t, kernel, groups)
        reach = [_width(t, kernel, a, dilation[a]) for a in range(rank)]
        pads = [(reach[a] - padding[a], reach[a] - padding[a] + more[a]) for a in range(rank)]
        base, stride = stride, [1] * rank
    dims = t.dims if len(t.dims) == rank + 2 else (_ONE, *t.dims)
    found = _convolve(t, x, kernel, dims, stride, pads, base, dilation, groups)
    if bias is not None:
        found = t.pointwise("add", found, t.broadcast(bias, dims, [1]))
    return t.reshape(found, t.dims)


def _for_each(values: Sequence[int], rank: int) -> list[int]:
    return list(values) * rank if len(values) == 1 else list(values)


def _width(t: Graph, kernel: ir.Value, axis: int, dilation: int) -> int:
    size = dims_of(kernel)[axis + 2].constant
    if size is None:
        raise t.refuse("a transposed convolution whose window is a symbol has no lowering")
    return (size - 1) * dilation


def _turned(t: Graph, kernel: ir.Value, groups: int) -> ir.Value:
    """The kernel of a transposed convolution as that of an ordinary one: features exchanged, windows turned round."""
    dims = dims_of(kernel)
    grouped = t.reshape(kernel, (Expr.const(groups), dims[0] // groups, *dims[1:]))
    order = [0, 2, 1, *range(3, len(dims) + 1)]
    exchanged = t.reshape(t.transpose(grouped, order), (dims[1] * groups, dims[0] // groups, *dims[2:]))
    numbers = ir.DenseI64ArrayAttr.get(list(range(2, len(dims))))
    return t.op("reverse", [exchanged], dims_of(exchanged), element_type_of(kernel), dimensions=numbers)


def _convolve(
    t: Graph,
    x: ir.Value,
    kernel: ir.Value,
    dims: Dims,
    stride: Sequence[int],
    pads: Sequence[tuple[int, int]],
    base: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> ir.Value:
    rank = len(stride)
    places = ", ".join(str(a) for a in range(rank))
    order = f"[b, f, {places}]x[o, i, {places}]->[b, f, {places}]"
    i64 = ir.IntegerType.get_signless(64)
    return t.op(
        "convolution",
        [x, kernel],
        dims,
        element_type_of(x),
        window_strides=ir.DenseI64ArrayAttr.get(list(stride)),
        padding=pairs([n for pair in pads for n in pair]),
        lhs_dilation=ir.DenseI64ArrayAttr.get(list(base)),
        rhs_dilation=ir.DenseI64ArrayAttr.get(list(dilation)),
        dimension_numbers=ir.Attribute.parse(f"#stablehlo.conv<{order}>"),
        feature_group_count=ir.IntegerAttr.get(i64, groups),
        batch_group_count=ir.IntegerAttr.get(i64, 1),
    )


# ---- pooling --------------------------------------------------------------------------------------------------------


def windows(
    t: Graph, x: ir.Value, dims: Dims, name: str, start: float | int, window: Sequence[int], stride: Sequence[int],
    pads: Sequence[tuple[int, int]], dilation: Sequence[int],
) -> ir.Value:  # fmt: skip
    """Each window over the last axes reduced by an op on elements from a neutral start."""
    lead = len(dims) - len(window)
    padding = pairs([0, 0] * lead + [n for pair in pads for n in pair])

    def numbers(values: Sequence[int]) -> ir.Attribute:
        return ir.DenseI64ArrayAttr.get([*[1] * lead, *values])

    scalar = t.constant(start, t.dtype_of(x))
    attributes: dict[str, ir.Attribute] = {
        "window_dimensions": numbers(window), "window_strides": numbers(stride), "padding": padding,
        "base_dilations": numbers([1] * len(window)), "window_dilations": numbers(dilation),
    }  # fmt: skip
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
    window = _for_each(window, rank)
    stride = _for_each(stride, rank) if stride else window
    padding, dilation = _for_each(padding, rank), _for_each(dilation, rank)
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
    window = _for_each(window, rank)
    stride = _for_each(stride, rank) if stride else window
    padding = _for_each(padding, rank)
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


__all__ = ["softmax_along", "windows"]
