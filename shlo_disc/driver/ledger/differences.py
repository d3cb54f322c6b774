# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The places where two programs part that differ in more than sizes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from shlo_disc.importer.parse import parse_trusted
from shlo_disc.runtime.native_module import read_program
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.utils.called_operations import CalledOperations
from shlo_disc.shape_dialect.utils.locations import source_line

from .identity import array_of_type


def first_difference(programs: Sequence[bytes], program: bytes) -> str:
    """The op at which a program's skeleton parts from that of the most similar of others, with the user's line.

    "" where the skeleton of one of them is the same. A program that the table of programs cannot read is no reason.
    """
    try:
        found = read_program(program)
        others = [read_program(other) for other in programs]
    except RuntimeError as error:
        return f"the program cannot be read: {error}"
    lengths = [_common_prefix(found["skeleton"], other["skeleton"]) for other in others]
    best = max(range(len(others)), key=lengths.__getitem__)
    if others[best]["skeleton"] == found["skeleton"]:
        return ""
    ours, theirs = _op_at(found, lengths[best]), _op_at(others[best], lengths[best])
    here, there = _described(program, ours), _described(programs[best], theirs)
    if here == there:
        return f"it was traced to other ops: {here} has other attributes than in another program"
    return f"it was traced to other ops: {here}, where another program has {there}"


def _common_prefix(one: bytes, other: bytes) -> int:
    known, most = 0, min(len(one), len(other))
    while known < most:
        middle = (known + most + 1) // 2
        if one[known:middle] == other[known:middle]:
            known = middle
        else:
            most = middle - 1
    return known


def _op_at(found: dict[str, Any], place: int) -> int:
    """The operation whose part of the skeleton a place is in, by its position in pre-order.

    A constant comes before the operation that uses it, and has no line of its own.
    """
    position = max(bisect_right(found["starts"], place) - 1, 0)
    while found["ops"][position] == "constant_v1" and position + 1 < len(found["ops"]):
        position += 1
    return position


def _described(program: bytes, position: int) -> str:
    context = make_context()
    with context:
        module = parse_trusted(program, context)
        ops = CalledOperations(module).operations
        op = ops[min(position, len(ops) - 1)]
        if op.operation.name == "func.return":
            return "no more ops"
        if op.operation.name == "func.func":
            signature = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
            return f"{_arrays(signature.inputs)} -> {_arrays(signature.results)}"
        kind = op.operation.name.removeprefix("stablehlo.").removeprefix("chlo.")
        types = _arrays([result.type for result in op.results])
        line = source_line(op.location)
        where = f" at {line}" if ":" in line else ""  # else it is what the producer calls the op
        return f"{kind} ({types}){where}" if types else f"{kind}{where}"


def _arrays(types: Sequence[Any]) -> str:
    """Types as users write them: f32[2,3], i32[]."""
    return ", ".join(str(array_of_type(kind)) for kind in types)


__all__ = ["first_difference"]
