# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows and columns of a row reduction, and how deep each of its values lies.

The depth of a value is the number of reductions above it. A kernel walks each row once per depth: the first walk
computes the reductions that need only inputs, the next those that need the first ones, the last writes the outputs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shlo_disc.lowering.elements import Positions
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import func, ir


@dataclass
class RowAnalysis:
    """The sizes of rows and columns, the depth of every value, the reductions of each depth."""

    rows: Dims
    columns: Dims
    depth: dict[ir.Value, int] = field(default_factory=dict)
    reduces: dict[int, list[ir.OpView]] = field(default_factory=dict)

    @property
    def last(self) -> int:
        """The depth of the walk that writes the outputs."""
        return max(self.reduces) + 1

    def is_full(self, value: ir.Value) -> bool:
        """Runs along the row, as opposed to one value a row."""
        wide = [d for d in dims_of(value) if d.constant != 1]
        return len(wide) > len([d for d in self.rows if d.constant != 1])

    def places(self, value: ir.Value, rows: Positions, columns: Positions) -> Positions:
        """The positions of a value's element in row `rows` at `columns`."""
        wide = [p for p, d in zip(rows, self.rows, strict=True) if d.constant != 1]
        if self.is_full(value):
            wide += [p for p, d in zip(columns, self.columns, strict=True) if d.constant != 1]
        source = iter(wide)
        return tuple(Position(index_constant(0)) if d.constant == 1 else next(source) for d in dims_of(value))


def analyse_rows(fusion: func.FuncOp) -> RowAnalysis:
    """Find the rows, the columns and the depths."""
    operations = list(fusion.entry_block.operations)
    first = next(op for op in operations if op.operation.name == "stablehlo.reduce")
    dims = dims_of(first.operands[0])
    columns = len(dims) - len(dims_of(first.results[0]))
    analysis = RowAnalysis(dims[: len(dims) - columns], dims[len(dims) - columns :])
    for op in operations:
        above = max((analysis.depth.get(v, 0) for v in op.operands), default=0)
        is_reduce = op.operation.name == "stablehlo.reduce"
        if is_reduce:
            analysis.reduces.setdefault(above, []).append(op)
        for result in op.results:
            analysis.depth[result] = above + is_reduce
    return analysis
