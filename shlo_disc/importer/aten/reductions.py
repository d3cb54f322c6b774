# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops along axes whose result has an element for many. Sums of halves are formed in single precision."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.mlir import ir

from .graph import Graph, axes_of, axis_of, working
from .index_ranges import check_elements
from .table import add, translates


def summed(t: Graph, x: ir.Value, axes: Sequence[int]) -> ir.Value:
    """The sum along axes, which are gone, in the dtype of `x`."""
    return t.reduce([x], [t.constant(0, t.dtype_of(x))], axes, "add")[0] if axes else x


def lowest(dtype: torch.dtype) -> float | int:
    """The lower bound of all elements."""
    if dtype.is_floating_point:
        return -math.inf
    return 0 if dtype == torch.bool else int(torch.iinfo(dtype).min)


def highest(dtype: torch.dtype) -> float | int:
    """The upper bound of all elements."""
    if dtype.is_floating_point:
        return math.inf
    return 1 if dtype == torch.bool else int(torch.iinfo(dtype).max)


def largest(t: Graph, x: ir.Value, axes: Sequence[int]) -> ir.Value:
    """The largest element along axes, which are gone; NaN where there is one."""
    name = "or" if t.dtype_of(x) == torch.bool else "maximum"
    return t.reduce([x], [t.constant(lowest(t.dtype_of(x)), t.dtype_of(x))], axes, name)[0] if axes else x


def smallest(t: Graph, x: ir.Value, axes: Sequence[int]) -> ir.Value:
    """The smallest element along axes, which are gone; NaN where there is one."""
    name = "and" if t.dtype_of(x) == torch.bool else "minimum"
    return t.reduce([x], [t.constant(highest(t.dtype_of(x)), t.dtype_of(x))], axes, name)[0] if axes else x


def spread(t: Graph, x: ir.Value, dims: Dims, axes: Sequence[int]) -> ir.Value:
    """A reduced value back over the axes that it was reduced along."""
    return t.broadcast(x, dims, [a for a in range(len(dims)) if a not in axes])


# ---- sums -----------------------------------------------------------------------------------------------------------


@translates("sum", "sum.dim_IntList")
def total(t: Graph, x: ir.Value, axes: Any = None, *_: Any) -> ir.Value:
    """The sum along axes."""
    numbers = axes_of(axes if _is_axes(axes) else None, len(dims_of(x)))
    return t.reshape(t.convert(summed(t, t.convert(x, working(t.dtype)), numbers), t.dtype), t.dims)


def _is_axes(value: Any) -> bool:
    """Tells whether an argument names axes; in overloads without axes a dtype stands there."""
    return isinstance(value, int | list | tuple)


@translates("mean", "mean.dim")
def mean(t: Graph, x: ir.Value, axes: Any = None, *_: Any) -> ir.Value:
    """The mean along axes."""
    numbers = axes_of(axes if _is_axes(axes) else None, len(dims_of(x)))
    kind = working(t.dtype)
    found = summed(t, t.convert(x, kind), numbers)
    count = t.operand(product(dims_of(x)[a] for a in numbers), kind, dims_of(found))
    return t.reshape(t.convert(build.divide(found, count), t.dtype), t.dims)


@translates("prod", "prod.dim_int")
def multiplied(t: Graph, x: ir.Value, axis: Any = None, *_: Any) -> ir.Value:
    """The product along an axis, or of all elements."""
    numbers = axes_of(axis if _is_axes(axis) else None, len(dims_of(x)))
    kind = working(t.dtype)
    value = t.convert(x, kind)
    found = t.reduce([value], [t.constant(1, kind)], numbers, "multiply")[0] if numbers else value
    return t.reshape(t.convert(found, t.dtype), t.dims)


@translates("var.correction")
def variance(t: Graph, x: ir.Value, axes: Any = None, correction: Any = None, *_: Any) -> ir.Value:
    """The variance: the sum of squared distances from the mean, over the number of elements less `correction` (1)."""
    numbers = axes_of(axes, len(dims_of(x)))
    found, _mean = moments(t, t.convert(x, working(t.dtype)), numbers, 1 if correction is None else correction)
    return t.reshape(t.convert(found, t.dtype), t.dims)


@translates("std.correction")
def deviation(t: Graph, x: ir.Value, axes: Any = None, correction: Any = None, *_: Any) -> ir.Value:
    """The square root of the variance."""
    numbers = axes_of(axes, len(dims_of(x)))
    found, _mean = moments(t, t.convert(x, working(t.dtype)), numbers, 1 if correction is None else correction)
    return t.reshape(t.convert(build.sqrt(found), t.dtype), t.dims)


