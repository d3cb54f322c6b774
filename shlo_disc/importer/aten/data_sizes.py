# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that are read from data: where a mask holds, and integers that become sizes."""

from __future__ import annotations

from typing import Any

import torch

from shlo_disc.shape_dialect.dialect.types import dims_of, product, tensor_type
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .graph import Graph
from .reductions import summed
from .relations import bind
from .shapes import join
from .sizes import size_of
from .table import translates

_ONE = Expr.const(1)


def places_of(t: Graph, x: ir.Value, count: Expr) -> list[ir.Value]:
    """For each axis the indices (i64) of the elements that are not zero, in row-major order, of which `count` is many.

    `count` becomes a symbol that is read while the program runs.
    """
    dims = dims_of(x)
    mask = t.reshape(t.convert(x, torch.bool), (product(dims),))
    if not count.is_symbol:
        raise t.refuse("how many elements are not zero is said by another size", "leave the number open")
    if count.is_symbol not in t.bound:
        bind(t, summed(t, t.convert(mask, torch.int64), [0]), count)
    element = t.element(torch.int64)
    flat = ir.Operation.create("disc.nonzero", [tensor_type((count,), element)], [mask]).results[0]
    found = []
    for size in reversed(dims):
        divisor = t.operand(size, torch.int64, (count,))
        found.append(t.pointwise("remainder", flat, divisor))
        flat = t.pointwise("divide", flat, divisor)
    return found[::-1]


@translates("nonzero")
def nonzero(t: Graph, x: ir.Value) -> ir.Value:
    """The indices of the nonzero elements, one per row."""
    count, rank = t.dims
    found = places_of(t, x, count)
    if not found:
        raise t.refuse("nonzero of a tensor of rank 0 has no translation", "reshape it to one element")
    columns = [t.reshape(v, (count, _ONE)) for v in found]
    return columns[0] if len(columns) == 1 else join(t, columns, 1, (count, rank))


@translates("_local_scalar_dense")
def item(t: Graph, x: ir.Value) -> Expr:
    """An integer that is read out of a tensor: a size, or an index, which may be negative."""
    value: Any = t.node.meta["val"]
    if not isinstance(value, torch.SymInt):
        raise t.refuse("a number that is read out of a tensor has no translation", "keep it a tensor")
    size = size_of(value)
    low = value.node.shape_env.bound_sympy(value.node.expr).lower
    if not size.is_symbol:
        raise t.refuse(f"an integer that is read out of a tensor is known as {size}")
    bind(t, t.reshape(t.convert(x, torch.int64), ()), size, may_be_negative=not low >= 0)
    return size
