# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations of a module in the order in which the native reader of programs lists them.

The function that an operation calls comes next, as an operation in it. Each call has a function of its own: JAX merges
private functions that are the same, which may depend on sizes. For the same reason each use has a splat constant of its
own, which comes before the operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shlo_disc.shape_dialect.dense import text_alone
from shlo_disc.shape_dialect.mlir import ir

CALLS = ("callee", "decomposition")
"""The attributes that are functions which an operation calls."""

_FUNCTION = "func.func"


class CalledOperations:
    """The operations of a module, in which functions that several operations call are copied, and splat constants.

    operations: the module, the public functions with what they call, and the private ones that nothing calls.
    extents: for each operation the count of operations that it is, with those in it.
    """

    def __init__(self, module: ir.Module):
        self.operations: list[Any] = []
        self.extents: list[int] = []
        self._module = module
        self._functions = {name_of(op): op for op in module.body.operations if op.operation.name == _FUNCTION}
        self._called: set[str] = set()
        self._constants: list[ir.OpView] = []
        self._add(module.operation, [])
        functions = list(self._functions.values())
        for is_private in (False, True):
            for function in functions:
                if _is_private(function) == is_private and name_of(function) not in self._called:
                    self._visit(function)
        self.extents[0] = len(self.operations)
        for constant in self._constants:
            constant.operation.erase()

    def _visit(self, op: ir.OpView) -> None:
        if _is_splat(op):
            self._constants.append(op)
            return
        for index, value in enumerate(op.operands):
            if not isinstance(value.owner, ir.Block) and _is_splat(value.owner):
                with ir.InsertionPoint(op):
                    own = value.owner.clone()
                op.operands[index] = own.results[0]
                self._add(own.opview, [])
        position = len(self.operations)
        callee = [self._own_function(op, name) for name in CALLS if name in op.attributes]
        inner = [op for region in op.regions for block in region.blocks for op in block.operations]
        self._add(op, [*callee, *inner])
        self.extents[position] = len(self.operations) - position

    def _add(self, op: Any, inner: Sequence[ir.OpView]) -> None:
        self.operations.append(op)
        self.extents.append(1)
        for operation in inner:
            self._visit(operation)

    def _own_function(self, op: ir.OpView, attribute: str) -> ir.OpView:
        """The function that an operation calls; a copy of it if another operation calls it, too."""
        name = ir.FlatSymbolRefAttr(op.attributes[attribute]).value
        if name not in self._called:
            self._called.add(name)
            return self._functions[name]
        count = len(self._called)
        while (own := f"{name}.{count}") in self._functions:
            count += 1
        with ir.InsertionPoint(self._module.body):
            copy = self._functions[name].operation.clone().opview
        copy.attributes["sym_name"] = ir.StringAttr.get(own, context=self._module.context)
        op.attributes[attribute] = ir.FlatSymbolRefAttr.get(own, context=self._module.context)
        self._functions[own] = copy
        self._called.add(own)
        return copy


def _is_splat(op: Any) -> bool:
    """Tells whether an operation is a constant of equal elements."""
    if op.operation.name != "stablehlo.constant" or len(op.operation.attributes) != 1:
        return False
    if isinstance(ir.RankedTensorType(op.operation.results[0].type).element_type, ir.ComplexType):
        return "dense<(" in text_alone(op)  # the bindings have no class for the attribute
    value = op.operation.attributes["value"]
    return isinstance(value, ir.DenseElementsAttr) and value.is_splat


def name_of(function: ir.OpView) -> str:
    """The name of a function."""
    return str(ir.StringAttr(function.attributes["sym_name"]).value)


def _is_private(function: ir.OpView) -> bool:
    visibility = "sym_visibility"
    return visibility in function.attributes and ir.StringAttr(function.attributes[visibility]).value == "private"


__all__ = ["CALLS", "CalledOperations", "name_of"]
