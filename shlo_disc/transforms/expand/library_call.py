# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of the native runtime's library functions in the one form that the later stages know.

`stablehlo.custom_call @target` with the attribute `disc.library` (`shape_dialect/dialect/library.py`). Operands and
results are contiguous and row-major. The last result is the workspace, bytes that nobody reads: it is planned into the
arena like any other buffer. A function divides a batch over at most `SLOTS` slots, each with its own part of it. Where
the functions of a target take their workspaces themselves, it has no bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.library import LIBRARY, LibraryFunction, library_attribute
from shlo_disc.shape_dialect.dialect.types import element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr, round_up

SLOTS = 16


def is_library_call(op: ir.Operation) -> bool:
    """Tells whether an op is a call in the form of this module."""
    return op.name == "stablehlo.custom_call" and LIBRARY in op.attributes


def workspace_of(entry_bytes: Expr, entries: Expr) -> Expr:
    """The bytes of workspace for a batch, where one entry needs `entry_bytes`."""
    return round_up(entry_bytes, 64) * Expr.minimum(entries, SLOTS)


def library_call(
    target: str,
    operands: Sequence[ir.Value],
    results: Sequence[ir.Type],
    parameters: Mapping[str, int],
    workspace: Expr,
    groups: Sequence[Sequence[int]] | None = None,
    custom: Mapping[str, ir.Attribute] | None = None,
    aliases: Sequence[tuple[int, int]] = (),
    attributes: Mapping[str, ir.Attribute] | None = None,
) -> list[ir.Value]:
    """Call `target` at the insertion point; returns its results without the workspace.

    groups, custom, aliases: see `LibraryFunction`. attributes: further attributes of the op.
    """
    room = Expr.const(0) if policy().own_workspaces else workspace
    bytes_type = tensor_type([room], ir.IntegerType.get_unsigned(8))
    function = LibraryFunction(
        tuple(element_type_of(v) for v in operands),
        tuple(element_type_of(t) for t in [*results, bytes_type]),
        dict(parameters),
        None if groups is None else tuple(tuple(group) for group in groups),
        None if custom is None else dict(custom),
        tuple(aliases),
    )
    own = {
        "call_target_name": ir.StringAttr.get(target),
        "api_version": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4),
        LIBRARY: library_attribute(function),
    }
    op = ir.Operation.create(
        "stablehlo.custom_call",
        results=[*results, bytes_type],
        operands=list(operands),
        attributes={**own, **(attributes or {})},
    )
    return list(op.results)[:-1]
