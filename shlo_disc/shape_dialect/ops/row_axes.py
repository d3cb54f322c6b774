# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for rows: the axis of an op's result along which row i depends on row i of the operands and on no other row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import ELEMENTWISE, GENERATORS, INDEX_MAPS, index_map_of
from shlo_disc.shape_dialect.ops.index_maps import result_axis
from shlo_disc.shape_dialect.utils.attributes import integers

Axes = Sequence[int | None]
"""For each operand the axis along which its rows lie, None where it depends on no row."""


def has_row_rule(op: ir.Operation) -> bool:
    """Tells whether there is a rule for an op."""
    return op.name in _RULES and len(op.results) == 1


def row_axis_of(op: ir.Operation, axes: Axes) -> int | None:
    """The axis of the rows of the result of an op that has a rule; None where rows meet, or where that is not known."""
    return _RULES[op.name](op, axes)


def _elementwise(op: ir.Operation, axes: Axes) -> int | None:
    different = {a for a in axes if a is not None}
    return different.pop() if len(different) == 1 else None


def _indexed(op: ir.Operation, axes: Axes) -> int | None:
    """The axis of an op that only moves elements."""
    reads = index_map_of(op)
    return None if reads is None else result_axis(reads, axes)


def _reduce(op: ir.Operation, axes: Axes) -> int | None:
    """A reduction of one value along other axes."""
    axis = axes[0]
    reduced = integers(op.attributes["dimensions"])
    if axis is None or axis in reduced or any(a is not None for a in axes[1:]):
        return None
    return axis - sum(1 for a in reduced if a < axis)


_RULES: dict[str, Callable[[ir.Operation, Axes], int | None]] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys((*INDEX_MAPS, *GENERATORS), _indexed),
    "stablehlo.reduce": _reduce,
}

__all__ = ["Axes", "has_row_rule", "row_axis_of"]
