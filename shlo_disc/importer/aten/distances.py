# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Distances between the rows of matrices."""

from __future__ import annotations

import math

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .graph import Graph
from .indexing import scatter_at
from .products import dot
from .reductions import summed
from .table import translates

_ONE = Expr.const(1)


@translates("_cdist_forward")
def cdist(t: Graph, x: ir.Value, y: ir.Value, p: float, mode: int | None = None) -> ir.Value:
    """The p-norms of the differences of all rows of `x` and `y`; with mode 1, Euclidean ones by a product."""
    if p == 2 and mode == 1:
        return _euclidean(t, *(t.stretch(v, (*t.dims[:-2], *dims_of(v)[-2:])) for v in (x, y)))
    width = dims_of(x)[-1]
    wide = (*t.dims, width)
    left = t.stretch(t.reshape(x, (*dims_of(x)[:-1], _ONE, width)), wide)
    right = t.stretch(t.reshape(y, (*dims_of(y)[:-2], _ONE, *dims_of(y)[-2:])), wide)
    return _norms(t, build.subtract(left, right), p)


def _euclidean(t: Graph, x: ir.Value, y: ir.Value) -> ir.Value:
    """sqrt(|x|^2 - 2 x @ y.T + |y|^2), whose rounding may be that of the squares."""
    batch = len(t.dims) - 2
    kind = t.dtype
    found = dot(t, x, y, batch, (batch + 1, batch + 1))
    total = build.multiply(found, t.constant(-2, kind, t.dims))
    for value, axis in ((x, batch), (y, batch + 1)):
        squares = summed(t, build.multiply(value, value), [batch + 1])
        total = build.add(total, t.broadcast(squares, t.dims, [*range(batch), axis]))
    return build.sqrt(build.maximum(total, t.constant(0, kind, t.dims)))


def _norms(t: Graph, x: ir.Value, p: float) -> ir.Value:
    """The p-norm along the last axis, which is gone."""
    kind, axis = t.dtype_of(x), len(dims_of(x)) - 1
    size = build.abs(x)
    if p == math.inf:
        return t.reduce([size], [t.constant(0, kind)], [axis], "maximum")[0]
    if p == 0:
        flags = t.convert(t.compare("NE", size, t.constant(0, kind, dims_of(size))), kind)
        return summed(t, flags, [axis])
    if p == 1:
        return summed(t, size, [axis])
    if p == 2:
        return build.sqrt(summed(t, build.multiply(x, x), [axis]))
    total = summed(t, build.power(size, t.constant(p, kind, dims_of(size))), [axis])
    return build.power(total, t.constant(1 / p, kind, dims_of(total)))


@translates("_pdist_forward")
def pdist(t: Graph, x: ir.Value, p: float = 2.0) -> ir.Value:
    """The p-norms of the differences of each row and the rows after it, row by row."""
    count, width = dims_of(x)
    wide = (count, count, width)
    both = (t.broadcast(x, wide, axes) for axes in ([0, 2], [1, 2]))
    found = _norms(t, build.subtract(*both), p)
    places = t.reshape(_places_of_pairs(t, count), (count, count, _ONE))
    zeros = t.constant(0, t.dtype, t.dims)
    return scatter_at(t, zeros, [0], places, found, None)


def _places_of_pairs(t: Graph, count: Expr) -> ir.Value:
    """The number of the pair (i, j) among those of i < j, row by row (i64); -1, which is nowhere, for others."""
    dims: Dims = (count, count)
    row, column = (t.iota(dims, axis, torch.int64) for axis in (0, 1))
    one, two, n = (t.operand(e, torch.int64, dims) for e in (1, 2, count))
    before = build.subtract(build.multiply(two, n), build.add(row, one))
    start = build.divide(build.multiply(row, before), two)
    place = build.subtract(build.add(start, build.subtract(column, row)), one)
    return t.select(t.compare("LT", row, column), place, t.constant(-1, torch.int64, dims))
