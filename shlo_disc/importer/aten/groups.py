# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of groups of rows, each group with a matrix of its own, as layers with experts have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .graph import Graph
from .indexing import gather_at
from .loops import counted
from .products import dot
from .table import translates

_ONE = Expr.const(1)


@translates("transformers.grouped_mm_fallback.default", "_grouped_mm")
def grouped_product(t: Graph, x: ir.Value, weights: ir.Value, ends: Any = None, bias: Any = None, *_: Any) -> ir.Value:
    """The rows up to each end times the matrix of their group; rows after the last end are 0."""
    _check(t, x, weights, ends, bias)

    def step(group: ir.Value, total: ir.Value) -> list[ir.Value]:
        found = dot(t, x, _matrix(t, weights, group), 0, (1, 0), t.dtype)
        return [t.select(_rows(t, ends, group, dims_of(found)), found, total)]

    return _for_each(t, weights, [t.constant(0, t.dtype, t.dims)], step)[0]


@translates("transformers.grouped_mm_fallback_backward.default")
def grouped_product_backward(
    t: Graph, x: ir.Value, weights: ir.Value, ends: Any, gradient: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """The gradients of the rows and of the matrices."""
    _check(t, x, weights, ends, None)
    kinds = [t.dtype_of(v) for v in (x, weights)]

    def step(group: ir.Value, rows: ir.Value, matrices: ir.Value) -> list[ir.Value]:
        inside = _rows(t, ends, group, dims_of(gradient))
        own = t.select(inside, gradient, t.constant(0, t.dtype_of(gradient), dims_of(gradient)))
        back = dot(t, own, _matrix(t, weights, group), 0, (1, 1), kinds[0])
        added = t.select(_rows(t, ends, group, dims_of(rows)), back, rows)
        matrix = t.reshape(dot(t, x, own, 0, (0, 0), kinds[1]), (_ONE, *dims_of(weights)[1:]))
        zero = t.constant(0, torch.int64)
        written = t.op("dynamic_update_slice", [matrices, matrix, group, zero, zero], dims_of(matrices),
                       element_type_of(matrices))  # fmt: skip
        return [added, written]

    starts = [t.constant(0, kind, dims_of(v)) for kind, v in zip(kinds, (x, weights), strict=True)]
    rows, matrices = _for_each(t, weights, starts, step)
    return rows, matrices


def _check(t: Graph, x: ir.Value, weights: ir.Value, ends: Any, bias: Any) -> None:
    if ends is None or bias is not None or len(dims_of(x)) != 2 or len(dims_of(weights)) != 3:
        raise t.refuse("this form of a grouped product has no translation", "give rows, matrices and the groups' ends")


def _matrix(t: Graph, weights: ir.Value, group: ir.Value) -> ir.Value:
    """The matrix of a group."""
    dims = dims_of(weights)
    return t.reshape(gather_at(t, weights, [0], t.reshape(group, (_ONE, _ONE))), dims[1:])


def _rows(t: Graph, ends: ir.Value, group: ir.Value, dims: Sequence[Expr]) -> ir.Value:
    """The mask of the elements that are in the rows of a group."""
    zero, one = (t.constant(n, torch.int64) for n in (0, 1))
    before = build.maximum(build.subtract(group, one), zero)
    own, last = (
        t.reshape(gather_at(t, t.convert(ends, torch.int64), [0], t.reshape(g, (_ONE, _ONE))), ())
        for g in (group, before)
    )
    start = t.select(t.compare("EQ", group, zero), zero, last)
    row = t.iota(tuple(dims), 0, torch.int64)
    low, high = (t.broadcast(v, dims, ()) for v in (start, own))
    return build.and_(t.compare("GE", row, low), t.compare("LT", row, high))


def _for_each(
    t: Graph, weights: ir.Value, starts: Sequence[ir.Value], step: Callable[..., list[ir.Value]]
) -> list[ir.Value]:
    """The values that a step makes, group by group."""
    return counted(t, lambda: t.size(dims_of(weights)[0], torch.int64), starts, step)
