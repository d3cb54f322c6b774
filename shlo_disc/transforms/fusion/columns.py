# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds reductions down columns, such as the gradient of a bias, for which a target has a kernel of its own.

That kernel walks down neighbouring columns with a sum for each, so that rows are read as they lie.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.transforms.decisions import Pattern


@dataclass(frozen=True)
class Reduction:
    """The results of a fusion, and the reduction that computes them."""

    results: list[ir.Value]
    op: ir.OpView

    @property
    def reduced(self) -> list[int]:
        """The axes along which it reduces."""
        return sorted(integers(self.op.attributes["dimensions"]))

    @property
    def rank(self) -> int:
        """The rank of the reduced operand."""
        return len(dims_of(self.op.operands[0]))


def has_columns(fusion: func.FuncOp) -> bool:
    """Tells whether the kernel of a fusion of kind "reduce" walks down columns."""
    if policy().has_column_tiles:
        return TILES.match(_only_reduction, fusion) is not None
    return COLUMNS.match(_returned_reduction, fusion) is not None


# ---- columns of the last axis ---------------------------------------------------------------------------------------

COLUMNS: Pattern[Reduction] = Pattern("column-kernel", "a reduction walks down neighbouring columns side by side")


@COLUMNS.requires("the fusion returns one value, which is all that the reduction makes")
def _has_one_result(found: Reduction) -> bool:
    return len(found.results) == len(found.op.results) == 1


@COLUMNS.requires("there are columns and rows")
def _has_rows(found: Reduction) -> bool:
    return found.rank > 1


@COLUMNS.requires("it reduces along all axes but the last")
def _keeps_the_last_axis(found: Reduction) -> bool:
    return found.reduced == list(range(found.rank - 1))


def _returned_reduction(fusion: func.FuncOp) -> Reduction | None:
    *_, returned = fusion.entry_block.operations
    results = list(returned.operands)
    if not results or isinstance(results[0].owner, ir.Block) or results[0].owner.operation.name != "stablehlo.reduce":
        return None
    return Reduction(results, results[0].owner.operation.opview)


# ---- columns of several axes, in each of several blocks of rows -----------------------------------------------------

TILES: Pattern[Reduction] = Pattern("column-tiles", "a reduction walks down columns, many threads to each")


@TILES.requires("each result of the fusion has the sizes of what the reduction makes")
def _has_its_sizes(found: Reduction) -> bool:
    return all(dims_of(value) == dims_of(found.op.results[0]) for value in found.results)


@TILES.requires("it reduces along neighbouring axes, behind which there are others")
def _keeps_last_axes(found: Reduction) -> bool:
    first, *_, last = found.reduced * 2 or [0, found.rank]
    return found.reduced == list(range(first, last + 1)) and last < found.rank - 1


def _only_reduction(fusion: func.FuncOp) -> Reduction | None:
    *ops, returned = fusion.entry_block.operations
    reductions = [op for op in ops if op.operation.name == "stablehlo.reduce"]
    return Reduction(list(returned.operands), reductions[0]) if len(reductions) == 1 else None
