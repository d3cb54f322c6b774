# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of library functions: what the artifact's header says of them, and the steps of the host program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shlo_disc.dtypes import BY_MLIR
from shlo_disc.lowering_cpu.steps import LibraryCall, Place
from shlo_disc.mlir import func, ir
from shlo_disc.shape_dialect.dialect.library import library_function_of
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.utils.attributes import attribute_values


class LibraryCalls:
    """The library calls of one program, each different one once; `header` is the artifact's list."""

    def __init__(self) -> None:
        self.header: list[dict[str, Any]] = []

    def step(self, fusion: func.FuncOp, inputs: Sequence[Place], outputs: Sequence[Place]) -> tuple[LibraryCall, str]:
        """The step for a call of a fusion of kind "library", and the name of the library function."""
        op = next(iter(fusion.entry_block.operations))
        arguments = list(fusion.entry_block.arguments)
        places = [*(inputs[arguments.index(v)] for v in op.operands), *outputs]
        function = library_function_of(op)
        elements = [str(t) for t in (*function.operands, *function.results)]
        dims = [_dims(v, e) for v, e in zip([*op.operands, *op.results], elements, strict=True)]
        rows = [{"dtype": _dtype(e), "rank": len(d)} for e, d in zip(elements, dims, strict=True)]
        entry: dict[str, Any] = {
            "target": ir.StringAttr(op.attributes["call_target_name"]).value,
            "operands": rows[: len(op.operands)],
            "results": rows[len(op.operands) :],
            "attributes": function.parameters,
        }
        if function.groups is not None:
            entry["groups"] = [list(group) for group in function.groups]
        if function.custom is not None:
            entry["custom"] = _custom(function.custom, function.aliases)
        if entry not in self.header:
            self.header.append(entry)
        call = LibraryCall(self.header.index(entry), tuple(zip(places, dims, strict=True)))
        return call, str(entry["target"])


def _dims(value: ir.Value, element: str) -> Dims:
    """The sizes as the function sees them: complex numbers lie in memory as a last axis of two reals."""
    dims = dims_of(value)
    is_pair = "complex" in element and "complex" not in str(value.type)
    return dims[:-1] if is_pair else dims


def _dtype(element: str) -> str:
    return BY_MLIR[element].name


def _custom(attributes: Mapping[str, ir.Attribute], aliases: Sequence[Sequence[int]]) -> dict[str, Any]:
    """What a function that the user registered gets besides its arrays."""
    rows = [_attribute(name, value) for name, value in sorted(attributes.items())]
    return {"attributes": rows, "aliases": [list(pair) for pair in aliases]}


def _attribute(name: str, attribute: ir.Attribute) -> dict[str, Any]:
    dtype, values, is_array = attribute_values(attribute) or ("string", [], False)
    return {"name": name, "dtype": dtype, "array": is_array, "values": values}
