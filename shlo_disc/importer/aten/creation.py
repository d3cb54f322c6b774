# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors made of numbers."""

from __future__ import annotations

from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.mlir import ir

from .graph import Graph
from .table import translates


@translates("full", "full_like")
def full(t: Graph, _: Any, number: Any, *__: Any) -> ir.Value:
    """A tensor filled with a number."""
    return t.operand(number, t.dtype)


@translates("new_full")
def full_of_size(t: Graph, _: Any, __: Any, number: Any, *___: Any) -> ir.Value:
    """A tensor filled with a number."""
    return t.operand(number, t.dtype)


@translates("scalar_tensor")
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


@translates("arange.start_step", "arange.start", "arange")
def arange(t: Graph, *arguments: Any) -> ir.Value:
    """start + step * i, computed in integers or double precision; PyTorch determines the number of elements."""
    overload = str(t.node.target).rpartition(".")[2]
    start: Any = 0 if overload == "default" else arguments[0]
    step: Any = arguments[2] if overload == "start_step" else 1
    kind = torch.float64 if t.dtype.is_floating_point else torch.int64
    if isinstance(start, float) or isinstance(step, float):
        kind = torch.float64
    place = t.iota(t.dims, 0, kind)
    if step != 1:
        place = build.multiply(place, t.operand(step, kind))
    if start != 0:
        place = build.add(place, t.operand(start, kind))
    return t.convert(place, t.dtype)


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
