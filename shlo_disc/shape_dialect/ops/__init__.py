# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops: one definition each, with all that is true of it whatever the stage, one module a family.

Size inference, the symbolic form of static programs, fusion, both lowerings, estimates of arithmetic and code, the
check of support and `docs/ops.md` read the definitions. An op that only moves elements needs nothing else than an entry
here.
"""

from __future__ import annotations

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import (
    control_flow,
    data_movement,
    distributed,
    elementwise,
    gathers,
    linear_algebra,
    quantized,
    random,
    reductions,
    shapes,
    sorting,
    windows,
)
from shlo_disc.shape_dialect.ops.definition import LOWERINGS, OpDef
from shlo_disc.shape_dialect.ops.elementwise import ELEMENTWISE
from shlo_disc.shape_dialect.ops.index_maps import IndexMap
from shlo_disc.shape_dialect.ops.propagation import SizeRule

FAMILIES = (
    elementwise, shapes, data_movement, gathers, sorting, reductions, windows, linear_algebra, control_flow, random,
    quantized, distributed,
)  # fmt: skip
"""The modules with the definitions, in the order of the document."""

TABLE: dict[str, OpDef] = {op.name: op for family in FAMILIES for op in family.OPS}
"""Every op that a program may name, by name: StableHLO's, and those CHLO ops that are not expanded before.

A custom call goes by its target, as `@target`.
"""

INDEX_MAPS = {name: op.index_map for name, op in TABLE.items() if op.index_map is not None}
"""The index maps of the ops that only move elements."""


def definition_of(op: ir.OpView | ir.Operation) -> OpDef | None:
    """The definition of an op; that of a custom call is its target's, if it has one of its own."""
    name = op.name if isinstance(op, ir.Operation) else op.operation.name
    if name == "stablehlo.custom_call":
        target = "@" + ir.StringAttr(op.attributes["call_target_name"]).value
        return TABLE.get(target, TABLE[name])
    return TABLE.get(name)


def size_rule_of(op: ir.OpView) -> SizeRule | None:
    """The sizes of the results of an op. Our own ops that no program may name are among them."""
    if op.operation.name == "disc.nonzero":
        return shapes.infer_nonzero
    found = definition_of(op)
    return None if found is None else found.infer


def index_map_of(op: ir.OpView | ir.Operation) -> IndexMap | None:
    """The index map of an op that only moves elements."""
    rule = INDEX_MAPS.get(op.name if isinstance(op, ir.Operation) else op.operation.name)
    return None if rule is None else rule(op.opview if isinstance(op, ir.Operation) else op)


__all__ = [
    "ELEMENTWISE", "FAMILIES", "INDEX_MAPS", "LOWERINGS", "TABLE", "OpDef", "definition_of", "index_map_of",
    "size_rule_of",
]  # fmt: skip
