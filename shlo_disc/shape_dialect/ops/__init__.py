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
from shlo_disc.shape_dialect.ops.definition import LOWERINGS, MapRule, OpDef
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


def _moved_by(rule: MapRule) -> frozenset[str]:
    """The ops that move elements by a rule: one whose sizes are attributes, and one of which they are operands."""
    return frozenset(name for name, found in INDEX_MAPS.items() if found is rule)


BROADCASTS = _moved_by(data_movement.map_broadcast_in_dim)
GATHERS = _moved_by(gathers.map_gather)
PADS = _moved_by(data_movement.map_pad)
RESHAPES = _moved_by(data_movement.map_reshape)
SLICES = _moved_by(data_movement.map_slice)

GENERATORS = frozenset(name for name, op in TABLE.items() if op.is_generator)
"""Ops that make a value of nothing."""

IOTAS = frozenset(name for name in GENERATORS if TABLE[name].generates_code)

CONTROL = frozenset(name for name, op in TABLE.items() if op.lowering == "control")
"""Loops and branches: their regions hold programs, which may use any value from outside."""

(BARRIER,) = (name for name, op in TABLE.items() if op.lowering == "order")

VALUE_RULES = {name: op.values for name, op in TABLE.items() if op.values is not None}
"""The rules of the ops that programs compute sizes with."""


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
    "BARRIER", "BROADCASTS", "CONTROL", "ELEMENTWISE", "FAMILIES", "GATHERS", "GENERATORS", "INDEX_MAPS", "IOTAS",
    "LOWERINGS", "PADS", "RESHAPES", "SLICES", "TABLE", "VALUE_RULES", "OpDef", "definition_of", "index_map_of",
    "size_rule_of",
]  # fmt: skip
