# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The common part of scans of every target: the lines of a cumulative op, their direction, and the combination."""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering.reduction import Accumulators, Combiner
from shlo_disc.shape_dialect.dialect.fusion import Scan, fusion_of
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import arith, func, ir
from shlo_disc.shape_dialect.symbolic.expr import Expr


@dataclass(frozen=True)
class LineScan:
    """A `reduce_window` whose windows are all prefixes of an axis, or, unless `is_forward`, all suffixes."""

    op: ir.OpView
    axis: int
    is_forward: bool

    @property
    def dims(self) -> Dims:
        """The sizes of the operands, and of the results."""
        return dims_of(self.op.operands[0])

    @property
    def length(self) -> Expr:
        """The elements of a line."""
        return self.dims[self.axis]

    @property
    def inputs(self) -> list[ir.Value]:
        """The operands that are combined."""
        return list(self.op.operands)[: len(self.op.results)]

    @property
    def inits(self) -> list[ir.Value]:
        """The initial values of lines."""
        return list(self.op.operands)[len(self.op.results) :]

    def place(self, step: ir.Value, length: ir.Value) -> ir.Value:
        """The index on the axis of the element at a step of the walk."""
        if self.is_forward:
            return step
        return arith.subi(arith.subi(length, index_constant(1)), step)

    def join(self, combiner: Combiner, before: Accumulators, after: Accumulators) -> Accumulators:
        """Combine the part before a step with the part after it in the walk, in the order of the axis."""
        return combiner.combine(before, after) if self.is_forward else combiner.combine(after, before)


def scan_of(fusion: func.FuncOp) -> LineScan:
    """The scan of a fusion. Raises CompilerError for any other kind."""
    scan = fusion_of(fusion)
    if not isinstance(scan, Scan):
        raise CompilerError(f"kernels: a {scan.kind} is no scan")
    op = next(o for o in fusion.entry_block.operations if o.operation.name == "stablehlo.reduce_window")
    return LineScan(op, scan.axis, not scan.reverse)
