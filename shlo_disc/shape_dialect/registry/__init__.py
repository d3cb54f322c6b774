# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The one table of ops: what is compiled, for which element types and how, and why the rest is refused.

The import check reads it, `docs/ops.md` is generated from it, and the tests go through it row by row. Each family
has a module with its rows; this package knows no other folder.
"""

from __future__ import annotations

from shlo_disc.shape_dialect.registry import (
    control_flow,
    data_movement,
    distributed,
    elementwise,
    linear_algebra,
    quantized,
    random,
    reductions,
    shapes,
    sorting,
    windows,
)
from shlo_disc.shape_dialect.registry.row import LOWERINGS, Row

FAMILIES = (
    elementwise, shapes, data_movement, sorting, reductions, windows, linear_algebra, control_flow, random, quantized,
    distributed,
)  # fmt: skip
"""The modules with the rows, in the order of the document."""

TABLE: dict[str, Row] = {row.name: row for family in FAMILIES for row in family.ROWS}
"""Every op that a program may name, by name: StableHLO's, and those CHLO ops that are not opened before."""

__all__ = ["FAMILIES", "LOWERINGS", "TABLE", "Row"]
