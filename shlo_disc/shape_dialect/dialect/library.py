# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of library functions: the attribute `disc.library` of a `stablehlo.custom_call` that `simplify` leaves."""

from __future__ import annotations

from dataclasses import dataclass, field

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.dialect.ops import LibraryAttr
from shlo_disc.shape_dialect.dialect.records import read_typed, to_attribute

LIBRARY = "disc.library"


@dataclass(frozen=True)
class LibraryFunction:
    """What the function is told besides its arrays: their element types, and integer `parameters`.

    groups: of a collective, its groups of participants. custom: the attributes of a call of the user's function, as the
    program has them; `aliases` are its pairs of a result and the operand whose contents that starts with.
    """

    operands: tuple[ir.Type, ...]
    results: tuple[ir.Type, ...]
    parameters: dict[str, int] = field(default_factory=dict)
    groups: tuple[tuple[int, ...], ...] | None = None
    custom: dict[str, ir.Attribute] | None = None
    aliases: tuple[tuple[int, ...], ...] = ()


def library_function_of(op: ir.OpView | ir.Operation) -> LibraryFunction:
    """What a call says. Raises Malformed."""
    return read_typed(LibraryFunction, op.attributes[LIBRARY], LibraryAttr, "call", LIBRARY)


def library_attribute(function: LibraryFunction) -> ir.Attribute:
    """The attribute of a call."""
    return LibraryAttr.get(to_attribute(function))
