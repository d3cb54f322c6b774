# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scan kernels for GPUs: a `reduce_window` whose windows are all prefixes, or all suffixes, of an axis.

A block goes along a line. In every step each thread reads a run of neighbouring elements and combines them, the block
combines the threads' runs, and what it has met before goes on with the next step. Every element is read before a
result of its step is written.
"""

from __future__ import annotations

from shlo_disc.lowering.element_types import constant_like
from shlo_disc.lowering.elements import Positions, uniform
from shlo_disc.lowering.kernels import delinearize, op_cost
from shlo_disc.lowering.line_scan import scan_of
from shlo_disc.lowering.long_sums import LongSums
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering.reduction import Accumulators, Combiner
from shlo_disc.lowering_gpu.block_loops import Values, below, counted, when
from shlo_disc.lowering_gpu.block_scan import prefix_of_block
from shlo_disc.lowering_gpu.grid import THREADS, each_block, thread
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.shape_dialect.dialect.types import product
from shlo_disc.shape_dialect.mlir import arith, gpu, ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

RUN = 4
"""Neighbouring elements that a thread combines by itself."""


def build_scan(frame: GpuFrame) -> tuple[Expr, int]:
    """Emit the body; returns the number of lines and the cost of one."""
    kernel = BlockScan(frame)
    each_block(frame.size_of(kernel.lines), kernel.line)
    cost = sum(op_cost(o) for o in frame.fusion.entry_block.operations)
    return kernel.lines, max(1, cost * frame.facts.estimate(kernel.scan.length))


class BlockScan:
    """One cumulative op."""

    def __init__(self, frame: GpuFrame):
        self.frame, self.scan, self.elements = frame, scan_of(frame.fusion), frame.elements()
        self.combiner = Combiner(self.scan.op, self.elements.elementwise)
        self.outer = tuple(d for axis, d in enumerate(self.scan.dims) if axis != self.scan.axis)
        self.sums = LongSums([self.combiner])

    @property
    def lines(self) -> Expr:
        """The number of lines."""
        return product(self.outer)

    def line(self, linear: ir.Value) -> None:
        """One line."""
        with self.elements.scope():
            outer = delinearize(linear, self.outer, self.frame.size_of)
            length = self.frame.size_of(self.scan.length)
            inits = [self.elements.at(v, ()) for v in self.scan.inits]
            zero = constant_like(inits[0], 0.0) if self.sums.any else None
            start = inits if zero is None else [zero, inits[0], zero]
            step = index_constant(RUN * THREADS)
            counted(index_constant(0), length, step, start, lambda begin, met: self._step(outer, length, begin, met))

    def _step(self, outer: Values, length: ir.Value, begin: ir.Value, met: Values) -> Values:
        """Read, combine and write the elements from `begin` on; gives all that has been met then.

        Threads behind the end of the line read its last element again, for nothing.
        """
        with self.elements.scope():
            last = arith.subi(length, index_constant(1))
            first = arith.addi(begin, arith.muli(thread(), index_constant(RUN)))
            steps = [arith.addi(first, index_constant(number)) for number in range(RUN)]
            places = [self._place(outer, arith.minui(step, last), length) for step in steps]
            runs: list[Accumulators] = []
            for place in places:
                read = [self.elements.at(v, place) for v in self.scan.inputs]
                runs.append(self._join(runs[-1], read) if runs else read)
            prefix = prefix_of_block(self.frame, self._join, runs[-1])
            for step, place, run in zip(steps, places, runs, strict=True):
                self._write(below(step, length), self._after(met, prefix.then(self._join, run)), place)
            gpu.barrier()
            return self._met(met, prefix.total)

    def _place(self, outer: Values, step: ir.Value, length: ir.Value) -> Positions:
        where = list(outer)
        where.insert(self.scan.axis, self.scan.place(step, length))
        return uniform(where)

    def _join(self, before: Accumulators, after: Accumulators) -> Accumulators:
        return self.scan.join(self.combiner, before, after)

    def _after(self, met: Values, own: Accumulators) -> Accumulators:
        """The elements met before the step, a total and its error for float sums, combined with elements of it."""
        return self.sums.finish([*own, *met[1:]])[0] if self.sums.any else self._join(met, own)

    def _met(self, met: Values, total: Accumulators) -> Values:
        return self.sums.fold([*total, *met[1:]]) if self.sums.any else self._join(met, total)

    def _write(self, is_inside: ir.Value, values: Accumulators, place: Positions) -> None:
        rounded, results = self.combiner.rounded(values), list(self.scan.op.results)

        def store() -> None:
            for output, buffer in zip(self.frame.outputs, self.frame.output_buffers, strict=True):
                value = rounded[results.index(output)]
                self.frame.store(buffer, value, place, output, self.elements, False)

        when(is_inside, store)
