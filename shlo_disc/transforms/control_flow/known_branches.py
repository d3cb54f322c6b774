# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Branches whose choice is a constant."""

from __future__ import annotations

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks
from shlo_disc.shape_dialect.utils.regions import constant_of


def open_known_branches(block: ir.Block) -> None:
    """Put the branch that is taken in the place of each `if` and `case` by a constant, also in others, in place."""
    for op in list(block.operations):
        for nested in nested_blocks(op):
            open_known_branches(nested)
        branch = _taken(op)
        if branch is None:
            continue
        *members, terminator = list(branch.operations)
        for member in members:
            member.operation.move_before(op.operation)
        for result, value in zip(op.results, terminator.operands, strict=True):
            result.replace_all_uses_with(value)
        op.operation.erase()


def _taken(op: ir.OpView) -> ir.Block | None:
    """The branch that a constant chooses; None when the choice is data, and for any other op."""
    if op.operation.name not in ("stablehlo.if", "stablehlo.case"):
        return None
    chosen = _number_of(op.operands[0])
    if chosen is None:
        return None
    branches = nested_blocks(op)
    if op.operation.name == "stablehlo.if":
        return branches[0 if chosen else 1]
    return branches[chosen if 0 <= chosen < len(branches) else -1]


def _number_of(value: ir.Value) -> int | None:
    """The integer that a value is, a constant or one converted; None for any other."""
    element = ir.RankedTensorType(value.type).element_type
    if not isinstance(element, ir.IntegerType):
        return None
    constant, owner = constant_of(value), value.owner
    if constant is not None:
        return int(ir.DenseElementsAttr(constant.attributes["value"]).get_splat_value().value)
    if isinstance(owner, ir.Block) or owner.operation.name != "stablehlo.convert":
        return None
    number = _number_of(owner.operands[0])
    return None if number is None else _converted(number, element)


def _converted(number: int, element: ir.IntegerType) -> int:
    """An integer as one of another type: a boolean is whether it is not 0, others keep the bits that they have."""
    if element.width == 1:
        return int(number != 0)
    wrapped = number % (1 << element.width)
    is_negative = not element.is_unsigned and wrapped >> (element.width - 1)
    return wrapped - (1 << element.width) if is_negative else wrapped
