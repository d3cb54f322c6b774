# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Row kernels for GPUs: one block a row.

Where each reduction is a plain sum, maximum, ... neighbouring threads take neighbouring columns. Any other body may
depend on the order of its operands (an argmax keeps the first of equal elements), so each thread then takes a run of
columns, and runs are combined in order.
"""

from __future__ import annotations

from collections.abc import Callable

from shlo_disc.lowering.elements import Positions, uniform
from shlo_disc.lowering.kernels import delinearize, op_cost
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering.reduction import Combiner
from shlo_disc.lowering.row_kernel import Body, RowKernel, Values
from shlo_disc.lowering.rows import analyse_rows
from shlo_disc.lowering_gpu.block_reduction import across_block
from shlo_disc.lowering_gpu.grid import THREADS, each_block, thread
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.mlir import arith, gpu, ir, scf
from shlo_disc.shape_dialect.dialect.types import product
from shlo_disc.shape_dialect.symbolic.expr import Expr


class BlockRows(RowKernel):
    """The work of one block on one row after another."""

    frame: GpuFrame

    def row(self, linear: ir.Value) -> None:
        """One row."""
        super().row(linear)
        if sum(map(len, self.analysis.reduces.values())) == 1:
            # Where there are more, each has its barrier between the other's reads in this row and writes in the next.
            gpu.barrier()

    def walk(self, carried: Values, body: Body, fold: Callable[[Values], Values] | None, in_order: bool) -> Values:
        """This thread's share of the columns."""
        count = self.frame.size_of(product(self.analysis.columns))
        threads = index_constant(THREADS)
        begin, end, step = thread(), count, threads
        if in_order:
            length = arith.divui(arith.addi(count, index_constant(THREADS - 1)), threads)
            begin = arith.minui(arith.muli(thread(), length), count)
            end, step = arith.minui(arith.addi(begin, length), count), index_constant(1)
        loop = scf.ForOp(begin, end, step, carried)
        with ir.InsertionPoint(loop.body), self.elements.scope():
            columns = uniform(delinearize(loop.induction_variable, self.analysis.columns, self.frame.size_of))
            scf.yield_(body(columns, list(loop.inner_iter_args), None))
        return list(loop.results)

    def across(self, combiner: Combiner, found: Values) -> Values:
        """The combination of all threads of the block."""
        return across_block(self.frame, combiner, found)

    def write_walk(self) -> None:
        """The first thread writes what there is one of in a row."""
        full, of_row = self.outputs(is_full=True), self.outputs(is_full=False)

        def body(columns: Positions, *_: object) -> Values:
            self.store(self.compute(full, columns))
            return []

        if full:
            self.walk([], body, None, False)
        if of_row:
            if full:
                # Threads that are still in the walk may read what these take the place of.
                gpu.barrier()
            first = scf.IfOp(arith.cmpi(arith.CmpIPredicate.eq, thread(), index_constant(0)), [])
            with ir.InsertionPoint(first.then_block), self.elements.scope():
                self.store(self.compute(of_row, ()))
                scf.yield_([])


def build_rows(frame: GpuFrame) -> tuple[Expr, Expr]:
    """Emit the body; returns the number of rows and the cost of one."""
    analysis = analyse_rows(frame.fusion)
    total = product(analysis.rows)
    each_block(frame.size_of(total), BlockRows(frame, analysis, frame.elements()).row)
    cost = sum(op_cost(op) for op in frame.fusion.entry_block.operations)
    return total, max(1, cost) * product(analysis.columns)
