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
from .indexing import embedding, scatter_at
from .ordering import running
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
        raise t.refuse("the gradient of the maxima of bags has no translation", "use sums or means")
    rows = t.convert(embedding(t, table, index), kind)
    if factors is not None:
        rows = build.multiply(rows, t.broadcast(t.convert(factors, kind), dims_of(rows), [0]))
    bag = _bag_of(t, offsets, dims_of(index)[0])
    places = _kept(t, index, bag, bags, padding)
    sizes = scatter_at(
        t, t.constant(0, torch.int64, (bags,)), [0], places, t.constant(1, torch.int64, dims_of(index)), "add"
    )
    found = _reduced(t, rows, places, sizes, mode)
    others = [v if dims_of(v) == o.dims else None for v, o in zip((bag, sizes), t.outs[1:], strict=False)]
    filled = [
        t.constant(0, o.dtype, o.dims) if v is None else t.convert(v, o.dtype)
        for v, o in zip([*others, None], t.outs[1:], strict=True)
    ]
    return t.convert(found, t.dtype), *filled


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
