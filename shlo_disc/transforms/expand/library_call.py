# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of the native runtime's library functions in the one form that the later stages know.

`stablehlo.custom_call @target` with a discardable attribute `disc.call`: the integer parameters. Operands and results
are contiguous and row-major. The last result is the workspace, bytes that nobody reads: it is planned into the arena
like any other buffer. A function divides a batch over at most `SLOTS` slots, each with its own part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.dialect import integer_attr
from shlo_disc.shape_dialect.expr import Expr, round_up
from shlo_disc.shape_dialect.types import element_type_of, tensor_type

MARK = "disc.call"
SLOTS = 16

GROUPS = "disc.groups"
"""On the call of a collective: its groups of participants."""


def is_library_call(op: ir.Operation) -> bool:
    """Whether an op is a call in the form of this module."""
    return op.name == "stablehlo.custom_call" and MARK in op.attributes


def workspace_of(entry_bytes: Expr, entries: Expr) -> Expr:
    """The bytes of workspace for a batch, where one entry needs `entry_bytes`."""
    return round_up(entry_bytes, 64) * Expr.minimum(entries, SLOTS)


def library_call(
    target: str,
    operands: Sequence[ir.Value],
    results: Sequence[ir.Type],
    parameters: Mapping[str, int],
    workspace: Expr,
    attributes: Mapping[str, ir.Attribute] | None = None,
) -> list[ir.Value]:
    """Call `target` at the insertion point; returns its results without the workspace.

    `attributes` are further attributes of the op.
    """
    bytes_type = tensor_type([workspace], ir.IntegerType.get_unsigned(8))
    own = {
        "call_target_name": ir.StringAttr.get(target),
        "api_version": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4),
        MARK: ir.DictAttr.get({name: integer_attr(value) for name, value in parameters.items()}),
        "disc.operands": ir.ArrayAttr.get([ir.TypeAttr.get(element_type_of(v)) for v in operands]),
        "disc.results": ir.ArrayAttr.get([ir.TypeAttr.get(element_type_of(t)) for t in [*results, bytes_type]]),
    }
    op = ir.Operation.create(
        "stablehlo.custom_call",
        results=[*results, bytes_type],
        operands=list(operands),
        attributes={**own, **(attributes or {})},
    )
    return list(op.results)[:-1]
