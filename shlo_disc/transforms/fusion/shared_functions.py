# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One function for all fusions that are equal, as those of repeated layers are: later stages see each once.

Functions are equal where they have the same ops over the same sizes, from the same lines of the user's, and the same
description. A pass that describes a fusion by what surrounds one of its calls uses `described`, which leaves to the
other calls the function that they have.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable

from shlo_disc.shape_dialect.dialect.fusion import Fusion, Recurrence, fusion_of, set_fusion
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.utils.locations import source_line
from shlo_disc.shape_dialect.utils.regions import callee_of
from shlo_disc.shape_dialect.utils.structure import Structure


class SharedFunctions:
    """The functions of a module, while a pass makes fusions and calls of them. `by_name` has them all."""

    def __init__(self, module: ir.Module):
        functions = [op for op in module.body.operations if isinstance(op, func.FuncOp)]
        blocks = (block for function in functions for block in all_blocks(function.entry_block))
        calls = (op for block in blocks for op in block.operations if isinstance(op, func.CallOp))
        self.by_name: dict[str, func.FuncOp] = {function.name.value: function for function in functions}
        self._calls = Counter(map(callee_of, calls))
        self._known: dict[Hashable, func.FuncOp] = {}
        self._described: dict[tuple[str, Fusion], func.FuncOp] = {}
        self._left: list[func.FuncOp] = []
        self._results: dict[Hashable, ir.Operation] = {}
        self._lines: dict[ir.Attribute, str] = {}

    def add(self, function: func.FuncOp) -> func.FuncOp:
        """The function to call in place of one that was just made: itself, or an equal one.

        Recurrences keep functions of their own, as two calls of them may become one.
        """
        if isinstance(fusion_of(function), Recurrence):
            self.by_name[function.name.value] = function
            return function
        ops = (op for block in all_blocks(function.entry_block) for op in block.operations)
        key = Structure(function, None).key, tuple(self.line(op.location) for op in ops)
        known = self.once(key, lambda: function)
        if known is not function:
            self._left.append(function)
        return known

    def once(self, key: Hashable, make: Callable[[], func.FuncOp]) -> func.FuncOp:
        """The function of a key, which has all that functions follow from; it is made at its first use."""
        if key not in self._known:
            self._known[key] = function = make()
            self.by_name[function.name.value] = function
        return self._known[key]

    def described(self, function: func.FuncOp, fusion: Fusion) -> func.FuncOp:
        """The function with another description, for one of its calls: a copy, if there are others."""
        if fusion_of(function) == fusion:
            return function
        name = function.name.value
        key = name, fusion
        if key in self._described or self._calls[name] > 1:
            self._calls[name] -= 1
            if not self._calls[name]:
                self._left.append(function)
            if key not in self._described:
                self._described[key] = self._copied(function)
                set_fusion(self._described[key], fusion)
            return self._described[key]
        set_fusion(function, fusion)
        return function

    def results(self, function: func.FuncOp, operands: list[ir.Value], before: ir.Operation) -> tuple[ir.Value, ...]:
        """The results of a call of a function that has no effects, which stands before an op.

        It is an earlier one of the block where there is one. Its operands have to be there before the op.
        """
        key = function.name.value, tuple(operands), before.block
        if key not in self._results:
            with ir.InsertionPoint(before):
                self._results[key] = func.CallOp(function, operands).operation
        call = self._results[key]
        order = {op.operation: number for number, op in enumerate(before.block.operations)}
        if order[call] > order[before]:
            call.move_before(before)
        return tuple(call.results)

    def erase_left(self) -> None:
        """Erase the functions that nothing calls any more, at the end of a pass."""
        for function in self._left:
            function.operation.erase()
        self._left = []

    def unique(self, name: str) -> str:
        """The name, with a number if a function has it."""
        names = (f"{name}_{number}" if number else name for number in itertools.count())
        return next(each for each in names if each not in self.by_name)

    def _copied(self, function: func.FuncOp) -> func.FuncOp:
        name = self.unique(function.name.value)
        with ir.InsertionPoint(function):
            copy = function.operation.clone().opview
        copy.attributes["sym_name"] = ir.StringAttr.get(name)
        self.by_name[name] = copy
        return copy

    def line(self, location: ir.Location) -> str:
        """The user's line."""
        if location.attr not in self._lines:
            self._lines[location.attr] = source_line(location)
        return self._lines[location.attr]


def redirect(call: ir.OpView | ir.Operation, function: func.FuncOp) -> None:
    """Make a call run another function of the same type."""
    call.attributes["callee"] = ir.FlatSymbolRefAttr.get(function.name.value)


__all__ = ["SharedFunctions", "redirect"]
