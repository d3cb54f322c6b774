# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of networks: softmax and normalisations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import dims_of, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .graph import Graph, axis_of, working
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
    powers = build.exponential(build.subtract(x, spread(t, peak, dims, [axis])))
    total = summed(t, powers, [axis])
    if is_masked:
        total = t.select(none, t.constant(1, t.dtype_of(x), dims_of(total)), total)
    return build.divide(powers, spread(t, total, dims, [axis]))


def log_total(t: Graph, x: ir.Value, axis: int) -> ir.Value:
    """The logarithm of the sum of exp(x) along an axis; -inf where all of x is."""
    peak = largest(t, x, [axis])
    none = t.compare("EQ", peak, t.constant(-math.inf, t.dtype_of(x), dims_of(peak)))
    least = t.select(none, t.constant(0, t.dtype_of(x), dims_of(peak)), peak)
    powers = build.exponential(build.subtract(x, spread(t, least, dims_of(x), [axis])))
    return build.add(build.log(summed(t, powers, [axis])), least)


@translates("_softmax", "softmax.int", "_safe_softmax")
def softmax(t: Graph, x: ir.Value, axis: int, *_: Any) -> ir.Value:
    """exp(x) divided by its sum along an axis."""
    value = t.convert(x, working(t.dtype))
    if not t.dims:
        return t.convert(softmax_along(t, t.reshape(value, (_ONE,)), 0), t.dtype)
    is_masked = "_safe" in str(t.node.target)
    return t.convert(softmax_along(t, value, axis_of(axis, len(t.dims)), is_masked), t.dtype)


@translates("_log_softmax", "log_softmax.int")
def log_softmax(t: Graph, x: ir.Value, axis: int, *_: Any) -> ir.Value:
    """x minus the logarithm of the sum of exp(x) along an axis."""
    value = t.convert(x, working(t.dtype))
    value = value if t.dims else t.reshape(value, (_ONE,))
    dims = dims_of(value)
    along = [axis_of(axis, len(dims))]
    low = build.subtract(value, spread(t, largest(t, value, along), dims, along))
    total = build.log(summed(t, build.exponential(low), along))
    found = build.subtract(low, spread(t, total, dims, along))
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
    return build.rsqrt(build.add(spread_out, t.operand(epsilon, t.dtype_of(spread_out), dims_of(spread_out))))


def _normalised(t: Graph, x: ir.Value, axes: Sequence[int], epsilon: Any) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Along axes less the mean and over the deviation; the mean and what is multiplied by, without the axes."""
    dims = dims_of(x)
    variance, mean = moments(t, x, axes)
    inverse = _inverse(t, variance, epsilon)
    distance = build.subtract(x, spread(t, mean, dims, axes))
    return build.multiply(distance, spread(t, inverse, dims, axes)), mean, inverse


@translates("native_layer_norm")
def native_layer_norm(
    t: Graph, x: ir.Value, shape: Sequence[Any], weight: ir.Value | None, bias: ir.Value | None, epsilon: float
) -> tuple[ir.Value, ...]:
    """Normalised along the last axes; also the mean and the inverse standard deviation."""
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
    """Normalised over each group of channels; also the mean and the inverse standard deviation of each group."""
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
    of_batch = training or mean is None
    if of_batch:
        spread_out, average = moments(t, value, axes)
        if mean is not None:
            count = t.operand(product(dims[a] for a in axes), kind, (dims[1],))
            less = build.subtract(count, t.constant(1, kind, (dims[1],)))
            unbiased = build.multiply(spread_out, build.divide(count, less))
            new_mean, new_variance = _moved(t, mean, average, momentum), _moved(t, variance, unbiased, momentum)
    else:
        average, spread_out = t.convert(mean, kind), t.convert(variance, kind)
    inverse = _inverse(t, spread_out, epsilon)
    if of_batch:
        distance = build.subtract(value, t.broadcast(average, dims, [1]))
        found = build.multiply(distance, t.broadcast(inverse, dims, [1]))
        found = _scaled(t, found, weight, bias, [1])
    else:
        found = _by_channel(t, value, average, inverse, weight, bias)
    return t.convert(found, t.dtype_of(x)), average, inverse, new_mean, new_variance


def _by_channel(t: Graph, x: ir.Value, mean: ir.Value, inverse: ir.Value, weight: Any, bias: Any) -> ir.Value:
    """x times one number a channel and plus another one, which PyTorch too computes first."""
    kind, dims = t.dtype_of(x), dims_of(x)
    factor = inverse if weight is None else build.multiply(inverse, t.convert(weight, kind))
    lost = build.multiply(mean, factor)
    first = t.constant(0, kind, dims_of(mean)) if bias is None else t.convert(bias, kind)
    scaled = build.multiply(x, t.broadcast(factor, dims, [1]))
    return build.add(scaled, t.broadcast(build.subtract(first, lost), dims, [1]))


def _moved(t: Graph, old: ir.Value, new: ir.Value, momentum: Any) -> ir.Value:
    """The running statistics after a batch."""
    kind, dims = t.dtype_of(old), dims_of(old)
    rate = t.operand(momentum, kind, dims)
    rest = build.subtract(t.constant(1, kind, dims), rate)
    moved = build.multiply(t.convert(new, kind), rate)
    return build.add(moved, build.multiply(old, rest))


def _saved(t: Graph, mean: ir.Value, inverse: ir.Value, training: bool) -> list[ir.Value]:
    """The values for the backward pass: nothing where the running statistics were used."""
    return [
        t.convert(t.reshape(v, o.dims), o.dtype) if training else t.constant(0, o.dtype, o.dims)
        for v, o in zip((mean, inverse), t.outs[1:3], strict=True)
    ]


@translates("_native_batch_norm_legit_functional")
def batch_norm_functional(
    t: Graph, x: ir.Value, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: Any, epsilon: Any
) -> tuple[ir.Value | None, ...]:
    """Batch normalisation, with the new running statistics as results."""
    found, average, inverse, *new = _batch_norm(t, x, weight, bias, mean, variance, training, momentum, epsilon)
    return found, *_saved(t, average, inverse, training), *new


@translates("_native_batch_norm_legit.no_stats")
def batch_norm_without_statistics(
    t: Graph, x: ir.Value, weight: Any, bias: Any, training: bool, momentum: Any, epsilon: Any
) -> tuple[ir.Value, ...]:
    """Batch normalisation without running statistics."""
    found, average, inverse, *_ = _batch_norm(t, x, weight, bias, None, None, training, momentum, epsilon)
    return found, *_saved(t, average, inverse, True)


@translates("_native_batch_norm_legit_no_training")
def batch_norm_for_inference(
    t: Graph, x: ir.Value, weight: Any, bias: Any, mean: Any, variance: Any, momentum: Any, epsilon: Any
) -> tuple[ir.Value, ...]:
    """Batch normalisation by the running statistics."""
    found, average, inverse, *_ = _batch_norm(t, x, weight, bias, mean, variance, False, momentum, epsilon)
    return found, *_saved(t, average, inverse, False)
