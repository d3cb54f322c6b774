# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that only cut a piece out of every row: a reader that takes any strides needs no copy of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shlo_disc.shape_dialect.dense import array_of
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, dims_of_attr, product
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops import SLICES
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.attributes import integers


@dataclass(frozen=True)
class RowSlice:
    """Elements `start` to `start + size` of rows of `whole` elements."""

    start: int
    size: int
    whole: int

    @staticmethod
    def of(function: func.FuncOp) -> RowSlice | None:
        """The slice that a fusion with one argument cuts out of the last axis; None when it does anything else."""
        operations = [op.operation for op in function.entry_block.operations]
        slices = [op for op in operations if op.name in SLICES]
        others = {op.name for op in operations} - {*SLICES, "stablehlo.constant", "disc.shape", "func.return"}
        if others or len(slices) != 1 or list(function.entry_block.arguments) != [slices[0].operands[0]]:
            return None
        op = slices[0]
        source, result = dims_of(op.operands[0]), dims_of(op.results[0])
        starts, steps = (_numbers(op, i) for i in (0, 2))
        if not source or starts is None or steps is None or any(s.constant != 1 for s in steps):
            return None
        start, size, whole = starts[-1].constant, result[-1].constant, source[-1].constant
        is_whole = source[:-1] == result[:-1] and all(s.constant == 0 for s in starts[:-1])
        if not is_whole or start is None or size is None or whole is None:
            return None
        lies_inside = 0 <= start <= whole - size
        return RowSlice(start, size, whole) if lies_inside else None

    def strides(self, dims: Dims) -> list[Expr] | None:
        """The strides in the uncut array of a view of what was cut out; None when a size lies across the cut."""
        for inner in range(len(dims), -1, -1):
            if product(dims[inner:]).constant == self.size:
                outer = [product(dims[i + 1 : inner]) * self.whole for i in range(inner)]
                return outer + [product(dims[i + 1 :]) for i in range(inner, len(dims))]
        return None


def _numbers(op: ir.Operation, which: int) -> Sequence[Expr] | None:
    """The starts (0), limits (1) or strides (2) of a slice."""
    if op.name == "stablehlo.slice":
        name = ("start_indices", "limit_indices", "strides")[which]
        return [Expr.const(n) for n in integers(op.attributes[name])]
    maker = defining_op(op.operands[1 + which])
    if maker is None:
        return None
    if maker.name == "disc.shape":
        return dims_of_attr(maker.attributes["dims"])
    return [Expr.const(int(n)) for n in array_of(maker).ravel()]
