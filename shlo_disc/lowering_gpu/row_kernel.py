# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Row kernels: chains of reductions along rows (softmax, layer norm), one block a row.

The block walks the row once per reduction depth. Where each reduction is a plain sum, maximum, ... neighbouring threads
take neighbouring columns. Any other body may depend on the order of its operands (an argmax keeps the first of equal
elements), so each thread then takes a run of columns, and runs are combined in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shlo_disc.lowering.element_types import element_of, to_memory
from shlo_disc.lowering.elements import Elements, Positions, uniform
from shlo_disc.lowering.kernels import delinearize
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering.reduction import Combiner, start_values
from shlo_disc.lowering.rows import RowAnalysis, analyse_rows
from shlo_disc.lowering_gpu.block_reduction import across_block
from shlo_disc.lowering_gpu.kernel import THREADS, Frame, each_block, thread
from shlo_disc.mlir import arith, gpu, ir, memref, scf
from shlo_disc.shape_dialect.dialect.types import product
from shlo_disc.shape_dialect.symbolic.expr import Expr

Body = Callable[[Positions, list[ir.Value]], list[ir.Value]]


class RowKernel:
    """Emits the work of one block on one row after another."""

    def __init__(self, frame: Frame, analysis: RowAnalysis, elements: Elements):
        self.frame = frame
        self.analysis = analysis
        self.elements = elements

    def row(self, linear: ir.Value) -> None:
        """One row."""
        with self.elements.scope():
            self.rows = uniform(delinearize(linear, self.analysis.rows, self.frame.size_of))
            for depth in sorted(self.analysis.reduces):
                self._reduce_walk(self.analysis.reduces[depth])
            self._write_walk()
        if sum(map(len, self.analysis.reduces.values())) == 1:
            # Where there are more, each has its barrier between the other's reads in this row and writes in the next.
            gpu.barrier()
        self.elements.bound.clear()

    # ---- walks ------------------------------------------------------------------------------------------------

    def _walk(self, carried: list[ir.Value], in_runs: bool, body: Body) -> list[ir.Value]:
        """This thread's share of the columns."""
        count = self.frame.size_of(product(self.analysis.columns))
        threads = index_constant(THREADS)
        begin, end, step = thread(), count, threads
        if in_runs:
            length = arith.divui(arith.addi(count, index_constant(THREADS - 1)), threads)
            begin = arith.minui(arith.muli(thread(), length), count)
            end, step = arith.minui(arith.addi(begin, length), count), index_constant(1)
        loop = scf.ForOp(begin, end, step, carried)
        with ir.InsertionPoint(loop.body), self.elements.scope():
            columns = uniform(delinearize(loop.induction_variable, self.analysis.columns, self.frame.size_of))
            scf.yield_(body(columns, list(loop.inner_iter_args)))
        return list(loop.results)

    def _reduce_walk(self, reduces: Sequence[ir.OpView]) -> None:
        elements = self.elements
        combiners = [Combiner(op, elements.elementwise) for op in reduces]
        inits = [[elements.at(v, ()) for v in list(op.operands)[len(op.results) :]] for op in reduces]
        starts = [start_values(c, i, 1) for c, i in zip(combiners, inits, strict=True)]

        def body(columns: Positions, values: list[ir.Value]) -> list[ir.Value]:
            result: list[ir.Value] = []
            rest = iter(values)
            for op, combiner in zip(reduces, combiners, strict=True):
                own = [next(rest) for _ in op.results]
                inputs = list(op.operands)[: len(op.results)]
                result += combiner.combine(own, [elements.at(v, self._place(v, columns)) for v in inputs])
            return result

        in_runs = any(c.monoid is None for c in combiners)
        results = iter(self._walk([v for values, _ in starts for v in values], in_runs, body))
        for op, combiner, init, (_, pending) in zip(reduces, combiners, inits, starts, strict=True):
            total = across_block(self.frame, combiner, [next(results) for _ in op.results])
            if pending:
                total = combiner.combine(init, total)
            elements.bound.update(zip(op.results, combiner.rounded(total), strict=True))

    def _write_walk(self) -> None:
        outputs = list(zip(self.frame.outputs, self.frame.output_buffers, strict=True))
        full = [(v, b) for v, b in outputs if self.analysis.is_full(v)]
        single = [(v, b) for v, b in outputs if not self.analysis.is_full(v)]

        def body(columns: Positions, _: list[ir.Value]) -> list[ir.Value]:
            self._write(full, columns)
            return []

        if full:
            self._walk([], False, body)
        if single:
            if full:
                # Threads that are still in the walk may read what these take the place of.
                gpu.barrier()
            first = scf.IfOp(arith.cmpi(arith.CmpIPredicate.eq, thread(), index_constant(0)), [])
            with ir.InsertionPoint(first.then_block), self.elements.scope():
                self._write(single, ())
                scf.yield_([])

    def _write(self, outputs: list[tuple[ir.Value, ir.Value]], columns: Positions) -> None:
        """All values are computed before any is written, so that an output may take over an input's buffer."""
        places = [self._place(v, columns) for v, _ in outputs]
        values = [self.elements.at(v, p) for (v, _), p in zip(outputs, places, strict=True)]
        for value, place, (output, buffer) in zip(values, places, outputs, strict=True):
            memref.store(to_memory(value, element_of(output.type)), buffer, [p.base for p in place])

    def _place(self, value: ir.Value, columns: Positions) -> Positions:
        return self.analysis.places(value, self.rows, columns)


def build_rows(frame: Frame) -> Expr:
    """Emit the body; returns the number of rows."""
    analysis = analyse_rows(frame.fusion)
    total = product(analysis.rows)
    each_block(frame.size_of(total), RowKernel(frame, analysis, frame.elements()).row)
    return total
