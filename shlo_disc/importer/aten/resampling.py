# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Images resampled with filters as wide as the scale asks for (antialias=True): a product with weights along each axis.

The weights are those of PIL's resampling, which PyTorch follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .graph import Graph, working
from .products import dot
from .reductions import summed
from .table import translates

Filter = Callable[[Graph, ir.Value], ir.Value]
"""Weights at distances from the centre that are not negative."""


def _triangle(t: Graph, x: ir.Value) -> ir.Value:
    one, zero = (t.constant(n, t.dtype_of(x), dims_of(x)) for n in (1, 0))
    return build.maximum(build.subtract(one, x), zero)


def _cubic(t: Graph, x: ir.Value) -> ir.Value:
    """Keys' cubic convolution with a = -0.5."""
    near = _polynomial(t, x, (1.5, -2.5, 0.0, 1.0))
    far = _polynomial(t, x, (-0.5, 2.5, -4.0, 2.0))
    one, two, zero = (t.constant(n, t.dtype_of(x), dims_of(x)) for n in (1, 2, 0))
    return t.select(t.compare("LT", x, one), near, t.select(t.compare("LT", x, two), far, zero))


def _polynomial(t: Graph, x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
    kind, dims = t.dtype_of(x), dims_of(x)
    first, *others = coefficients
    total = t.constant(first, kind, dims)
    for number in others:
        total = build.add(build.multiply(total, x), t.constant(number, kind, dims))
    return total


def _scale(t: Graph, size: Expr, count: Expr, corners: bool, factor: Any, kind: torch.dtype) -> ir.Value:
    """The distance of results, counted in elements."""
    if not corners and factor is not None and not (isinstance(factor, int | float) and factor <= 0):
        return build.divide(t.constant(1, kind), t.number(factor, kind))
    if not corners:
        return build.divide(t.size(size, kind), t.size(count, kind))
    steps = t.size(count - 1, kind)
    plain = build.divide(t.size(size - 1, kind), build.maximum(steps, t.constant(1, kind)))
    return t.select(t.compare("GT", steps, t.constant(0, kind)), plain, t.constant(0, kind))


def _weights(t: Graph, size: Expr, count: Expr, scale: ir.Value, width: int, shape: Filter) -> ir.Value:
    """The weight of each element in each result, [count, size]; each row sums to 1."""
    kind, dims = t.dtype_of(scale), (count, size)
    one = t.constant(1, kind)
    wide = build.maximum(scale, one)
    each, support, narrow = (
        t.broadcast(v, dims, ())
        for v in (scale, build.multiply(wide, t.constant(width / 2, kind)), build.divide(one, wide))
    )
    half = t.constant(0.5, kind, dims)
    result, element = (t.iota(dims, axis, torch.int64) for axis in (0, 1))
    center = build.multiply(each, build.add(t.convert(result, kind), half))
    low = t.convert(build.add(build.subtract(center, support), half), torch.int64)
    high = t.convert(build.add(build.add(center, support), half), torch.int64)
    distance = build.add(build.subtract(t.convert(element, kind), center), half)
    weight = shape(t, build.abs(build.multiply(distance, narrow)))
    inside = build.and_(t.compare("GE", element, low), t.compare("LT", element, high))
    weight = t.select(inside, weight, t.constant(0, kind, dims))
    return build.divide(weight, t.broadcast(summed(t, weight, [1]), dims, [0]))


def _kind(t: Graph) -> torch.dtype:
    if not t.dtype.is_floating_point:
        raise t.refuse("resampling of integers has no lowering", "resample floats")
    return working(t.dtype)


def _resampled(width: int, shape: Filter) -> Callable[..., ir.Value]:
    def translate(t: Graph, x: ir.Value, _: Any, corners: bool, *factors: Any) -> ir.Value:
        """Images in another size; each result is the mean of the elements in its filter."""
        kind = _kind(t)
        value = t.convert(x, kind)
        for axis, factor in zip((2, 3), factors or (None, None), strict=True):
            size, count = dims_of(x)[axis], t.dims[axis]
            scale = _scale(t, size, count, corners, factor, kind)
            value = dot(t, value, _weights(t, size, count, scale, width, shape), 0, (2, 1))
        return t.convert(value, t.dtype)

    return translate


def _resampled_backward(width: int, shape: Filter) -> Callable[..., ir.Value]:
    def translate(t: Graph, gradient: ir.Value, _: Any, __: Any, corners: bool, *factors: Any) -> ir.Value:
        """The gradient of each result distributed over the elements in its filter, with the same weights."""
        kind = _kind(t)
        value = t.convert(gradient, kind)
        for axis, factor in zip((2, 3), factors or (None, None), strict=True):
            size, count = t.dims[axis], dims_of(gradient)[axis]
            scale = _scale(t, size, count, corners, factor, kind)
            value = dot(t, value, _weights(t, size, count, scale, width, shape), 0, (2, 0))
        return t.convert(value, t.dtype)

    return translate


for _name, _width, _shape in (("bilinear", 2, _triangle), ("bicubic", 4, _cubic)):
    translates(f"_upsample_{_name}2d_aa")(_resampled(_width, _shape))
    translates(f"_upsample_{_name}2d_aa_backward")(_resampled_backward(_width, _shape))
