# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements chosen by their order along an axis: medians, the k-th smallest, the most frequent, running extremes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import dims_of, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr, as_expr

from .graph import Graph, axis_of, working
from .indexing import gather
from .ordering import ordered, running
from .reductions import first_index, highest, largest, lowest, summed
from .shapes import piece
from .table import translates

_ONE = Expr.const(1)


def _is_nan(t: Graph, x: ir.Value) -> ir.Value:
    return t.compare("NE", x, x)


def _at(t: Graph, x: ir.Value, axis: int, place: ir.Value) -> ir.Value:
    """The elements at one place along an axis, which stays with a size of 1; `place` is without it."""
    dims = tuple(_ONE if a == axis else d for a, d in enumerate(dims_of(x)))
    return gather(t, x, axis, t.reshape(place, dims))


def _shaped(t: Graph, values: ir.Value, places: ir.Value) -> tuple[ir.Value, ir.Value]:
    return t.reshape(values, t.dims), t.reshape(places, t.dims)


# ---- by their rank --------------------------------------------------------------------------------------------------


@translates("median.dim")
def median(t: Graph, x: ir.Value, axis: int, _: bool = False) -> tuple[ir.Value, ir.Value]:
    """The lower median along an axis and its position; NaN if there is one."""
    if not dims_of(x):
        return x, t.constant(0, torch.int64)
    number = axis_of(axis, len(dims_of(x)))
    values, places = ordered(t, x, number, False)
    middle = (dims_of(x)[number] - 1) // 2
    value, place = (piece(t, v, number, middle, _ONE) for v in (values, places))
    if not t.dtype.is_floating_point:
        return _shaped(t, value, place)
    worst = largest(t, x, [number])
    first = t.reshape(first_index(t, x, worst, number), dims_of(value))
    has_nan = t.reshape(_is_nan(t, worst), dims_of(value))
    nan = t.constant(math.nan, t.dtype, dims_of(value))
    return _shaped(t, t.select(has_nan, nan, value), t.select(has_nan, first, place))


@translates("nanmedian.dim")
def nanmedian(t: Graph, x: ir.Value, axis: int, keep: bool = False) -> tuple[ir.Value, ir.Value]:
    """The lower median of the elements along an axis that are not NaN, and its position."""
    if not dims_of(x) or not t.dtype.is_floating_point:
        return median(t, x, axis, keep)
    number = axis_of(axis, len(dims_of(x)))
    values, places = ordered(t, x, number, False)
    count = summed(t, t.convert(t.compare("EQ", x, x), torch.int64), [number])
    zero, one, two = (t.constant(n, torch.int64, dims_of(count)) for n in (0, 1, 2))
    middle = build.divide(build.maximum(build.subtract(count, one), zero), two)
    return _shaped(t, _at(t, values, number, middle), _at(t, places, number, middle))


def _of_all(choose: Callable[..., tuple[ir.Value, ir.Value]]) -> Callable[..., ir.Value]:
    def translate(t: Graph, x: ir.Value) -> ir.Value:
        """The lower median of all elements."""
        if all(d.constant == 1 for d in dims_of(x)):
            return t.reshape(x, t.dims)
        return choose(t, t.reshape(x, (product(dims_of(x)),)), 0)[0]

    return translate


translates("median")(_of_all(median))
translates("nanmedian")(_of_all(nanmedian))


@translates("kthvalue")
def kthvalue(t: Graph, x: ir.Value, k: Any, axis: int = -1, _: bool = False) -> tuple[ir.Value, ir.Value]:
    """The k-th smallest element along an axis, counted from 1, and its position; NaN is the largest."""
    if not dims_of(x):
        return x, t.constant(0, torch.int64)
    number = axis_of(axis, len(dims_of(x)))
    found = (piece(t, v, number, as_expr(k) - 1, _ONE) for v in ordered(t, x, number, False))
    return _shaped(t, *found)


@translates("mode")
def mode(t: Graph, x: ir.Value, axis: int = -1, _: bool = False) -> tuple[ir.Value, ir.Value]:
    """The most frequent element along an axis, the smallest of several, and its last position."""
    dims = dims_of(x)
    if not dims:
        return x, t.constant(0, torch.int64)
    number = axis_of(axis, len(dims))
    values, places = ordered(t, x, number, False)
    here, zero = t.iota(dims, number, torch.int64), t.constant(0, torch.int64, dims)
    before = gather(t, values, number, build.maximum(build.subtract(here, t.constant(
        1, torch.int64, dims)), zero))  # fmt: skip
    starts = t.select(t.compare("EQ", values, before), zero, here)
    least = int(torch.iinfo(torch.int64).min)
    length = build.subtract(here, running(t, starts, number, "maximum", least))
    best = first_index(t, length, largest(t, length, [number]), number)
    return _shaped(t, _at(t, values, number, best), _at(t, places, number, best))


# ---- up to each place -----------------------------------------------------------------------------------------------


def _extreme(name: str, start: Callable[[torch.dtype], float | int]) -> Callable[..., tuple[ir.Value, ir.Value]]:
    def translate(t: Graph, x: ir.Value, axis: int) -> tuple[ir.Value, ir.Value]:
        """The running extreme along an axis, and its last position; NaN from the first NaN on."""
        dims = dims_of(x)
        if not dims:
            return x, t.constant(0, torch.int64)
        number, kind = axis_of(axis, len(dims)), t.dtype
        value = t.convert(x, torch.uint8) if kind == torch.bool else x
        own = t.dtype_of(value)
        found = running(t, value, number, name, start(own))
        hits = t.compare("EQ", value, found)
        if own.is_floating_point:
            hits = build.or_(hits, _is_nan(t, value))
        places = t.select(hits, t.iota(dims, number, torch.int64), t.constant(0, torch.int64, dims))
        last = running(t, places, number, "maximum", int(torch.iinfo(torch.int64).min))
        return t.convert(found, kind), last

    return translate


translates("cummax")(_extreme("maximum", lowest))
translates("cummin")(_extreme("minimum", highest))


@translates("logcumsumexp")
def logcumsumexp(t: Graph, x: ir.Value, axis: int) -> ir.Value:
    """The logarithm of the running sum of exp(x) along an axis.

    Each sum is formed beside the largest element so far, as in online softmax, so that nothing overflows.
    """
    if not t.dims:
        return x
    kind = working(t.dtype)
    number = axis_of(axis, len(t.dims))
    found = running(t, t.convert(x, kind), number, lambda a, b: _log_of_sum(t, a, b), -math.inf)
    return t.convert(found, t.dtype)


def _log_of_sum(t: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """log(exp(a) + exp(b))."""
    high, low = build.maximum(a, b), build.minimum(a, b)
    apart = build.exponential(build.subtract(low, high))
    found = build.add(high, build.log_plus_one(apart))
    is_infinite = t.compare("EQ", build.abs(high), t.constant(math.inf, t.dtype_of(a), dims_of(a)))
    return t.select(is_infinite, high, found)
