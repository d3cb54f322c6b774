# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The access pattern of an op: through broadcasts and unit reshapes down to the values that are really loaded."""

from __future__ import annotations

from typing import NamedTuple

from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import BROADCASTS, ELEMENTWISE, IOTAS, RESHAPES, index_map_of
from shlo_disc.shape_dialect.ops.index_maps import followed
from shlo_disc.shape_dialect.utils.regions import is_constant

Axis = int | None
"""A size of the reader, or None for a size of 1 (index zero)."""

_FREE = BROADCASTS | RESHAPES | IOTAS | {"disc.shape"}


class Access(NamedTuple):
    """A value and, for each of its sizes, the reader's axis that indexes it; `axes` is None when no such map exists.

    made_by: the op that defines the value; None for a block argument.
    """

    value: ir.Value
    axes: tuple[Axis, ...] | None
    made_by: ir.Operation | None


def defining_op(value: ir.Value) -> ir.Operation | None:
    """The op that defines a value; None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def is_scalar_constant(op: ir.Operation) -> bool:
    """A constant that a kernel holds in a register: rank 0, or one value repeated."""
    if not is_constant(op):
        return False
    return ir.DenseElementsAttr(op.attributes["value"]).is_splat


def scalar_number(op: ir.Operation) -> float | None:
    """The number that a constant is everywhere; a truth value is 0 or 1. None for other ops and complex numbers."""
    if not is_scalar_constant(op):
        return None
    found = ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
    return float(found.value) if isinstance(found, ir.FloatAttr | ir.IntegerAttr | ir.BoolAttr) else None


def is_splat(value: ir.Value) -> bool:
    """The value of a constant whose elements are all the same."""
    op = defining_op(value)
    return op is not None and is_scalar_constant(op)


def is_free(op: ir.Operation) -> bool:
    """Ops that compute nothing: every reader has its own copy of them."""
    name = op.name
    return name in _FREE or (name in ELEMENTWISE and is_scalar_of_sizes(op)) or is_scalar_constant(op)


def is_scalar_of_sizes(op: ir.Operation, depth: int = 3) -> bool:
    """A short computation from sizes and constants alone, such as the count that a mean divides by."""
    if op.name not in ELEMENTWISE or dims_of(op.results[0]):
        return False
    return all(_is_of_sizes(defining_op(value), depth) for value in op.operands)


def _is_of_sizes(source: ir.Operation | None, depth: int) -> bool:
    if source is None:
        return False
    if source.name == "disc.shape" or is_scalar_constant(source):
        return True
    return depth > 1 and is_scalar_of_sizes(source, depth - 1)


def operand_axes(op: ir.Operation, axes: tuple[Axis, ...]) -> tuple[Axis, ...] | None:
    """The axes at which a broadcast or reshape that is read at `axes` reads its operand.

    None where sizes are regrouped, or where it is not known which are broadcast.
    """
    found = index_map_of(op)
    read = None if found is None else followed(found[0])
    return None if read is None else tuple(None if axis is None else axes[axis] for axis in read)


def resolve(value: ir.Value, axes: tuple[Axis, ...] | None) -> Access:
    """Follow broadcasts and unit reshapes from a read of `value` at `axes` to the value that holds the data.

    A reshape that regroups sizes ends the walk: it is a view of a buffer, and the reader loads from the view.
    """
    while (op := defining_op(value)) is not None:
        name = op.name
        if name in BROADCASTS:
            axes = None if axes is None else operand_axes(op, axes)
        elif name in RESHAPES and axes is not None:
            mapped = operand_axes(op, axes)
            if mapped is None:
                break
            axes = mapped
        else:
            break
        value = op.operands[0]
    return Access(value, axes, op)


def identity_axes(value: ir.Value) -> tuple[Axis, ...]:
    """The axes of a read at the reader's own index."""
    return tuple(range(len(dims_of(value))))


def operand_accesses(op: ir.Operation) -> list[Access]:
    """The reads of an elementwise op or of a reduction, at the index of its result or of its input.

    Scalar operands of select and clamp, and what a reduction begins with, are read at ().
    """
    operands = list(op.operands)
    axes = identity_axes(operands[0] if op.name == "stablehlo.reduce" else op.results[0])
    return [resolve(value, axes if axes and dims_of(value) else ()) for value in operands]
