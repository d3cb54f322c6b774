# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sort kernels for GPUs: a stable sort of each line with the op's own comparator.

A block sorts a line, or, where lines are long and few, a part of one. Blocks then merge runs of parts: in each round
(`part_rounds`) a block writes as many elements as a part has, from two runs of the round before (`merge_path`).

Tiles of a line are sorted in shared memory; passes over the line then merge pairs of runs from one buffer into the
other. The buffers are the results and a second set of outputs, which the memory plan holds for every sort. In a pass
each thread writes chunks of its own: where a chunk's elements come from in either run is found by bisection, from the
middle of the pair of runs down, so that neighbouring threads agree ("merge path", after Green, McColl and Bader, "GPU
merge path: a GPU merging algorithm"). Of parts, too, the last round ends in the results.

Whatever the comparator answers, every index stays inside the line, and chunks share no element: what is no strict weak
order gives some permutation.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.lowering.kernels import delinearize
from shlo_disc.lowering.line_sort import LineSort, Rows, ceil_log2, elements_from, row_of, sort_of
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering_gpu.block_loops import Values, ceil_div, counted, each_item, either, when
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.lowering_gpu.merge_path import BlockMerge, Halves, word_of
from shlo_disc.lowering_gpu.part_rounds import PartRounds
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.lowering_gpu.sort_tile import SortTile
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.mlir import arith, gpu, ir
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv

BLOCKS, FEW_OPERANDS = 3, 3
"""Blocks on a multiprocessor that a kernel leaves registers for, and the operands up to which these are enough; of more
operands there are two blocks."""


def build_sort(frame: GpuFrame) -> tuple[Expr, int]:
    """Emit the body; returns how many blocks have work, and the cost of a line."""
    op = sort_of(frame.fusion)
    *outer, length = dims_of(op.operands[0])
    elements = frame.elements()
    lines, most = product(outer), frame.facts.range(length)[1]
    kernel = SortKernel(frame, SortTile(frame, op, elements, most=most), tuple(outer), length)
    if kernel.tile.width:
        blocks = BLOCKS if len(op.operands) <= FEW_OPERANDS else 2
        word = ir.IntegerType.get_signless(32)
        frame.function.attributes["nvvm.minctasm"] = ir.IntegerAttr.get(word, blocks)
    kernel.rounds.guard(length, GPU_POLICY.part_columns, lines, GPU_POLICY.merging_blocks)

    def line(linear: ir.Value) -> None:
        with elements.scope():
            kernel.line(linear)

    kernel.rounds.each(frame.size_of(lines), line)
    estimate = max(2, frame.facts.estimate(length))
    return lines * kernel.rounds.count, 4 * len(op.results) * estimate * estimate.bit_length()


class SortKernel:
    """Lines of `length` elements, one after the other or in parts."""

    def __init__(self, frame: GpuFrame, tile: SortTile, outer: Dims, length: Expr):
        self.frame, self.tile, self.outer, self.length = frame, tile, outer, length
        self.rounds = PartRounds(frame)
        half = len(frame.output_buffers) // 2
        self.results, self.spare = frame.output_buffers[:half], frame.output_buffers[half:]
        if self.rounds.may_be_split:
            self.places = frame.shared_memory(GPU_POLICY.blocks.bit_length(), ir.IntegerType.get_signless(64))

    def line(self, linear: ir.Value) -> None:
        """One line, or the block's part of it in a round."""
        if self.rounds.may_be_split:
            self._round(linear)
            return
        n = self.frame.size_of(self.length)
        results, spare = ([row_of(buffer, linear, n) for buffer in of] for of in (self.results, self.spare))
        sorter = BlockSort(self.tile, self._place(linear), index_constant(0), n)
        if self.tile.width:
            sorter.run(results, spare, index_constant(0))
        else:
            sorter.sort_tiles(results)

    def _place(self, linear: ir.Value) -> list[Position]:
        return [Position(i) for i in delinearize(linear, self.outer, self.frame.size_of)]

    def _round(self, linear: ir.Value) -> None:
        """Sort the block's part, or merge it from two runs of parts."""
        rounds, zero = self.rounds, index_constant(0)
        begin, count = rounds.share(self.length)
        n, left = self.frame.size_of(self.length), arith.subi(rounds.last, rounds.round)
        start = arith.muli(linear, n)

        def rows(offset: ir.Value, length: ir.Value) -> tuple[Rows, Rows]:
            results, spare = (
                [elements_from(buffer, offset, length) for buffer in of] for of in (self.results, self.spare)
            )
            return results, spare

        def sort() -> None:
            sorter = BlockSort(self.tile, self._place(linear), begin, count)
            sorter.run(*rows(arith.addi(start, begin), count), left)

        def merge() -> None:
            self._merge(*rows_of_pass(left, *rows(start, n)))

        either(arith.cmpi(arith.CmpIPredicate.eq, rounds.round, zero), sort, merge)
        if rounds.is_split is not None:
            when(rounds.is_split, rounds.done)

    def _merge(self, target: Rows, source: Rows) -> None:
        """Merge the block's part of the two runs of its group."""
        rounds, one = self.rounds, index_constant(1)
        size, n = self.frame.size_of(ceildiv(self.length, rounds.count)), self.frame.size_of(self.length)
        of_group = arith.shli(one, rounds.round)
        piece = arith.remui(rounds.part, of_group)
        first = arith.subi(rounds.part, piece)
        parts = (first, arith.addi(first, arith.shrui(of_group, one)), arith.addi(first, of_group))
        rounds.wait()
        runs = [arith.minui(arith.muli(part, size), n) for part in parts]
        halves = Halves(word_of(piece), word_of(rounds.round))
        BlockMerge(self.tile, source, *runs).write_piece(target, self.places, halves, size)


@dataclass
class BlockSort:
    """Sorts `length` elements of a line, from `begin` on; `place` is where it lies on the other axes."""

    tile: SortTile
    place: list[Position]
    begin: ir.Value
    length: ir.Value

    @property
    def sorter(self) -> LineSort:
        """The comparator."""
        return self.tile.sorter

    def run(self, results: Rows, spare: Rows, left: ir.Value) -> None:
        """Sort, so that after `left` more passes all lies in `results`."""
        size, one = index_constant(self.tile.size), index_constant(1)
        passes = ceil_log2(ceil_div(self.length, size))
        behind = arith.addi(passes, left)
        target, _ = rows_of_pass(behind, results, spare)
        self.sort_tiles(target)

        def merging(number: ir.Value, _: Values) -> Values:
            target, source = rows_of_pass(arith.subi(behind, arith.addi(number, one)), results, spare)
            self.merge_all(source, target, arith.shli(size, number))
            return []

        gpu.barrier()
        counted(index_constant(0), passes, one, [], merging)

    def merge_all(self, source: Rows, target: Rows, width: ir.Value) -> None:
        """Merge the pairs of runs of `width` elements of `source`, one after the other."""
        pair = arith.addi(width, width)

        def one(begin: ir.Value, _: Values) -> Values:
            middle, end = (arith.minui(arith.addi(begin, size), self.length) for size in (width, pair))
            BlockMerge(self.tile, source, begin, middle, end).write(target)
            return []

        counted(index_constant(0), self.length, pair, [], one)

    def sort_tiles(self, rows: Rows) -> None:
        """Load the tiles one after the other, and write each sorted."""
        size = index_constant(self.tile.size)

        def one(begin: ir.Value, _: Values) -> Values:
            count = arith.minui(size, arith.subi(self.length, begin))
            each_item(count, lambda i: self._put(begin, i))
            self.tile.sort(count)
            each_item(count, lambda i: self.sorter.store(rows, arith.addi(begin, i), self.tile.at(i)))
            return []

        counted(index_constant(0), self.length, size, [], one)

    def _put(self, begin: ir.Value, slot: ir.Value) -> None:
        at = Position(arith.addi(arith.addi(self.begin, begin), slot))
        self.tile.put(slot, self.tile.element_at((*self.place, at)))


def rows_of_pass(left: ir.Value, results: Rows, spare: Rows) -> tuple[Rows, Rows]:
    """The rows that a pass writes and those it reads, if so many are left after it: the last one writes the results."""
    is_even = arith.cmpi(arith.CmpIPredicate.eq, arith.andi(left, index_constant(1)), index_constant(0))
    pairs = list(zip(results, spare, strict=True))
    return [arith.select(is_even, a, b) for a, b in pairs], [arith.select(is_even, b, a) for a, b in pairs]
