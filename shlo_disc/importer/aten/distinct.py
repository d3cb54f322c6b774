# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Distinct elements, how often they occur, and elements repeated as often as a tensor says."""

from __future__ import annotations

from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import dims_of, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr, as_expr

from .data_sizes import places_of
from .graph import Graph, axis_of
from .index_ranges import check_equal
from .indexing import gather_at, scatter_at, written
from .ordering import lexical_order, ordered, running
from .reductions import largest, smallest, summed
from .relations import bind
from .searching import places_among
from .table import translates

_ONE = Expr.const(1)
Found = tuple[ir.Value, ir.Value, ir.Value]


@translates("_unique2", "_unique")
def unique(t: Graph, x: ir.Value, _: bool = True, inverse: bool = False, counts: bool = False) -> tuple[ir.Value, ...]:
    """The distinct elements in order, which of them each element is, and how often each occurs."""
    flat = t.reshape(x, (product(dims_of(x)),))
    values, order = ordered(t, flat, 0, False)
    found = _groups(t, values, order, inverse, counts)
    return found[: len(t.outs)]


@translates("unique_dim")
def unique_rows(t: Graph, x: ir.Value, axis: int, _: bool = True, inverse: bool = False, counts: bool = False) -> Found:
    """The distinct slices along an axis in lexicographic order, which of them each is, and how often each occurs."""
    front, rows = _rows(t, x, axis)
    width = dims_of(rows)[1].constant
    if width is None or width > _MOST:
        size = "a size that varies" if width is None else f"{width} elements"
        raise t.refuse(f"the slices have {size}, and are sorted for up to {_MOST}")
    order = lexical_order(t, rows)
    values = gather_at(t, front, [0], t.reshape(order, (*dims_of(order), _ONE)))
    return _to_axis(t, _groups(t, values, order, inverse, counts), axis)


_MOST = 64
"""Columns by which rows are sorted, which are operands of one sort each."""


@translates("unique_consecutive")
def unique_consecutive(
    t: Graph, x: ir.Value, inverse: bool = False, counts: bool = False, axis: int | None = None
) -> Found:
    """The elements or slices that differ from the one before, the number of each, and how many are equal in a row."""
    if axis is None:
        return _groups(t, t.reshape(x, (product(dims_of(x)),)), None, inverse, counts)
    return _to_axis(t, _groups(t, _rows(t, x, axis)[0], None, inverse, counts), axis)


def _rows(t: Graph, x: ir.Value, axis: int) -> tuple[ir.Value, ir.Value]:
    """A tensor with an axis in front, and with all that follows as one axis."""
    number = axis_of(axis, len(dims_of(x)))
    front = t.transpose(x, [number, *(a for a in range(len(dims_of(x))) if a != number)])
    return front, t.reshape(front, (dims_of(front)[0], product(dims_of(front)[1:])))


def _to_axis(t: Graph, found: Found, axis: int) -> Found:
    rank = len(dims_of(found[0]))
    order = list(range(1, rank))
    order.insert(axis_of(axis, rank), 0)
    return t.transpose(found[0], order), *found[1:]


def _groups(t: Graph, values: ir.Value, order: ir.Value | None, inverse: bool, counts: bool) -> Found:
    """The first of each run of equal elements along the first axis, the number of each element's run, and their sizes.

    order: where the elements stood before they were sorted.
    """
    size = dims_of(values)[:1]
    is_first = _differs_from_last(t, values)
    (starts,) = places_of(t, is_first, t.dims[_place_of_count(t)])
    found = gather_at(t, values, [0], t.reshape(starts, (*dims_of(starts), _ONE)))
    numbers = t.convert(is_first, torch.int64)
    number = build.subtract(running(t, numbers, 0, "add", 0), t.constant(1, torch.int64, size))
    empty = [t.constant(0, torch.int64, out.dims) for out in t.outs[1:]]
    totals = empty[-1]
    if counts:
        totals = scatter_at(t, totals, [0], t.reshape(number, (*size, _ONE)), t.constant(1, torch.int64, size), "add")
    if inverse and order is not None:
        places = t.reshape(order, (*size, _ONE))
        number = scatter_at(t, t.constant(0, torch.int64, size), [0], places, number, None)
    return found, t.reshape(number, t.outs[1].dims) if inverse else empty[0], totals


