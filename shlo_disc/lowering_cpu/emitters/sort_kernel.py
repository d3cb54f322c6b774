# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sort kernels: a stable merge sort of each row, with the op's own comparator, rows in parallel.

Short runs are made by insertion while the row is loaded; passes over the row then merge pairs of runs from one buffer
into the other, so a row of n elements takes about n * log2(n / RUN) steps. The buffers are the results and a second set
of outputs of the same size, which the memory plan holds for this kernel only. Elements move as they are stored.

Whatever the comparator answers, every index stays inside the row; what is no strict weak order gives some permutation.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.lowering.kernels import delinearize
from shlo_disc.lowering.line_sort import LineSort, Rows, ceil_log2, row_of, sort_of
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering_cpu.emitters.frame import CpuFrame
from shlo_disc.lowering_cpu.emitters.loops import for_range
from shlo_disc.shape_dialect.dialect.types import dims_of, product
from shlo_disc.shape_dialect.mlir import arith, ir, scf
from shlo_disc.shape_dialect.symbolic.expr import Expr

RUN = 16
"""Elements of the runs that insertion makes."""


def build_sort(frame: CpuFrame) -> tuple[Expr, Expr]:
    """Emit the body; returns the number of rows and the cost of one."""
    op = sort_of(frame.fusion)
    *outer, length = dims_of(op.operands[0])
    count = len(op.results)
    results, spare = frame.output_buffers[:count], frame.output_buffers[count:]
    elements = frame.elements(1)

    def row(linear: ir.Value) -> None:
        with elements.scope():
            n = frame.size_of(length)
            place = [Position(i) for i in delinearize(linear, tuple(outer), frame.size_of)]
            sorter = RowSort(op, elements, place, n)
            sorter.run(*([row_of(buffer, linear, n) for buffer in buffers] for buffers in (results, spare)))

    for_range(frame.begin, frame.end, row)
    passes = max(2, frame.facts.estimate(length)).bit_length()
    return product(outer), 4 * count * passes * length


@dataclass
class RowSort(LineSort):
    """Sorts one row of `length` elements; `place` is where the row lies on the other axes."""

    place: list[Position]
    length: ir.Value

    def run(self, results: Rows, spare: Rows) -> None:
        """Sort into `results`; the first runs lie where an even number of passes ends there."""
        run = index_constant(RUN)
        runs = arith.divui(arith.addi(self.length, index_constant(RUN - 1)), run)
        passes = ceil_log2(runs)
        is_even = arith.cmpi(arith.CmpIPredicate.eq, arith.andi(passes, index_constant(1)), index_constant(0))
        source = [arith.select(is_even, a, b) for a, b in zip(results, spare, strict=True)]
        target = [arith.select(is_even, b, a) for a, b in zip(results, spare, strict=True)]
        for_range(index_constant(0), self.length, lambda begin: self._insertion_run(source, begin), run)
        loop = scf.ForOp(index_constant(0), passes, index_constant(1), [run, *source, *target])
        with ir.InsertionPoint(loop.body):
            width, *buffers = loop.inner_iter_args
            source, target = buffers[: len(results)], buffers[len(results) :]
            double = arith.addi(width, width)
            for_range(index_constant(0), self.length, lambda b: self._merge(source, target, b, width), double)
            scf.yield_([double, *target, *source])

    # ---- runs -------------------------------------------------------------------------------------------------------

    def _insertion_run(self, rows: Rows, begin: ir.Value) -> None:
        """Load the elements from `begin` on, each into its place among those before it."""
        end = arith.minui(arith.addi(begin, index_constant(RUN)), self.length)

        def load_and_insert(i: ir.Value) -> None:
            with self.elements.scope():
                self.insert(rows, begin, i, self.element_at((*self.place, Position(i))))

        for_range(begin, end, load_and_insert)

    def insert(self, rows: Rows, begin: ir.Value, i: ir.Value, new: list[ir.Value]) -> None:
        """Put an element into the sorted [begin, i), whose last ones move up to make room."""
        index, one = ir.IndexType.get(), index_constant(1)
        loop = scf.WhileOp([index], [i])
        before = loop.before.blocks.append(index)
        with ir.InsertionPoint(before):
            hole = before.arguments[0]
            is_inside = arith.cmpi(arith.CmpIPredicate.ugt, hole, begin)
            previous = arith.select(is_inside, arith.subi(hole, one), begin)
            moves = arith.andi(is_inside, self.is_before(new, self.load(rows, previous)))
            scf.condition(moves, [hole])
        after = loop.after.blocks.append(index)
        with ir.InsertionPoint(after):
            previous = arith.subi(after.arguments[0], one)
            self.store(rows, after.arguments[0], self.load(rows, previous))
            scf.yield_([previous])
        self.store(rows, loop.results[0], new)

    # ---- merging ----------------------------------------------------------------------------------------------------

    def _merge(self, source: Rows, target: Rows, begin: ir.Value, width: ir.Value) -> None:
        """Merge the runs [begin, middle) and [middle, end) of `source`, without branches on the elements.

        Both heads are loaded at every step, the one of a finished run at its last element, and then not taken.
        """
        one = index_constant(1)
        middle = arith.minui(arith.addi(begin, width), self.length)
        end = arith.minui(arith.addi(middle, width), self.length)
        last_left, last_right = arith.subi(middle, one), arith.subi(end, one)
        loop = scf.ForOp(begin, end, one, [begin, middle])
        with ir.InsertionPoint(loop.body):
            i, j = loop.inner_iter_args
            left = self.load(source, arith.minui(i, last_left))
            right = self.load(source, arith.minui(j, last_right))
            right_is_first = self.is_before(right, left)
            left_is_done = arith.cmpi(arith.CmpIPredicate.uge, i, middle)
            right_is_left = arith.cmpi(arith.CmpIPredicate.ult, j, end)
            takes_right = arith.ori(left_is_done, arith.andi(right_is_left, right_is_first))
            taken = [arith.select(takes_right, b, a) for a, b in zip(left, right, strict=True)]
            self.store(target, loop.induction_variable, taken)
            step = arith.index_castui(ir.IndexType.get(), takes_right)
            scf.yield_([arith.addi(i, arith.subi(one, step)), arith.addi(j, step)])
