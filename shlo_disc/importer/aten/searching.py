# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Places in sorted sequences, and how many elements each of equal intervals has."""

from __future__ import annotations

from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import dims_of, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .graph import Graph, working
from .indexing import gather, gather_at, written
from .loops import repeated_while
from .reductions import largest, smallest
from .table import translates

_ONE = Expr.const(1)


@translates("searchsorted.Tensor", "searchsorted.Scalar")
def searchsorted(
    t: Graph,
    sequence: ir.Value,
    values: Any,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: ir.Value | None = None,
) -> ir.Value:
    """The position of each value in a sorted sequence, before or after (`right`) equal ones."""
    if sorter is not None:
        sequence = gather(t, sequence, -1, sorter)
    return _places(t, sequence, values, right or side == "right")


@translates("bucketize.Tensor", "bucketize.Scalar")
def bucketize(t: Graph, values: Any, sequence: ir.Value, out_int32: bool = False, right: bool = False) -> ir.Value:
    """The position of each value among sorted boundaries."""
    return _places(t, sequence, values, right)


def _places(t: Graph, sequence: ir.Value, values: Any, is_right: bool) -> ir.Value:
    """The insertion places of values, in the dtype that both are promoted to."""
    kind = t.dtype_of(sequence)
    if isinstance(values, ir.Value):
        kind = torch.promote_types(kind, t.dtype_of(values))
    elif isinstance(values, float) and not kind.is_floating_point:
        kind = torch.get_default_dtype()
    row, wanted = t.convert(sequence, kind), t.operand(values, kind)
    return t.convert(places_among(t, row, wanted, is_right), t.dtype)


def places_among(t: Graph, row: ir.Value, wanted: ir.Value, is_right: bool) -> ir.Value:
    """The places (i64) at which values go into a sorted sequence of their dtype, found by halving a range of places."""
    size, dims = dims_of(row)[-1], dims_of(wanted)
    zeros, ends = t.constant(0, torch.int64, dims), t.operand(size, torch.int64, dims)
    start = [t.size(size, torch.int64), zeros, ends]

    def is_left(left: ir.Value, *_: ir.Value) -> ir.Value:
        return t.compare("GT", left, t.constant(0, torch.int64))

    return repeated_while(start, is_left, lambda *values: _halved(t, row, wanted, is_right, *values))[1]


def _halved(
    t: Graph, row: ir.Value, wanted: ir.Value, is_right: bool, left: ir.Value, low: ir.Value, high: ir.Value
) -> list[ir.Value]:
    """The range of places of each value, one half of what it was, and half of a number of steps."""
    two = t.constant(2, torch.int64, dims_of(low))
    middle = build.divide(build.add(low, high), two)
    is_before = t.compare("GT" if is_right else "GE", _read(t, row, middle), wanted)
    is_open = t.compare("LT", low, high)
    behind = build.add(middle, t.constant(1, torch.int64, dims_of(low)))
    lower = t.select(build.and_(is_open, build.not_(is_before)), behind, low)
    higher = t.select(build.and_(is_open, is_before), middle, high)
    return [build.divide(left, t.constant(2, torch.int64)), lower, higher]


def _read(t: Graph, row: ir.Value, places: ir.Value) -> ir.Value:
    """The elements at places of one sequence, or of the sequence of each row; at its end its last one."""
    dims, last = dims_of(places), t.operand(dims_of(row)[-1] - 1, torch.int64, dims_of(places))
    own = build.minimum(places, last)
    if len(dims_of(row)) == 1:
        return gather_at(t, row, [0], t.reshape(own, (*dims, _ONE)))
    return gather(t, row, -1, own)


@translates("histc")
def histc(t: Graph, x: ir.Value, bins: int = 100, low: Any = 0, high: Any = 0) -> ir.Value:
    """The number of elements in each of `bins` equal intervals between two numbers, or between the extremes."""
    kind, dims = working(t.dtype), (product(dims_of(x)),)
    value = t.reshape(t.convert(x, kind), dims)
    first, last = (t.number(n, kind) for n in (low, high))
    if low == high:
        first, last = _spread(t, value, first, last)
    edges = [t.broadcast(n, dims, ()) for n in (first, last)]
    distance = build.multiply(build.subtract(value, edges[0]), t.constant(bins, kind, dims))
    place = t.convert(build.divide(distance, build.subtract(edges[1], edges[0])), torch.int64)
    place = build.minimum(place, t.constant(bins - 1, torch.int64, dims))
    inside = build.and_(t.compare("GE", value, edges[0]), t.compare("LE", value, edges[1]))
    place = t.select(inside, place, t.constant(0, torch.int64, dims))
    return written(t, t.constant(0, t.dtype, t.dims), 0, place, t.convert(inside, t.dtype), "add")


def _spread(t: Graph, x: ir.Value, low: ir.Value, high: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The extremes where two numbers are both 0, one apart on both sides where these are equal."""
    zero, one = (t.constant(n, t.dtype_of(x)) for n in (0, 1))
    has_any = t.compare("GT", t.size(dims_of(x)[0], torch.int64), t.constant(0, torch.int64))
    is_open = build.and_(has_any, t.compare("EQ", low, high))
    low, high = t.select(is_open, smallest(t, x, [0]), low), t.select(is_open, largest(t, x, [0]), high)
    is_flat = t.compare("EQ", low, high)
    apart = t.select(is_flat, one, zero)
    return build.subtract(low, apart), build.add(high, apart)
