# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Paddings by a number. Those of other kinds PyTorch takes apart into indexing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr, as_expr

from .graph import Graph
from .index_ranges import check_not_negative
from .shapes import pad
from .table import translates

_ZERO = Expr.const(0)

Pads = list[tuple[Expr, Expr]]
"""For each axis the number of elements to add before and after; negative ones remove elements."""


def _for_axes(pads: Sequence[Any], rank: int) -> Pads:
    """PyTorch's list of paddings, which begins with the last axis, for all axes in order."""
    given = [(as_expr(pads[i]), as_expr(pads[i + 1])) for i in range(0, len(pads), 2)]
    return [(_ZERO, _ZERO)] * (rank - len(given)) + given[::-1]


@translates("constant_pad_nd")
def padded(t: Graph, x: ir.Value, pads: Sequence[Any], number: Any = 0) -> ir.Value:
    """Elements added or removed before and after those of the last axes."""
    found = _for_axes(pads, len(t.dims))
    for size, (low, high) in zip(dims_of(x), found, strict=True):
        _check_removed(t, size, low, high)
    lows, highs = zip(*found, strict=True) if found else ((), ())
    return pad(t, x, t.number(number, t.dtype), lows, highs, t.dims)


def _check_removed(t: Graph, size: Expr, low: Expr, high: Expr) -> None:
    """Check at each call that a padding by negative numbers removes no more elements than there are."""
    left = size + Expr.minimum(low, _ZERO) + Expr.minimum(high, _ZERO)
    if left != size:
        check_not_negative(t, left, f"a padding of {low} and {high} may remove more elements than {size}")
