# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Top-k kernels for GPUs: the first k elements of each sorted line without sorting it, one block a line.

The best k so far are the first slots of a tile. The others are filled with the next elements of the line, and only
where one of those belongs before the last of the best is the tile sorted: on most data, that is seldom.
"""

from __future__ import annotations

from shlo_disc.lowering.kernels import delinearize
from shlo_disc.lowering.line_sort import sort_of
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering_gpu.block_loops import Values, counted, each_item, when
from shlo_disc.lowering_gpu.block_scan import any_of_block
from shlo_disc.lowering_gpu.grid import THREADS, each_block, thread
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.lowering_gpu.sort_tile import SortTile
from shlo_disc.shape_dialect.dialect.types import dims_of, product
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref
from shlo_disc.shape_dialect.symbolic.expr import Expr


def build_top_k(frame: GpuFrame) -> tuple[Expr, int]:
    """Emit the body; returns the number of lines and the cost of one."""
    op = sort_of(frame.fusion)
    *outer, length = dims_of(op.operands[0])
    elements = frame.elements()
    count = dims_of(frame.outputs[0])[-1].constant or 0
    kernel = TopK(frame, SortTile(frame, op, elements, 2 * count), count)

    def line(linear: ir.Value) -> None:
        with elements.scope():
            kernel.line(delinearize(linear, tuple(outer), frame.size_of), frame.size_of(length))

    each_block(frame.size_of(product(outer)), line)
    return product(outer), len(op.results) * max(1, frame.facts.estimate(length))


class TopK:
    """The first `count` elements of lines that have no fewer. A tile has more slots than that."""

    def __init__(self, frame: GpuFrame, tile: SortTile, count: int):
        self.frame, self.tile, self.count = frame, tile, count

    def line(self, place: list[ir.Value], length: ir.Value) -> None:
        """One line."""
        size, best = index_constant(self.tile.size), index_constant(self.count)
        first = arith.minui(size, length)
        uniform = [Position(i) for i in place]
        each_item(first, lambda i: self._put(i, [*uniform, Position(i)]))
        self.tile.sort(first)
        step = index_constant(self.tile.size - self.count)

        def more(begin: ir.Value, _: Values) -> Values:
            count = arith.minui(step, arith.subi(length, begin))
            is_better = self._load(uniform, begin, count)

            def sort() -> None:
                each_item(best, self.tile.number)
                self.tile.sort(arith.addi(best, count))

            when(any_of_block(self.frame, is_better), sort)
            gpu.barrier()
            return []

        counted(size, length, step, [], more)
        each_item(best, lambda i: self._write([*place, i], i))

    def _load(self, place: list[Position], begin: ir.Value, count: ir.Value) -> ir.Value:
        """Fill the slots behind the best; whether one that this thread has loaded belongs before the last of those."""
        bound = self.tile.at(index_constant(self.count - 1))
        no = arith.constant(ir.IntegerType.get_signless(1), 0)

        def load(i: ir.Value, found: Values) -> Values:
            slot = arith.addi(i, index_constant(self.count))
            new = self._put(slot, [*place, Position(arith.addi(begin, i))])
            return [arith.ori(found[0], self.tile.sorter.is_before(new, bound))]

        return counted(thread(), count, index_constant(THREADS), [no], load)[0]

    def _put(self, slot: ir.Value, where: list[Position]) -> Values:
        return self.tile.put(slot, tuple(where))

    def _write(self, where: list[ir.Value], slot: ir.Value) -> None:
        results = list(self.tile.sorter.op.results)
        for number, buffer in enumerate(self.frame.output_buffers):
            source = results.index(self.frame.maker(number).operands[0])
            memref.store(memref.load(self.tile.slots[source], [slot]), buffer, where)
