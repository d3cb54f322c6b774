# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that are read from data: where a mask holds, and integers that become sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import dims_of, product, tensor_type
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .graph import Graph
from .index_ranges import check_equal
from .reductions import summed
from .relations import bind
from .shapes import join, piece
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
        t.sources[count.is_symbol] = f"the number of elements that are not zero, or where a mask holds, at {t.line}"
        bind(t, summed(t, t.convert(mask, torch.int64), [0]), count)
    element = t.element(torch.int64)
    flat = ir.Operation.create("disc.nonzero", [tensor_type((count,), element)], [mask]).results[0]
    found = []
    for size in reversed(dims):
        divisor = t.operand(size, torch.int64, (count,))
        found.append(build.remainder(flat, divisor))
        flat = build.divide(flat, divisor)
    return found[::-1]


# ---- masks among indices --------------------------------------------------------------------------------------------

Indices = Sequence[ir.Value | None]
"""Indices of a tensor: for each axis, or for the axes of each mask, an index or None for all of the axis."""


def _is_mask(t: Graph, index: ir.Value | None) -> bool:
    return index is not None and t.dtype_of(index) == torch.bool


def has_mask(t: Graph, indices: Indices) -> bool:
    """Tells whether one of several indices is a mask."""
    return any(_is_mask(t, v) for v in indices)


def rank_of(t: Graph, index: ir.Value | None) -> int:
    """The number of axes that an index is for."""
    return len(dims_of(index)) if index is not None and _is_mask(t, index) else 1


def check_masks(t: Graph, x: ir.Value, indices: Indices) -> None:
    """Check at each call that masks among indices have the sizes of the axes that they are for."""
    axis = 0
    for index in indices:
        if index is not None and _is_mask(t, index):
            for place, size in enumerate(dims_of(index), axis):
                check_equal(t, size, dims_of(x)[place], "the size of a mask")
        axis += rank_of(t, index)


def ends_of(t: Graph, indices: Indices) -> tuple[int, int]:
    """The place in the result of the axes that all indices are broadcast to, and the number of these axes."""
    given = [a for a, v in enumerate(indices) if v is not None]
    is_together = given == list(range(given[0], given[0] + len(given)))
    count = max(1 if _is_mask(t, v) else len(dims_of(v)) for v in indices if v is not None)
    return (given[0] if is_together else 0), count


def without_masks(t: Graph, indices: Indices, count: Expr | None) -> list[ir.Value | None]:
    """Indices in which for each mask there are the places where it holds.

    count: the size of what the masks become, as PyTorch says it is; None where that is said nowhere.
    """
    found: list[ir.Value | None] = []
    for number, index in enumerate(indices):
        if index is None or not _is_mask(t, index):
            found.append(index)
        elif count is not None and count.is_symbol and not t.knows(count):
            found.extend(places_of(t, index, count))
        else:
            own = Expr.symbol(f"{t.node.name}_count_{number}")
            places = places_of(t, index, own)
            if count is None:
                count = own
            check_equal(t, own, count, "the number of elements at which a mask holds")
            found.extend(piece(t, v, 0, Expr.const(0), count) for v in places)
    for size in {dims_of(v)[-1] for v in found if v is not None and dims_of(v)}:
        if count is not None and size.constant != 1:
            check_equal(t, size, count, "the size of an index beside a mask")
    return found


# ---- what is returned -----------------------------------------------------------------------------------------------


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
    size = t.sizes.size_of(value)
    low = value.node.shape_env.bound_sympy(value.node.expr).lower
    if not size.is_symbol:
        raise t.refuse(f"an integer that is read out of a tensor is known as {size}")
    tensor = t.node.args[0]
    name = f" of {tensor.name}" if tensor.op == "placeholder" else ""
    t.sources[str(value.node.expr)] = f"the value{name} that .item() reads at {t.line}"
    bind(t, t.reshape(t.convert(x, torch.int64), ()), size, may_be_negative=not low >= 0)
    return size
