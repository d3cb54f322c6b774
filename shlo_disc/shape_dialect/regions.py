# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the body of a reduction or a scatter uses from outside."""

from __future__ import annotations

from collections.abc import Iterator

from shlo_disc.mlir import ir


def captured(body: ir.Block) -> Iterator[tuple[ir.Operation, int, ir.Value]]:
    """The operands of a body's ops that are defined outside of it: (op, position, value)."""
    own = {*body.arguments, *(r for op in body.operations for r in op.results)}
    for op in body.operations:
        for position, value in enumerate(op.operands):
            if value not in own:
                yield op.operation, position, value


def constant_of(value: ir.Value) -> ir.Operation | None:
    """The `stablehlo.constant` that defines `value`; None for any other value."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "stablehlo.constant":
        return None
    return owner.operation


def called_function(op: ir.OpView) -> ir.OpView:
    """The function that a custom call names as its computation."""
    name = ir.FlatSymbolRefAttr(ir.ArrayAttr(op.attributes["called_computations"])[0]).value
    root = op.operation
    while root.parent is not None:
        root = root.parent.operation
    return ir.SymbolTable(root)[name]
