# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Top-k kernels for GPUs: the first k elements of each sorted line without sorting it.

A block goes along a line, or, where lines are long and few, along a part of one; the last block of a line does the same
with what blocks have left of its parts (`parts`). The best k so far are the first slots of a tile. The others are
filled with the next elements, and only where one of those belongs before the last of the best is the tile sorted: on
most data, that is seldom. Parts come in their order, and in each the best ones in theirs, so that equal elements stay
in the order of the line.
"""

from __future__ import annotations

from collections.abc import Callable

from shlo_disc.lowering.kernels import delinearize
from shlo_disc.lowering.line_sort import sort_of
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering_gpu.block_loops import Values, counted, each_item, either, when
from shlo_disc.lowering_gpu.block_scan import any_of_block
from shlo_disc.lowering_gpu.grid import THREADS, thread
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.lowering_gpu.parts import Parts
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.lowering_gpu.sort_tile import SortTile
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv

Source = Callable[[ir.Value], Values]
"""Gives the elements of every operand with a number, as they are stored."""


def build_top_k(frame: GpuFrame) -> tuple[Expr, int]:
    """Emit the body; returns how many blocks have work, and the cost of what one does."""
    op = sort_of(frame.fusion)
    *outer, length = dims_of(op.operands[0])
    elements = frame.elements()
    count = dims_of(frame.outputs[0])[-1].constant or 0
    kernel = TopK(frame, SortTile(frame, op, elements, 2 * count), count, tuple(outer), length)
    lines = product(outer)
    kernel.parts.guard(length, GPU_POLICY.part_columns, lines)

    def line(linear: ir.Value) -> None:
        with elements.scope():
            kernel.line(linear)

    kernel.parts.each(frame.size_of(lines), line)
    return lines * kernel.parts.count, len(op.results) * max(1, frame.facts.estimate(length))


class TopK:
    """The first `count` elements of lines that have no fewer. A tile has more slots than that."""

    def __init__(self, frame: GpuFrame, tile: SortTile, count: int, outer: Dims, length: Expr):
        self.frame, self.tile, self.count, self.outer, self.length = frame, tile, count, outer, length
        self.parts = Parts(frame)

    def line(self, linear: ir.Value) -> None:
        """One line, or the block's part of it."""
        place = delinearize(linear, self.outer, self.frame.size_of)
        begin, length = self.parts.share(self.length)
        is_split = self.parts.is_split

        def element(i: ir.Value) -> Values:
            return self.tile.element_at((*map(Position, place), Position(arith.addi(begin, i))))

        self._find(element, length)
        if is_split is None:
            self._write(place)
        else:
            either(is_split, lambda: self._of_parts(linear, place, length), lambda: self._write(place))

    def _of_parts(self, linear: ir.Value, place: Values, length: ir.Value) -> None:
        """Leave what the part has, and find what all parts have, if all others are there."""
        own = arith.minui(length, index_constant(self.count))
        each_item(own, lambda i: self._leave([self.parts.part, linear, i], i))
        gpu.barrier()  # before it, all threads of the block have left theirs
        when(self.parts.is_last(), lambda: self._gather(linear, place))

    def _gather(self, linear: ir.Value, place: Values) -> None:
        """As many elements of each whole part as are left; behind these are those of a shorter one."""
        best = index_constant(self.count)

        def element(i: ir.Value) -> Values:
            at = [arith.divui(i, best), linear, arith.remui(i, best)]
            return [memref.load(buffer, at) for buffer in self.frame.partial_buffers]

        size = self.frame.size_of(ceildiv(self.length, self.parts.count))
        whole = self.frame.size_of(self.length)
        left = arith.addi(arith.muli(arith.divui(whole, size), best), arith.minui(arith.remui(whole, size), best))
        self._find(element, left)
        self._write(place)

    def _find(self, element: Source, length: ir.Value) -> None:
        """Put the first elements of `length` into the first slots, in order; all, where these are fewer."""
        size, best = index_constant(self.tile.size), index_constant(self.count)
        first = arith.minui(size, length)
        each_item(first, lambda i: self.tile.put(i, element(i)))
        self.tile.sort(first)
        step = index_constant(self.tile.size - self.count)

        def more(begin: ir.Value, _: Values) -> Values:
            count = arith.minui(step, arith.subi(length, begin))
            is_better = self._load(element, begin, count)

            def sort() -> None:
                each_item(best, self.tile.number)
                self.tile.sort(arith.addi(best, count))

            when(any_of_block(self.frame, is_better), sort)
            gpu.barrier()
            return []

        counted(size, length, step, [], more)

    def _load(self, element: Source, begin: ir.Value, count: ir.Value) -> ir.Value:
        """Fill the slots behind the best; whether one that this thread has loaded belongs before the last of those."""
        bound = self.tile.at(index_constant(self.count - 1))
        no = arith.constant(ir.IntegerType.get_signless(1), 0)

        def load(i: ir.Value, found: Values) -> Values:
            new = element(arith.addi(begin, i))
            self.tile.put(arith.addi(i, index_constant(self.count)), new)
            return [arith.ori(found[0], self.tile.sorter.is_before(new, bound))]

        return counted(thread(), count, index_constant(THREADS), [no], load)[0]

    def _leave(self, where: Values, slot: ir.Value) -> None:
        for buffer, value in zip(self.frame.partial_buffers, self.tile.at(slot), strict=True):
            memref.store(value, buffer, where)

    def _write(self, place: Values) -> None:
        """Write the best."""
        each_item(index_constant(self.count), lambda i: self._write_one([*place, i], i))

    def _write_one(self, where: Values, slot: ir.Value) -> None:
        results = list(self.tile.sorter.op.results)
        for number, buffer in enumerate(self.frame.output_buffers):
            source = results.index(self.frame.maker(number).operands[0])
            memref.store(memref.load(self.tile.slots[source], [slot]), buffer, where)
