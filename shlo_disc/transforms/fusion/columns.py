# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds reductions down columns, such as the gradient of a bias, for which a target has a kernel of its own.

That kernel walks down neighbouring columns with a sum for each, so that rows are read as they lie. It computes what is
made of the sums, such as means, where they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.transforms.decisions import Pattern
from shlo_disc.transforms.fusion.grouping_patterns import depends_on_reduction


@dataclass(frozen=True)
class Reductions:
    """The results of a fusion, and the reductions in it."""

    results: list[ir.Value]
    ops: list[ir.OpView]

    @property
    def reduced(self) -> list[int]:
        """The axes along which the first one reduces."""
        return _reduced(self.ops[0])

    @property
    def rank(self) -> int:
        """The rank of what the first one reduces."""
        return len(dims_of(self.ops[0].operands[0]))


def has_columns(fusion: func.FuncOp) -> bool:
    """Tells whether the kernel of a fusion of kind "reduce" walks down columns."""
    pattern = TILES if policy().has_column_tiles else COLUMNS
    return pattern.match(_reductions, fusion) is not None


def _reductions(fusion: func.FuncOp) -> Reductions | None:
    *ops, returned = fusion.entry_block.operations
    reductions = [op for op in ops if op.operation.name == "stablehlo.reduce"]
    return Reductions(list(returned.operands), reductions) if reductions else None


def _reduced(op: ir.OpView) -> list[int]:
    return sorted(integers(op.attributes["dimensions"]))


def _wide(dims: Dims) -> Dims:
    return tuple(size for size in dims if size.constant != 1)


# ---- columns of the last axis ---------------------------------------------------------------------------------------

COLUMNS: Pattern[Reductions] = Pattern("column-kernel", "reductions walk down neighbouring columns side by side")


@COLUMNS.requires("each result of the fusion has the sizes of what the reductions make, those of 1 aside")
def _has_its_columns(found: Reductions) -> bool:
    columns = _wide(dims_of(found.ops[0].results[0]))
    return all(_wide(dims_of(value)) == columns for value in found.results)


@COLUMNS.requires("there are columns and rows")
def _has_rows(found: Reductions) -> bool:
    return found.rank > 1


@COLUMNS.requires("it reduces along all axes but the last")
def _keeps_the_last_axis(found: Reductions) -> bool:
    return found.reduced == list(range(found.rank - 1))


@COLUMNS.requires("all reductions walk down the same columns")
def _walk_alike(found: Reductions) -> bool:
    first = found.ops[0].operands[0]
    return all(_reduced(op) == found.reduced and dims_of(op.operands[0]) == dims_of(first) for op in found.ops)


@COLUMNS.requires("no reduction needs what another one makes")
def _need_no_other(found: Reductions) -> bool:
    members = {op.operation for op in found.ops[0].operation.block.operations}
    return not any(depends_on_reduction(op.operation, members) for op in found.ops)


# ---- columns of several axes, in each of several blocks of rows -----------------------------------------------------

TILES: Pattern[Reductions] = Pattern("column-tiles", "a reduction walks down columns, many threads to each")


@TILES.requires("there is one reduction")
def _is_alone(found: Reductions) -> bool:
    return len(found.ops) == 1


@TILES.requires("each result of the fusion has the sizes of what the reduction makes")
def _has_its_sizes(found: Reductions) -> bool:
    return all(dims_of(value) == dims_of(found.ops[0].results[0]) for value in found.results)


@TILES.requires("it reduces along neighbouring axes, behind which there are others")
def _keeps_last_axes(found: Reductions) -> bool:
    first, *_, last = found.reduced * 2 or [0, found.rank]
    return found.reduced == list(range(first, last + 1)) and last < found.rank - 1
