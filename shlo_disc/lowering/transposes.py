# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The transposes of a loop whose operands lie in memory along another axis than the loop's last one."""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import ELEMENTWISE
from shlo_disc.shape_dialect.utils.attributes import integers

MOST_TILES = 4
"""Values of a kernel that are kept in tiles; of more, the rest are read where they are."""


def transposed(outputs: Sequence[ir.Value], domain: Dims) -> list[ir.OpView]:
    """The transposes that the results of a loop need where they are written, with one tile for all of them.

    The last axis of what is transposed is the same one of the loop, and not its last.
    """
    found: list[ir.OpView] = []
    pending, seen = [v for v in outputs if dims_of(v) == domain], set[ir.Value]()
    while pending:
        value = pending.pop()
        if value in seen or isinstance(value.owner, ir.Block) or dims_of(value) != domain:
            continue
        seen.add(value)
        op = value.owner.operation.opview
        if op.operation.name in ELEMENTWISE:
            pending += op.operands
        elif op.operation.name == "stablehlo.transpose" and _moves_last(op, domain):
            found.append(op)
    return [op for op in found if last_axis(op) == last_axis(found[0])][:MOST_TILES]


def last_axis(op: ir.OpView) -> int:
    """The axis of a transpose's result that is the last of its operand."""
    permutation = list(integers(op.attributes["permutation"]))
    return permutation.index(len(permutation) - 1)


def _moves_last(op: ir.OpView, domain: Dims) -> bool:
    axis = last_axis(op)
    return axis != len(domain) - 1 and all(domain[a].constant != 1 for a in (axis, -1))