def _place_of_count(t: Graph) -> int:
    """The axis of the op's first result whose size is the number of distinct elements."""
    if len(t.dims) == 1:
        return 0
    name = {a.name: v for a, v in zip(t.node.target._schema.arguments, t.node.args, strict=False)}
    return axis_of(name.get("dim", t.node.kwargs.get("dim", 0)), len(t.dims))


def _differs_from_last(t: Graph, values: ir.Value) -> ir.Value:
    """Tells of each element along the first axis whether it is the first, or another than the one before."""
    size = dims_of(values)[:1]
    place = t.iota(size, 0, torch.int64)
    zero, one = (t.constant(n, torch.int64, size) for n in (0, 1))
    before = build.maximum(build.subtract(place, one), zero)
    last = gather_at(t, values, [0], t.reshape(before, (*size, _ONE)))
    differs = t.compare("NE", values, last)
    rest = list(range(1, len(dims_of(values))))
    if rest:
        start = t.constant(False, torch.bool)
        differs = t.reduce([differs], [start], rest, "or")[0]
    return build.or_(t.compare("EQ", place, zero), differs)


# ---- counts and repetitions -----------------------------------------------------------------------------------------


@translates("bincount")
def bincount(t: Graph, x: ir.Value, weights: ir.Value | None = None, least: Any = 0) -> ir.Value:
    """The count of each number from 0 on, or the sum of the weights of its occurrences."""
    place, (count,) = t.convert(x, torch.int64), t.dims
    _check_not_negative(t, place, "the smallest number")
    most = build.add(largest(t, place, [0]), t.constant(1, torch.int64))
    size = build.maximum(most, t.number(least, torch.int64))
    _read(t, build.maximum(size, t.constant(0, torch.int64)), count, "the number of elements of torch.bincount")
    ones = t.constant(1, t.dtype, dims_of(x)) if weights is None else t.convert(weights, t.dtype)
    return written(t, t.constant(0, t.dtype, t.dims), 0, place, ones, "add")


@translates("repeat_interleave.Tensor")
def repeated_places(t: Graph, repeats: ir.Value, size: Any = None) -> ir.Value:
    """The number of each element as often as the tensor says, in order."""
    times = t.convert(repeats, torch.int64)
    _check_not_negative(t, times, "the smallest number of repetitions")
    total = summed(t, times, [0])
    if size is None:
        _read(t, total, t.dims[0], "the sum of the repetitions")
    else:
        own = Expr.symbol(f"{t.node.name}_total")
        _read(t, total, own, "the sum of the repetitions")
        check_equal(t, own, as_expr(size), "the sum of the repetitions")
    ends = running(t, times, 0, "add", 0)
    return t.convert(places_among(t, ends, t.iota(t.dims, 0, torch.int64), True), t.dtype)


def _check_not_negative(t: Graph, x: ir.Value, what: str) -> None:
    """Check at each call that no element of a vector of integers is negative."""
    least = build.minimum(smallest(t, x, [0]), t.constant(2**31, torch.int64))  # what no element is smaller than
    _read(t, least, Expr.symbol(f"{t.node.name}_least"), what)


def _read(t: Graph, value: ir.Value, size: Expr, what: str) -> None:
    """Read a symbol from data, and say what it is."""
    if size.is_symbol and size.is_symbol not in t.bound:
        t.sources[size.is_symbol] = f"{what} at {t.line}"
        bind(t, value, size)
        return
    own = Expr.symbol(f"{t.node.name}_size")
    _read(t, value, own, what)
    check_equal(t, own, size, what)


__all__ = ["bincount", "repeated_places", "unique", "unique_consecutive", "unique_rows"]
