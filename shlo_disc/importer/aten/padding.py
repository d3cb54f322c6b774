# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Paddings, by a number or by the elements at the ends. Those of other kinds PyTorch takes apart into indexing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr, as_expr

from .graph import Graph, working
from .index_ranges import check_not_negative
from .reductions import summed
from .shapes import pad, piece
from .table import translates

_ZERO, _ONE = Expr.const(0), Expr.const(1)

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


@translates("replication_pad1d_backward", "replication_pad2d_backward", "replication_pad3d_backward")
def replicated_backward(t: Graph, gradient: ir.Value, _: Any, pads: Sequence[Any]) -> ir.Value:
    """The gradient of a padding by the elements at the ends: those of the copies are added to that of the element."""
    value = t.convert(gradient, working(t.dtype))
    for axis, (low, high) in enumerate(_for_axes(pads, len(t.dims))):
        value = _ends_added(t, value, axis, t.dims[axis], low, high)
    return t.convert(value, t.dtype)


def _ends_added(t: Graph, x: ir.Value, axis: int, size: Expr, low: Expr, high: Expr) -> ir.Value:
    """The elements between the paddings along an axis, the sums of the paddings added to the first and the last one."""
    if low.constant == high.constant == 0:
        return x
    wide, kind = dims_of(x), t.dtype_of(x)
    dims = tuple(size if a == axis else d for a, d in enumerate(wide))
    lows, highs = ([-n if a == axis else _ZERO for a in range(len(wide))] for n in (low, high))
    found = pad(t, x, t.constant(0, kind), lows, highs, dims)
    along = t.iota(dims, axis, torch.int64)
    first = Expr.minimum(Expr.maximum(low, _ZERO), wide[axis])
    last = Expr.minimum(Expr.maximum(low + size, _ZERO), wide[axis])
    for start, count, place in ((_ZERO, first, _ZERO), (last, wide[axis] - last, size - 1)):
        if count.constant == 0:
            continue
        total = t.reshape(summed(t, piece(t, x, axis, start, count), [axis]), _without(dims, axis))
        more = build.add(found, t.stretch(total, dims))
        found = t.select(t.compare("EQ", along, t.operand(place, torch.int64, dims)), more, found)
    return found


def _without(dims: Sequence[Expr], axis: int) -> tuple[Expr, ...]:
    """Sizes with a 1 at an axis."""
    return tuple(_ONE if a == axis else d for a, d in enumerate(dims))