@translates("var_mean.correction")
def variance_and_mean(t: Graph, x: ir.Value, axes: Any = None, correction: Any = None, *_: Any) -> tuple[ir.Value, ...]:
    """Variance and mean."""
    numbers = axes_of(axes, len(dims_of(x)))
    both = moments(t, t.convert(x, working(t.dtype)), numbers, 1 if correction is None else correction)
    return tuple(t.reshape(t.convert(v, t.dtype), t.dims) for v in both)


def moments(t: Graph, x: ir.Value, axes: Sequence[int], correction: Any = 0) -> tuple[ir.Value, ir.Value]:
    """Variance and mean along axes, which are gone, of floats; the variance by a second walk."""
    kind, dims = t.dtype_of(x), dims_of(x)
    count = product(dims[a] for a in axes)
    first = summed(t, x, axes)
    average = build.divide(first, t.operand(count, kind, dims_of(first)))
    distance = build.subtract(x, spread(t, average, dims, axes))
    squares = summed(t, build.multiply(distance, distance), axes)
    divisor = t.operand(count, kind, dims_of(first))
    if correction:
        less = build.subtract(divisor, t.operand(correction, kind, dims_of(first)))
        divisor = build.maximum(less, t.constant(0, kind, dims_of(first)))
    return build.divide(squares, divisor), average


# ---- extrema --------------------------------------------------------------------------------------------------------


@translates("amax", "max")
def amax(t: Graph, x: ir.Value, axes: Any = None, *_: Any) -> ir.Value:
    """The largest element along axes."""
    check_elements(t, dims_of(x), axes_of(axes, len(dims_of(x))))
    return t.reshape(largest(t, x, axes_of(axes, len(dims_of(x)))), t.dims)


@translates("amin", "min")
def amin(t: Graph, x: ir.Value, axes: Any = None, *_: Any) -> ir.Value:
    """The smallest element along axes."""
    check_elements(t, dims_of(x), axes_of(axes, len(dims_of(x))))
    return t.reshape(smallest(t, x, axes_of(axes, len(dims_of(x)))), t.dims)


def _flags(reduce: Callable[[Graph, ir.Value, Sequence[int]], ir.Value]) -> Callable[..., ir.Value]:
    def translate(t: Graph, x: ir.Value, axes: Any = None, *_: Any) -> ir.Value:
        flags = t.convert(x, torch.bool)
        return t.reshape(t.convert(reduce(t, flags, axes_of(axes, len(dims_of(x)))), t.dtype), t.dims)

    return translate


for _overload in ("default", "dim", "dims"):
    add(f"any.{_overload}", _flags(largest))
    add(f"all.{_overload}", _flags(smallest))


def first_index(t: Graph, x: ir.Value, extremum: ir.Value, axis: int) -> ir.Value:
    """The first index along an axis at which an extremum stands, or NaN where that is one; the axis is gone."""
    dims = dims_of(x)
    hits = t.compare("EQ", x, spread(t, extremum, dims, [axis]))
    if t.dtype_of(x).is_floating_point:
        hits = build.or_(hits, t.compare("NE", x, x))
    beyond = t.constant(int(torch.iinfo(torch.int64).max), torch.int64, dims)
    return smallest(t, t.select(hits, t.iota(dims, axis, torch.int64), beyond), [axis])


def _index_of(reduce: Callable[[Graph, ir.Value, Sequence[int]], ir.Value]) -> Callable[..., ir.Value]:
    def translate(t: Graph, x: ir.Value, axis: int | None = None, *_: Any) -> ir.Value:
        if not dims_of(x):
            return t.constant(0, torch.int64, t.dims)
        check_elements(t, dims_of(x), [] if axis is None else [axis_of(axis, len(dims_of(x)))])
        value = t.reshape(x, (product(dims_of(x)),)) if axis is None else x
        number = axis_of(axis or 0, len(dims_of(value)))
        return t.reshape(first_index(t, value, reduce(t, value, [number]), number), t.dims)

    return translate


add("argmax", _index_of(largest))
add("argmin", _index_of(smallest))


def _extremum_and_index(reduce: Callable[[Graph, ir.Value, Sequence[int]], ir.Value]) -> Callable[..., Any]:
    def translate(t: Graph, x: ir.Value, axis: int, *_: Any) -> tuple[ir.Value, ir.Value]:
        if not dims_of(x):
            return x, t.constant(0, torch.int64)
        number = axis_of(axis, len(dims_of(x)))
        check_elements(t, dims_of(x), [number])
        found = reduce(t, x, [number])
        return t.reshape(found, t.dims), t.reshape(first_index(t, x, found, number), t.dims)

    return translate


add("max.dim", _extremum_and_index(largest))
add("min.dim", _extremum_and_index(smallest))
