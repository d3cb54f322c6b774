# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several programs of one skeleton side by side: every number of them, and where MLIR has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shlo_disc.errors import DiscError
from shlo_disc.importer.parse import parse_trusted
from shlo_disc.runtime.native_module import read_program
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.utils.called_operations import CalledOperations
from shlo_disc.shape_dialect.utils.locations import source_line

_PERHAPS_PLAIN = ("stablehlo.broadcast_in_dim", "stablehlo.slice")


class NotGeneralError(DiscError):
    """No symbolic program exists for some programs; each of their sizes is compiled then.

    location: the source line of the op at fault, "" where it is not known; it ends the message.
    """

    def __init__(self, message: str, location: str = ""):
        self.location = location
        super().__init__(f"{message} ({location})" if location else message)


class Samples:
    """Programs that differ in numbers only, and one of them as a module.

    values: for each number what it is in each program.
    operations: those of the module, as `CalledOperations` lists them; `position` is the inverse.
    extents: how many operations an operation is, with those in it.
    dims: the numbers of a value's sizes.
    attributes, attribute_names: the numbers of an attribute of the operation at a position, and which there are.
    plain: broadcasts that keep the rank and slices from the start, which are left out where they do nothing.
    operands: the numbers of the sizes with which an operation uses an operand: those of its origin, the value before
        the operations that are plain, or what they make of them.
    uses: for each of the operands' numbers, which are sizes that a value is used with, that of its origin.
    elements, constants: the numbers of a constant's elements, and which of the constants it is.
    functions: the positions of the constants that name functions of Python, which are none of the program's numbers.
    """

    def __init__(self, programs: Sequence[bytes], context: ir.Context):
        found = [read_program(program) for program in programs]
        if len({sample["skeleton"] for sample in found}) != 1:
            raise NotGeneralError("the programs differ in more than numbers")
        self.values: list[tuple[int, ...]] = list(zip(*(sample["numbers"] for sample in found), strict=True))
        self.lead = max(range(len(found)), key=lambda i: _typical_size(found[i]))
        self.module = parse_trusted(programs[self.lead], context)
        listed = CalledOperations(self.module)
        self.operations, self.extents = listed.operations, listed.extents
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
        rows = list(zip(positions, lead["constants"], strict=True))
        self.splats = {position for position, (*_, is_splat, _) in rows if is_splat}
        self.functions = {position for position, (*_, names_function) in rows if names_function}

    def is_fixed(self, number: int) -> bool:
        """Tells whether the number is the same in all programs."""
        return len(set(self.values[number])) == 1

    def is_attribute(self, number: int) -> bool:
        """Tells whether an attribute has the number, and no type."""
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
        """The place of a number, in words."""
        kind, position, index, axis, _ = self._places[number]
        name = self.operations[position].operation.name
        if kind == "attribute":
            return f"number {axis} of {index} of {name}"
        return f"element {axis} of {name}" if kind == "element" else f"axis {axis} of {kind} {index} of {name}"

    def is_argument(self, number: int) -> bool:
        """Tells whether a number is a size of an argument of the program."""
        kind, position, *_ = self._places[number]
        op = self.operations[position]
        return kind == "argument" and "sym_name" in op.attributes and str(op.attributes["sym_name"]) == '"main"'

    def place(self, number: int) -> str:
        """The source line of the operation that has a number; "" where it is not known."""
        line = source_line(self.operations[self._places[number][1]].location)
        return "" if line == "unknown" else line

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
    """Tells whether an operation of one of the names has a result with sizes."""
    return op.operation.name in names and ir.RankedTensorType(op.results[0].type).rank > 0


def _typical_size(sample: dict[str, Any]) -> int:
    """The larger, the fewer sizes of 1 and the fewer that are equal by chance: the sizes in types, summed."""
    places = zip(sample["numbers"], sample["places"], strict=True)
    return sum(number for number, place in places if place[0] in ("result", "argument"))


__all__ = ["NotGeneralError", "Samples"]
