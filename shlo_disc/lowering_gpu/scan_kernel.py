# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scan kernels for GPUs: a `reduce_window` whose windows are all prefixes, or all suffixes, of an axis.

A block goes along a line, or, where lines are long and few, along a part of one, whose elements it has combined once
before, so that it finds together what stands before its part (`ordered_parts`). In every step each thread reads a run
of neighbouring elements and combines them, the block combines the threads' runs, and what it has met before goes on
with the next step. Every element is read before a result of its step is written.
"""

from __future__ import annotations

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.element_types import constant_like
from shlo_disc.lowering.elements import Positions, uniform
from shlo_disc.lowering.kernels import delinearize, op_cost
from shlo_disc.lowering.line_scan import scan_of
from shlo_disc.lowering.long_sums import LongSums, in_blocks, joined
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering.reduction import Accumulators, Combiner
from shlo_disc.lowering_gpu.block_loops import Values, counted, when
from shlo_disc.lowering_gpu.block_scan import prefix_of_block
from shlo_disc.lowering_gpu.grid import THREADS, thread
from shlo_disc.lowering_gpu.index_math import below
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.lowering_gpu.ordered_parts import OrderedParts
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.shape_dialect.dialect.types import product
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, scf
from shlo_disc.shape_dialect.symbolic.expr import Expr

RUN = 4
"""Neighbouring elements that a thread combines by itself."""


def build_scan(frame: GpuFrame) -> tuple[Expr, int]:
    """Emit the body; returns how many blocks have work, and the cost of what one does."""
    kernel = BlockScan(frame)
    kernel.parts.guard(kernel.scan.length, GPU_POLICY.part_columns, kernel.lines)
    kernel.parts.each(frame.size_of(kernel.lines), kernel.line)
    cost = sum(op_cost(o) for o in frame.fusion.entry_block.operations)
    return kernel.lines * kernel.parts.count, max(1, cost * frame.facts.estimate(kernel.scan.length))


class BlockScan:
    """One cumulative op."""

    def __init__(self, frame: GpuFrame):
        self.frame, self.scan, self.elements = frame, scan_of(frame.fusion), frame.elements()
        self.combiner = Combiner(self.scan.op, self.elements.elementwise)
        self.outer = tuple(d for axis, d in enumerate(self.scan.dims) if axis != self.scan.axis)
        self.sums, self.parts = LongSums([self.combiner]), OrderedParts(frame)

    @property
    def lines(self) -> Expr:
        """The number of lines."""
        return product(self.outer)

    def line(self, linear: ir.Value) -> None:
        """One line."""
        with self.elements.scope():
            outer = delinearize(linear, self.outer, self.frame.size_of)
            inits = [self.elements.at(v, ()) for v in self.scan.inits]
            zero = constant_like(inits[0], 0.0) if self.sums.any else None
            start = inits if zero is None else [zero, inits[0], zero]
            begin, count = self.parts.share(self.scan.length)
            end, is_split = arith.addi(begin, count), self.parts.is_split
            if is_split is not None:
                choice = scf.IfOp(is_split, [v.type for v in start], has_else=True)
                with ir.InsertionPoint(choice.then_block):
                    scf.yield_(self._behind(start, self._before(linear, outer, begin, end)))
                with ir.InsertionPoint(choice.else_block):
                    scf.yield_(start)
                start = list(choice.results)
            step = index_constant(RUN * THREADS)
            counted(begin, end, step, start, lambda at, met: self._step(outer, end, at, met))
            if is_split is not None:
                when(is_split, self.parts.finish)

    def _before(self, line: ir.Value, outer: Values, begin: ir.Value, end: ir.Value) -> Values:
        """The elements of a line before a part of it, together; of a float sum the total, and what it lacks."""
        length, sums = self.frame.size_of(self.scan.length), self.sums
        none = [constant_like(self.elements.at(v, ()), self._identity) for v in self.scan.inits]

        def add(step: ir.Value, carried: Values) -> Values:
            with self.elements.scope():
                ((own, long),) = sums.split(carried)
                read = [self.elements.at(v, self._place(outer, step, length)) for v in self.scan.inputs]
                return [*self.combiner.combine(own, read), *long]

        fold, first = sums.fold if sums.any else None, arith.addi(begin, thread())
        own = in_blocks(first, end, THREADS, sums.start([none]), add, fold, RUN)
        own, none = (sums.fold(own)[1:], none * 2) if sums.any else (own, none)
        combine = joined if sums.any else self.combiner.combine
        total = prefix_of_block(self.frame, combine, own).total
        return prefix_of_block(self.frame, combine, self.parts.before(total, none, [line], combine)).total

    def _behind(self, start: Values, before: Values) -> Values:
        """The values met before a part, where so much is before it, and those at the start of lines."""
        return [start[0], *joined(start[1:], before)] if self.sums.any else self._join(start, before)

    @property
    def _identity(self) -> float | int:
        """The neutral element."""
        if self.combiner.monoid is None:
            raise CompilerError("kernels: a scan without a neutral element is split over blocks")
        return self.combiner.identity(self.combiner.monoid)

    def _step(self, outer: Values, end: ir.Value, begin: ir.Value, met: Values) -> Values:
        """Read, combine and write the elements from `begin` on; gives all that has been met then.

        Threads behind the end of the part read its last element again, for nothing.
        """
        length = self.frame.size_of(self.scan.length)
        with self.elements.scope():
            last = arith.subi(end, index_constant(1))
            first = arith.addi(begin, arith.muli(thread(), index_constant(RUN)))
            steps = [arith.addi(first, index_constant(number)) for number in range(RUN)]
            places = [self._place(outer, arith.minui(step, last), length) for step in steps]
            runs: list[Accumulators] = []
            for place in places:
                read = [self.elements.at(v, place) for v in self.scan.inputs]
                runs.append(self._join(runs[-1], read) if runs else read)
            prefix = prefix_of_block(self.frame, self._join, runs[-1])
            for step, place, run in zip(steps, places, runs, strict=True):
                self._write(below(step, end), self._after(met, prefix.then(self._join, run)), place)
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
