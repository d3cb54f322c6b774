# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of a table reduced in bags, as recommender models read their embeddings."""

from __future__ import annotations

import math
from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .graph import Graph, working
from .indexing import embedding, gather_at, scatter_at
from .ordering import running
from .reductions import summed
from .table import translates

_ONE = Expr.const(1)
_SUM, _MEAN, _MAXIMUM = 0, 1, 2


@translates("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(
    t: Graph,
    table: ir.Value,
    index: ir.Value,
    offsets: ir.Value,
    _scale: bool = False,
    mode: int = _SUM,
    _sparse: bool = False,
    factors: ir.Value | None = None,
    _has_end: bool = False,
    padding: int = -1,
) -> tuple[ir.Value | None, ...]:
    """The sums, means or maxima of the rows of each bag, the bag of each row, and the number of rows of each bag.

    Bags begin at `offsets`. Rows at the index `padding` are left out. Which rows the maxima are of is not computed.
    """
    kind, bags = working(t.dtype), t.dims[0]
    if mode == _MAXIMUM and any(user.args[1] == 3 and user.users for user in t.node.users):
        raise t.refuse(*_OF_MAXIMA)
    rows = t.convert(embedding(t, table, index), kind)
    if factors is not None:
        rows = build.multiply(rows, t.broadcast(t.convert(factors, kind), dims_of(rows), [0]))
    bag = _bag_of(t, offsets, dims_of(index)[0])
    places = _kept(t, index, bag, bags, padding)
    sizes = _counts(t, places, bags)
    found = _reduced(t, rows, places, sizes, mode)
    others = [v if dims_of(v) == o.dims else None for v, o in zip((bag, sizes), t.outs[1:], strict=False)]
    filled = [
        t.constant(0, o.dtype, o.dims) if v is None else t.convert(v, o.dtype)
        for v, o in zip([*others, None], t.outs[1:], strict=True)
    ]
    return t.convert(found, t.dtype), *filled


_OF_MAXIMA = (
    "the gradient of the maxima of bags has no translation",
    "take bags of equal sizes as rows of indices, F.embedding(index, table).amax(1)",
)


@translates("_embedding_bag_backward")
def embedding_bag_backward(
    t: Graph,
    grad: ir.Value,
    index: ir.Value,
    offsets: ir.Value,
    _bag: ir.Value,
    _sizes: ir.Value,
    _maxima: ir.Value,
    _rows: Any,
    scale: bool,
    mode: int,
    is_sparse: bool,
    factors: ir.Value | None = None,
    padding: int = -1,
) -> ir.Value:
    """The gradient of the table of `_embedding_bag` for sums and means."""
    if mode == _MAXIMUM:
        raise t.refuse(*_OF_MAXIMA)
    if scale:
        raise t.refuse("gradients divided by counts of rows have no translation", "leave out scale_grad_by_freq")
    if is_sparse:
        raise t.refuse("a sparse gradient has no translation", "make the nn.EmbeddingBag with sparse=False")
    kind, bag = working(t.dtype), _bag_of(t, offsets, dims_of(index)[0])
    if mode == _MEAN:
        bags = dims_of(grad)[0]
        sizes = _counts(t, _kept(t, index, bag, bags, padding), bags)
        counts = t.convert(build.maximum(sizes, t.constant(1, torch.int64, (bags,))), kind)
        grad = build.divide(t.convert(grad, kind), t.broadcast(counts, dims_of(grad), [0]))
    rows = gather_at(t, t.convert(grad, kind), [0], _column(t, bag))
    own = t.convert(index, torch.int64)
    if factors is not None:
        rows = build.multiply(rows, t.broadcast(t.convert(factors, kind), dims_of(rows), [0]))
    places = _kept(t, own, own, t.dims[0], padding)
    return t.convert(scatter_at(t, t.constant(0, kind, t.dims), [0], places, rows, "add"), t.dtype)


@translates("_embedding_bag_per_sample_weights_backward")
def embedding_bag_factors_backward(
    t: Graph,
    grad: ir.Value,
    table: ir.Value,
    index: ir.Value,
    offsets: ir.Value,
    _bag: ir.Value,
    _mode: int,
    padding: int = -1,
) -> ir.Value:
    """The gradient of the factors of the rows of `_embedding_bag`."""
    kind, bag = working(t.dtype), _bag_of(t, offsets, dims_of(index)[0])
    rows = t.convert(gather_at(t, table, [0], _column(t, t.convert(index, torch.int64))), kind)
    found = summed(t, build.multiply(rows, gather_at(t, t.convert(grad, kind), [0], _column(t, bag))), [1])
    if padding >= 0:
        is_padding = t.compare("EQ", index, t.constant(padding, t.dtype_of(index), dims_of(index)))
        found = t.select(is_padding, t.constant(0, kind, t.dims), found)
    return t.convert(found, t.dtype)


def _column(t: Graph, places: ir.Value) -> ir.Value:
    """Places of a vector's elements, as gathers and scatters take them."""
    return t.reshape(places, (*dims_of(places), _ONE))


def _counts(t: Graph, places: ir.Value, bags: Expr) -> ir.Value:
    """The number of times that each place occurs (i64)."""
    ones = t.constant(1, torch.int64, dims_of(places)[:-1])
    return scatter_at(t, t.constant(0, torch.int64, (bags,)), [0], places, ones, "add")


def _bag_of(t: Graph, offsets: ir.Value, count: Expr) -> ir.Value:
    """The number of the bag that each of `count` rows is in: how many bags begin up to there, less one (i64)."""
    zeros = t.constant(0, torch.int64, (count,))
    places = t.reshape(t.convert(offsets, torch.int64), (*dims_of(offsets), _ONE))
    begins = scatter_at(t, zeros, [0], places, t.constant(1, torch.int64, dims_of(offsets)), "add")
    return build.subtract(running(t, begins, 0, "add", 0), t.constant(1, torch.int64, (count,)))


def _kept(t: Graph, index: ir.Value, bag: ir.Value, bags: Expr, padding: int) -> ir.Value:
    """The bag that each row is written to; behind all bags, which is nowhere, for rows that are padding."""
    if padding >= 0:
        is_padding = t.compare("EQ", index, t.constant(padding, t.dtype_of(index), dims_of(index)))
        bag = t.select(is_padding, t.operand(bags, torch.int64, dims_of(bag)), bag)
    return t.reshape(bag, (*dims_of(bag), _ONE))


def _reduced(t: Graph, rows: ir.Value, places: ir.Value, sizes: ir.Value, mode: int) -> ir.Value:
    kind = t.dtype_of(rows)
    start: Any = -math.inf if mode == _MAXIMUM else 0
    zeros = t.constant(0, kind, t.dims)
    name = "maximum" if mode == _MAXIMUM else "add"
    found = scatter_at(t, t.constant(start, kind, t.dims), [0], places, rows, name)
    if mode == _SUM:
        return found
    one = t.constant(1, torch.int64, dims_of(sizes))
    if mode == _MEAN:
        counts = t.convert(build.maximum(sizes, one), kind)
        return build.divide(found, t.broadcast(counts, t.dims, [0]))
    return t.select(t.broadcast(t.compare("LT", sizes, one), t.dims, [0]), zeros, found)
