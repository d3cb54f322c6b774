# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Update kernels: the window of a dynamic_update_slice, written into a buffer that holds the operand.

The host program sees to it that the operand is there: it is the operand's own buffer, or the operand is copied first.
"""

from __future__ import annotations

from shlo_disc.lowering.index_rules.moves import window_starts
from shlo_disc.lowering.kernels import delinearize, op_cost
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.window_update import write_into_window
from shlo_disc.lowering_cpu.emitters.frame import CpuFrame
from shlo_disc.lowering_cpu.emitters.loops import for_range, over_lanes
from shlo_disc.shape_dialect.dialect.types import dims_of, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr, ExprLike


def build_update(frame: CpuFrame) -> tuple[Expr, ExprLike]:
    """Emit the body; returns the number of work items and the cost of one."""
    op = frame.maker()  # what is written may be an updated copy itself
    cost = max(1, sum(op_cost(o) for o in frame.fusion.entry_block.operations))
    whole, window = dims_of(op.operands[0]), dims_of(op.operands[1])
    elements = frame.elements(frame.width() if window else 1)
    starts = window_starts(elements, list(op.operands)[2:], whole, window)
    if not window:
        for_range(frame.begin, frame.end, lambda _: write_into_window(frame, elements, op, (), starts))
        return Expr.const(1), cost

    def row(outer: list[ir.Value], begin: ir.Value, end: ir.Value, divisible: bool) -> None:
        def lanes(position: Position, carried: list[ir.Value], mask: ir.Value | None) -> list[ir.Value]:
            write_into_window(frame, elements, op, (*(Position(v) for v in outer), position), starts)
            return []

        over_lanes(elements, begin, end, divisible, [], lanes)

    if len(window) == 1:
        row([], frame.begin, frame.end, divisible=False)
        return window[0], cost
    columns = window[-1]

    def rows(linear: ir.Value) -> None:
        with elements.scope():
            outer = delinearize(linear, window[:-1], frame.size_of)
            divisible = frame.is_whole(elements.width, columns)
            row(outer, index_constant(0), frame.size_of(columns), divisible)

    for_range(frame.begin, frame.end, rows)
    return product(window[:-1]), cost * columns
