# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Update kernels for GPUs: the window of a dynamic_update_slice, each element by a thread.

The host program sees to it that the operand is there: it is the operand's own buffer, or the operand is copied first.
"""

from __future__ import annotations

from shlo_disc.lowering.elements import uniform
from shlo_disc.lowering.index_rules.moves import window_starts
from shlo_disc.lowering.kernels import delinearize, op_cost
from shlo_disc.lowering.window_update import write_into_window
from shlo_disc.lowering_gpu.grid import THREADS, each_thread
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.shape_dialect.dialect.types import dims_of, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv


def build_update(frame: GpuFrame) -> tuple[Expr, int]:
    """Emit the body; returns how many blocks have work, and the cost of what one does."""
    op = frame.maker()  # what is written may be an updated copy itself
    whole, window = dims_of(op.operands[0]), dims_of(op.operands[1])
    elements, total = frame.elements(), product(window)

    def element(linear: ir.Value) -> None:
        with elements.scope():
            starts = window_starts(elements, list(op.operands)[2:], whole, window)
            where = uniform(delinearize(linear, window, frame.size_of))
            write_into_window(frame, elements, op, where, starts)

    each_thread(frame.size_of(total), element)
    cost = sum(op_cost(o) for o in frame.fusion.entry_block.operations)
    return ceildiv(total, THREADS), max(1, cost) * THREADS
