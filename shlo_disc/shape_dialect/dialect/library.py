# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of library functions: the attribute `disc.library` of a `stablehlo.custom_call` that `simplify` leaves."""

from __future__ import annotations

from dataclasses import dataclass, field

from shlo_disc.shape_dialect.dialect.ops import LibraryAttr
from shlo_disc.shape_dialect.dialect.records import read_typed, to_attribute
from shlo_disc.shape_dialect.mlir import ir

LIBRARY = "disc.library"

NARROW_PRODUCT = "dequantized_dot"
"""The function that multiplies by a weight of narrow integers: of the runtime, or a kernel on targets that have one."""


@dataclass(frozen=True)
class LibraryFunction:
    """The data that a library function receives besides its arrays: their element types, and integer `parameters`.

    groups: the groups of participants of a collective. custom: the attributes of a custom call, as in the program.
    aliases: pairs of a result of a custom call and the operand with whose contents the result starts.
    """

    operands: tuple[ir.Type, ...]
    results: tuple[ir.Type, ...]
    parameters: dict[str, int] = field(default_factory=dict)
    groups: tuple[tuple[int, ...], ...] | None = None
    custom: dict[str, ir.Attribute] | None = None
    aliases: tuple[tuple[int, ...], ...] = ()


def library_function_of(op: ir.OpView | ir.Operation) -> LibraryFunction:
    """The library function that a call describes. Raises Malformed."""
    return read_typed(LibraryFunction, op.attributes[LIBRARY], LibraryAttr, "call", LIBRARY)


def is_narrow_product(op: ir.OpView | ir.Operation) -> bool:
    """Tells whether an op is a call of `NARROW_PRODUCT`."""
    return LIBRARY in op.attributes and ir.StringAttr(op.attributes["call_target_name"]).value == NARROW_PRODUCT


def library_attribute(function: LibraryFunction) -> ir.Attribute:
    """The attribute of a call."""
    return LibraryAttr.get(to_attribute(function))
