# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several programs of one skeleton side by side: every number of them, and where MLIR has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shlo_disc.errors import DiscError
from shlo_disc.importing import parse_trusted
from shlo_disc.mlir import ir
from shlo_disc.runtime.native_module import read_program

CALLS = ("callee", "decomposition")
"""The attributes that are functions which an operation calls."""

_FUNCTION = "func.func"
_PERHAPS_PLAIN = ("stablehlo.broadcast_in_dim", "stablehlo.slice")


class NotGeneralError(DiscError):
    """Why there is no symbolic program for some programs; it is compiled for each of their sizes then."""


class Samples:
    """Programs that differ in numbers only, and one of them as a module.

    values: for each number what it is in each program.
    operations: those of the module, in pre-order; `position` is the inverse. The function that an operation calls comes
        next, as an operation in it: each call has a function of its own.
    extents: how many operations an operation is, with those in it.
    dims: the numbers of a value's sizes.
    attributes, attribute_names: the numbers of an attribute of the operation at a position, and which there are.
    plain: broadcasts that keep the rank and slices from the start, which are left out where they do nothing.
    operands: the numbers of the sizes with which an operation uses an operand: those of its origin, the value before
        the operations that are plain, or what they make of them.
    uses: for each of the operands' numbers, which are sizes that a value is used with, that of its origin.
    elements, constants: the numbers of a constant's elements, and which of the constants it is.
    """

    def __init__(self, programs: Sequence[bytes], context: ir.Context):
        found = [read_program(program) for program in programs]
        if len({sample["skeleton"] for sample in found}) != 1:
            raise NotGeneralError("the programs differ in more than numbers")
        self.values: list[tuple[int, ...]] = list(zip(*(sample["numbers"] for sample in found), strict=True))
        self.lead = max(range(len(found)), key=lambda i: _typical_size(found[i]))
        self.module = parse_trusted(programs[self.lead], context)
        self.operations: list[Any] = []
        self.extents: list[int] = []
        self._functions = {name_of(op): op for op in self.module.body.operations if op.operation.name == _FUNCTION}
        self._called: set[str] = set()
        self._list_operations()
        self.position = {op.operation: i for i, op in enumerate(self.operations)}
        self.dims: dict[ir.Value, list[int]] = {}
        self.attributes: dict[tuple[int, str], list[int]] = {}
        self.attribute_names: dict[int, list[str]] = {}
        self.elements: dict[int, list[int]] = {}
        self.operands: dict[tuple[int, int], list[int]] = {}
        self.uses: dict[int, int] = {}
        lead = found[self.lead]
        self._check_operations(lead["ops"])
        self._places: list[tuple[str, int, Any, int, int]] = lead["places"]
        stated = {position for kind, position, *_ in self._places if kind == "result"}
        self.plain = {i for i, op in enumerate(self.operations) if i not in stated and _has_shape(op, _PERHAPS_PLAIN)}
        self._place()
        positions = sorted(self.elements)
        self.constants = {position: i for i, position in enumerate(positions)}
        self.splats = {position for position, row in zip(positions, lead["constants"], strict=True) if row[2]}

    def _list_operations(self) -> None:
        """As the reader lists them: public functions with what they call, then what nothing has called."""
        self._add(self.module.operation, [])
        functions = list(self._functions.values())
        for is_private in (False, True):
            for function in functions:
                if _is_private(function) == is_private and name_of(function) not in self._called:
                    self._visit(function)
        self.extents[0] = len(self.operations)

    def _visit(self, op: ir.OpView) -> None:
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
        with ir.InsertionPoint(self.module.body):
            copy = self._functions[name].operation.clone().opview
        copy.attributes["sym_name"] = ir.StringAttr.get(own)
        op.attributes[attribute] = ir.FlatSymbolRefAttr.get(own)
        self._functions[own] = copy
        self._called.add(own)
        return copy

    def is_fixed(self, number: int) -> bool:
        """Whether the number is the same in all programs."""
        return len(set(self.values[number])) == 1

    def is_attribute(self, number: int) -> bool:
        """Whether an attribute has the number, and no type."""
        return self._places[number][0] in ("attribute", "element")

    def origin(self, value: ir.Value) -> ir.Value:
        """The value that another one is a prefix or a broadcast of."""
        while (position := self.position.get(value.owner)) in self.plain:
            value = self.operations[position].operands[0]
        return value

    def _check_operations(self, names: Sequence[str]) -> None:
        """Each operation of the artifact has become one of the module."""
        plain = [name.rsplit("_v", 1)[0] for name in names]
        if plain != [str(op.operation.name).rsplit(".", 1)[-1] for op in self.operations]:
            raise NotGeneralError("the module has other operations than the program")

    def describe(self, number: int) -> str:
        """Where a number is, in words."""
        kind, position, index, axis, _ = self._places[number]
        name = self.operations[position].operation.name
        if kind == "attribute":
            return f"number {axis} of {index} of {name}"
        return f"element {axis} of {name}" if kind == "element" else f"axis {axis} of {kind} {index} of {name}"

    def _place(self) -> None:
        for number, (kind, position, index, _, region) in enumerate(self._places):
            op = self.operations[position]
            if kind == "result":
                self.dims.setdefault(op.results[index], []).append(number)
            elif kind == "argument":
                self.dims.setdefault(op.regions[region].blocks[0].arguments[index], []).append(number)
            elif kind == "attribute":
                self.attributes.setdefault((position, index), []).append(number)
                if index not in (names := self.attribute_names.setdefault(position, [])):
                    names.append(index)
            elif kind == "operand":
                self.operands.setdefault((position, index), []).append(number)
            else:
                self.elements.setdefault(position, []).append(number)
        for (position, index), numbers in self.operands.items():
            origin = self.origin(self.operations[position].operands[index])
            self.uses |= dict(zip(numbers, self.dims[origin], strict=True))
            self.dims.setdefault(self.operations[position].operands[index], numbers)  # of a plain operation's result


def _has_shape(op: ir.OpView, names: Sequence[str]) -> bool:
    """Whether an operation of one of the names has a result with sizes."""
    return op.operation.name in names and ir.RankedTensorType(op.results[0].type).rank > 0


def _typical_size(sample: dict[str, Any]) -> int:
    """The larger, the fewer sizes of 1 and the fewer that are equal by chance: the sizes in types, summed."""
    places = zip(sample["numbers"], sample["places"], strict=True)
    return sum(number for number, place in places if place[0] in ("result", "argument"))


def name_of(function: ir.OpView) -> str:
    """The name of a function."""
    return str(ir.StringAttr(function.attributes["sym_name"]).value)


def _is_private(function: ir.OpView) -> bool:
    visibility = "sym_visibility"
    return visibility in function.attributes and ir.StringAttr(function.attributes[visibility]).value == "private"


__all__ = ["CALLS", "NotGeneralError", "Samples", "name_of"]
