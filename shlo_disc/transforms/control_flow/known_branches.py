# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Branches whose choice is a constant."""

from __future__ import annotations

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.utils.regions import constant_of, nested_blocks


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
    constant = _constant_of(op.operands[0])
    if constant is None:
        return None
    branches = nested_blocks(op)
    chosen = int(ir.DenseElementsAttr(constant.attributes["value"]).get_splat_value().value)
    if op.operation.name == "stablehlo.if":
        return branches[0 if chosen else 1]
    return branches[chosen if 0 <= chosen < len(branches) else -1]


def _constant_of(value: ir.Value) -> ir.Operation | None:
    """The constant that a choice is, or is a wider or narrower form of: numbers of branches fit all widths."""
    owner = value.owner
    while not isinstance(owner, ir.Block) and owner.operation.name == "stablehlo.convert":
        value = owner.operands[0]
        if not isinstance(ir.RankedTensorType(value.type).element_type, ir.IntegerType):
            return None
        owner = value.owner
    return constant_of(value)
