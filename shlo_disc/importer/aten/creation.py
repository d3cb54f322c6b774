# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors made of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import tensor_type
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .graph import Graph, Number, working
from .table import translates


@translates("full", "full_like")
def full(t: Graph, _: Any, number: Any, *__: Any) -> ir.Value:
    """A tensor filled with a number."""
    return t.operand(number, t.dtype)


@translates("new_full")
def full_of_size(t: Graph, _: Any, __: Any, number: Any, *___: Any) -> ir.Value:
    """A tensor filled with a number."""
    return t.operand(number, t.dtype)


@translates("scalar_tensor", "prims.scalar_tensor.default")
def scalar(t: Graph, number: Any, *_: Any) -> ir.Value:
    """A number as a tensor of rank 0."""
    return t.operand(number, t.dtype)


@translates("zeros", "zeros_like", "new_zeros", "empty.memory_format", "empty_like", "new_empty", "empty_permuted",
            "new_empty_strided", "empty_strided")  # fmt: skip
def zeros(t: Graph, *_: Any) -> ir.Value:
    """Zeros, also where PyTorch leaves memory uninitialized."""
    return t.constant(0, t.dtype, t.dims)


@translates("ones", "ones_like", "new_ones")
def ones(t: Graph, *_: Any) -> ir.Value:
    """Ones."""
    return t.constant(1, t.dtype, t.dims)


@translates("fill.Scalar", "fill.Tensor")
def filled(t: Graph, _: Any, number: Any) -> ir.Value:
    """A number in place of every element."""
    return t.operand(number, t.dtype)


_WRITTEN = 1 << 16
"""Numbers of a range are written into the program up to so many."""


def _as_eager(t: Graph, function: Callable[..., torch.Tensor], *numbers: Any) -> ir.Value | None:
    """A range as PyTorch computes it here, which it does from the first of each vector of the processor.

    None where a number is no constant, or there are too many elements.
    """
    count = t.dims[0].constant
    if count is None or count > _WRITTEN or not all(isinstance(n, Number) for n in numbers):
        return None
    kind = working(t.dtype)
    with _disable_current_modes():  # Dynamo compiles while PyTorch's tensors have no elements
        found = function(*numbers, dtype=t.dtype)
        array: Any = found.to(kind).numpy()
    if array.shape != (count,):
        return None
    values = ir.DenseElementsAttr.get(array, type=tensor_type(t.dims, t.element(kind)))
    return t.convert(build.dense(values), t.dtype)


@translates("arange.start_step", "arange.start", "arange")
def arange(t: Graph, *arguments: Any) -> ir.Value:
    """start + step * i, computed in integers or double precision; PyTorch determines the number of elements."""
    overload = str(t.node.target).rpartition(".")[2]
    start: Any = 0 if overload == "default" else arguments[0]
    step: Any = arguments[2] if overload == "start_step" else 1
    kind = torch.float64 if t.dtype.is_floating_point else torch.int64
    if kind == torch.int64:
        start, step = (int(n) if isinstance(n, float) else n for n in (start, step))
    elif any(isinstance(n, float) and not n.is_integer() for n in (start, step)):
        end = arguments[0 if overload == "default" else 1]
        if (found := _as_eager(t, torch.arange, start, end, step)) is not None:
            return found
    place = t.iota(t.dims, 0, kind)
    if step != 1:
        place = build.multiply(place, t.operand(step, kind))
    if start != 0:
        place = build.add(place, t.operand(start, kind))
    return t.convert(place, t.dtype)


@translates("linspace", takes_complex=True)
def linspace(t: Graph, start: Any, end: Any, steps: Any, *_: Any) -> ir.Value:
    """Numbers at equal distances, the first half computed from the start and the second one from the end."""
    if (found := _as_eager(t, torch.linspace, start, end, steps)) is not None:
        return found
    if t.dtype.is_complex:
        raise t.refuse(
            f"complex numbers at equal distances have a translation for up to {_WRITTEN}, a number that does not vary"
        )
    is_whole = not t.dtype.is_floating_point
    kind, own = (torch.float64, torch.int64) if is_whole else (working(t.dtype), t.dtype)
    first, last = (t.convert(t.number(n, own), kind) for n in (start, end))
    count = t.dims[0]
    gaps = t.size(Expr.maximum(count - 1, 1), kind)
    step = t.stretch(build.divide(build.subtract(last, first), gaps), t.dims)
    place = t.iota(t.dims, 0, torch.int64)
    behind = build.subtract(t.operand(count - 1, torch.int64), place)
    low = build.add(t.stretch(first, t.dims), build.multiply(step, t.convert(place, kind)))
    high = build.subtract(t.stretch(last, t.dims), build.multiply(step, t.convert(behind, kind)))
    is_low = t.compare("LT", place, t.operand(Expr.maximum(count // 2, 1), torch.int64))
    return t.convert(t.select(is_low, low, high), t.dtype)


@translates("eye", "eye.m")
def eye(t: Graph, *_: Any) -> ir.Value:
    """Ones on the diagonal."""
    row, column = (t.iota(t.dims, axis, torch.int64) for axis in (0, 1))
    return t.convert(t.compare("EQ", row, column), t.dtype)


def _triangle(t: Graph, x: ir.Value, diagonal: Any, direction: str) -> ir.Value:
    rank = len(t.dims)
    row, column = (t.iota(t.dims, rank - n, torch.int64) for n in (2, 1))
    edge = build.add(row, t.operand(diagonal, torch.int64))
    return t.select(t.compare(direction, column, edge), x, t.constant(0, t.dtype, t.dims))


@translates("tril")
def tril(t: Graph, x: ir.Value, diagonal: Any = 0) -> ir.Value:
    """Zeros above a diagonal."""
    return _triangle(t, x, diagonal, "LE")


@translates("triu")
def triu(t: Graph, x: ir.Value, diagonal: Any = 0) -> ir.Value:
    """Zeros below a diagonal."""
    return _triangle(t, x, diagonal, "GE")
