# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of library functions: what the artifact's header says of them, and the words that they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shlo_disc.lowering.host_llvm.blocks import Buffer, Entry
from shlo_disc.shape_dialect.dialect.host import LibraryCall
from shlo_disc.shape_dialect.dtypes import BY_MLIR
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.utils.attributes import attribute_values


class LibraryTable:
    """The library calls of one program, each different one once; `header` is the artifact's list."""

    def __init__(self) -> None:
        self.header: list[dict[str, Any]] = []

    def index(self, call: LibraryCall, where: str = "") -> int:
        """The number of a call, which is added where it is new. `where`: the user's line, for errors to name."""
        function = call.function
        elements = [str(t) for t in (*function.operands, *function.results)]
        rows = [
            {"dtype": BY_MLIR[element].name, "rank": len(dims)}
            for element, dims in zip(elements, call.dims, strict=True)
        ]
        entry: dict[str, Any] = {
            "target": call.target,
            "operands": rows[: len(function.operands)],
            "results": rows[len(function.operands) :],
            "attributes": function.parameters,
        }
        if function.groups is not None:
            entry["groups"] = [list(group) for group in function.groups]
        if function.custom is not None:
            entry["custom"] = _custom(function.custom, function.aliases)
        if where:
            entry["where"] = where
        if entry not in self.header:
            self.header.append(entry)
        return self.header.index(entry)


def library_words(call: LibraryCall) -> list[Entry]:
    """For each operand, then for each result, its address and its sizes."""
    entries: list[Entry] = []
    for number, dims in enumerate(call.dims):
        entries += [Buffer(number), *dims]
    return entries


def _custom(attributes: Mapping[str, ir.Attribute], aliases: Sequence[Sequence[int]]) -> dict[str, Any]:
    """The data that a function registered by the user gets besides its arrays."""
    rows = [_attribute(name, value) for name, value in sorted(attributes.items())]
    return {"attributes": rows, "aliases": [list(pair) for pair in aliases]}


def _attribute(name: str, attribute: ir.Attribute) -> dict[str, Any]:
    dtype, values, is_array = attribute_values(attribute) or ("string", [], False)
    return {"name": name, "dtype": dtype, "array": is_array, "values": values}
