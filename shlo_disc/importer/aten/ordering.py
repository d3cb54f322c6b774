# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting, the largest elements, and sums along an axis up to each place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of
from shlo_disc.shape_dialect.dialect.window import WINDOW, Window, window_attribute
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr, as_expr

from .graph import Graph, axis_of, pairs, working
from .shapes import piece
from .table import translates

_ZERO, _ONE = Expr.const(0), Expr.const(1)


def _key(t: Graph, x: ir.Value) -> ir.Value:
    """The sort key of elements: zeros of both signs are equal, and so are all NaNs, which come last."""
    kind, dims = t.dtype_of(x), dims_of(x)
    if kind == torch.bool:
        return t.convert(x, torch.uint8)
    if not kind.is_floating_point:
        return x
    zero, nan = (t.constant(n, kind, dims) for n in (0.0, math.nan))
    plain = t.select(t.compare("EQ", x, zero), zero, x)
    return t.select(t.compare("NE", x, x), nan, plain)


def ordered(t: Graph, x: ir.Value, axis: int, descending: bool) -> tuple[ir.Value, ir.Value]:
    """The elements sorted along an axis, equal ones in their order, and where they stood (i64)."""
    dims, key = dims_of(x), _key(t, x)
    operands = [key, x, t.iota(dims, axis, torch.int64)]
    i64 = ir.IntegerType.get_signless(64)
    attributes: dict[str, ir.Attribute] = {
        "dimension": ir.IntegerAttr.get(i64, axis), "is_stable": ir.BoolAttr.get(True)
    }  # fmt: skip
    op = ir.Operation.create("stablehlo.sort", [v.type for v in operands], operands, attributes, regions=1)
    types = [ir.RankedTensorType.get([], element_type_of(v)) for v in operands for _ in range(2)]
    kind = "TOTALORDER" if t.dtype_of(key).is_floating_point else None
    t.body(op, types, lambda a, b, *_: [_comparison(t, "GT" if descending else "LT", a, b, kind)])
    return op.results[1], op.results[2]


def lexical_order(t: Graph, rows: ir.Value) -> ir.Value:
    """The places (i64) of the rows of a matrix when they are sorted by their first elements, then by the next ones."""
    size, width = dims_of(rows)
    columns = [t.reshape(piece(t, rows, 1, Expr.const(i), _ONE), (size,)) for i in range(width.constant or 0)]
    operands = [*(_key(t, column) for column in columns), t.iota((size,), 0, torch.int64)]
    attributes: dict[str, ir.Attribute] = {
        "dimension": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0), "is_stable": ir.BoolAttr.get(True)
    }  # fmt: skip
    op = ir.Operation.create("stablehlo.sort", [v.type for v in operands], operands, attributes, regions=1)
    types = [ir.RankedTensorType.get([], element_type_of(v)) for v in operands for _ in range(2)]

    def body(*given: ir.Value) -> list[ir.Value]:
        pairs = [(given[2 * i], given[2 * i + 1]) for i in range(len(columns))]
        is_before = t.constant(False, torch.bool)
        for a, b in reversed(pairs):
            equal = build.and_(t.compare("EQ", a, b), is_before)
            is_before = build.or_(t.compare("LT", a, b), equal)
        return [is_before]

    t.body(op, types, body)
    return op.results[-1]


def _comparison(t: Graph, direction: str, a: ir.Value, b: ir.Value, kind: str | None) -> ir.Value:
    found = t.compare(direction, a, b)
    if kind is not None:
        found.owner.attributes["compare_type"] = ir.Attribute.parse(f"#stablehlo<comparison_type {kind}>")  # type: ignore[union-attr]
    return found


@translates("sort", "sort.stable")
def sort(t: Graph, x: ir.Value, *arguments: Any) -> tuple[ir.Value, ir.Value]:
    """The elements sorted along an axis, and their positions."""
    axis, descending = arguments[-2:]
    if not dims_of(x):
        return x, t.constant(0, torch.int64)
    return ordered(t, x, axis_of(axis, len(dims_of(x))), bool(descending))


@translates("argsort", "argsort.stable")
def argsort(t: Graph, x: ir.Value, *arguments: Any) -> ir.Value:
    """The positions of the sorted elements."""
    return sort(t, x, *arguments)[1]


@translates("topk")
def topk(t: Graph, x: ir.Value, count: Any, axis: int = -1, largest: bool = True, *_: Any) -> tuple[ir.Value, ir.Value]:
    """The `count` largest or smallest elements along an axis, sorted, and their positions."""
    if not dims_of(x):
        return x, t.constant(0, torch.int64)
    number = axis_of(axis, len(dims_of(x)))
    found = ordered(t, x, number, largest)
    values, places = (piece(t, v, number, Expr.const(0), as_expr(count)) for v in found)
    return values, places


def _running(name: str, start: int) -> Callable[..., ir.Value]:
    def translate(t: Graph, x: ir.Value, axis: int, *_: Any) -> ir.Value:
        if not t.dims:
            return t.convert(x, t.dtype)
        kind = working(t.dtype)
        return t.convert(running(t, t.convert(x, kind), axis_of(axis, len(t.dims)), name, start), t.dtype)

    return translate


translates("cumsum")(_running("add", 0))
translates("cumprod")(_running("multiply", 1))


def running(
    t: Graph, x: ir.Value, axis: int, name: str | Callable[[ir.Value, ir.Value], ir.Value], start: float | int
) -> ir.Value:
    """Each element reduced with all before it along an axis, as windows of all sizes up to that of the axis.

    name: of an op on elements, or what builds more than one.
    """
    dims = dims_of(x)
    ones, zeros = [_ONE] * len(dims), [_ZERO] * len(dims)
    size, low = list(ones), list(zeros)
    size[axis], low[axis] = dims[axis], dims[axis] - 1
    is_static = dims[axis].constant is not None
    numbers = [(d.constant or 1) if is_static else 1 for d in size]
    padding = [n for e in low for n in ((e.constant or 0) if is_static else 0, 0)]
    plain = ir.DenseI64ArrayAttr.get([1] * len(dims))
    attributes: dict[str, ir.Attribute] = {
        "window_dimensions": ir.DenseI64ArrayAttr.get(numbers), "window_strides": plain, "base_dilations": plain,
        "window_dilations": plain, "padding": pairs(padding),
    }  # fmt: skip
    if not is_static:
        window = Window(*map(tuple, (size, ones, ones, ones, low, zeros)))
        attributes[WINDOW] = window_attribute(window)
    scalar = t.constant(start, t.dtype_of(x))
    op = ir.Operation.create("stablehlo.reduce_window", [x.type], [x, scalar], attributes, regions=1)
    t.body(op, [scalar.type] * 2, lambda a, b: [t.pointwise(name, a, b) if isinstance(name, str) else name(a, b)])
    return op.results[0]
