# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reshapes between kernels: every buffer is contiguous and row-major, so a reshape is a view and costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from shlo_disc.shape_dialect.dialect.types import Dims, dims_attr, dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

VIEWS = frozenset({"stablehlo.reshape", "stablehlo.dynamic_reshape"})


def shape_tensor(dims: Sequence[Expr]) -> ir.Value:
    """A `disc.shape` of rank 1 at the insertion point."""
    type_ = tensor_type((Expr.const(len(dims)),), ir.IntegerType.get_signless(64))
    return ir.Operation.create("disc.shape", results=[type_], attributes={"dims": dims_attr(dims)}).results[0]


def view(value: ir.Value, dims: Sequence[Expr]) -> ir.Value:
    """`value` with the sizes `dims`, which have the same product, at the insertion point."""
    known = _seen_as(value, tuple(dims))
    if known is not None:
        return known
    result = tensor_type(dims, element_type_of(value))
    if result.has_static_shape and ir.RankedTensorType(value.type).has_static_shape:
        return ir.Operation.create("stablehlo.reshape", results=[result], operands=[value]).results[0]
    operands = [value, shape_tensor(dims)]
    return ir.Operation.create("stablehlo.dynamic_reshape", results=[result], operands=operands).results[0]


def _seen_as(value: ir.Value, dims: Dims) -> ir.Value | None:
    """The value that `value` is a view of, or `value` itself, that has the sizes `dims`; None where nothing has."""
    while dims_of(value) != dims:
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.operation.name not in VIEWS:
            return None
        value = owner.operands[0]
    return value


def broadcast(
    value: ir.Value,
    dims: Sequence[Expr],
    positions: Sequence[int],
    shape: Callable[[Sequence[Expr]], ir.Value] = shape_tensor,
) -> ir.Value:
    """`value` broadcast to `dims`, its sizes standing at `positions`, at the insertion point.

    shape: what makes the tensor of symbolic sizes.
    """
    result = tensor_type(dims, element_type_of(value))
    attributes: dict[str, ir.Attribute] = {"broadcast_dimensions": ir.DenseI64ArrayAttr.get(list(positions))}
    if result.has_static_shape:
        op = ir.Operation.create(
            "stablehlo.broadcast_in_dim", results=[result], operands=[value], attributes=attributes
        )
        return op.results[0]
    operands = [value, shape(dims)]
    op = ir.Operation.create(
        "stablehlo.dynamic_broadcast_in_dim", results=[result], operands=operands, attributes=attributes
    )
    return op.results[0]


def transpose(value: ir.Value, permutation: Sequence[int]) -> ir.Value:
    """`value` with its axes in another order, at the insertion point."""
    dims = dims_of(value)
    result = tensor_type([dims[axis] for axis in permutation], element_type_of(value))
    attributes: dict[str, ir.Attribute] = {"permutation": ir.DenseI64ArrayAttr.get(list(permutation))}
    op = ir.Operation.create("stablehlo.transpose", results=[result], operands=[value], attributes=attributes)
    return op.results[0]


def root(value: ir.Value) -> ir.Value:
    """The value whose buffer `value` is a view of."""
    owner = value.owner
    while not isinstance(owner, ir.Block) and owner.operation.name in VIEWS:
        value = owner.operands[0]
        owner = value.owner
    return value


def readers_of(value: ir.Value) -> Iterator[tuple[ir.Operation, int]]:
    """The ops, and their operand numbers, that read a value, through views."""
    for use in value.uses:
        user = use.owner.operation
        if user.name in VIEWS:
            yield from readers_of(user.results[0])
        else:
            yield user, use.operand_number
