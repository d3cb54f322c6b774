# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sort kernels for GPUs: a stable sort of each line with the op's own comparator, one block a line.

Tiles of a line are sorted in shared memory; passes over the line then merge pairs of runs from one buffer into the
other. The buffers are the results and a second set of outputs, which the memory plan holds for every sort. In a pass
each thread writes chunks of its own: where a chunk's elements come from in either run is found by bisection, from the
middle of the pair of runs down, so that neighbouring threads agree ("merge path", after Green, McColl and Bader, "GPU
merge path: a GPU merging algorithm").

Whatever the comparator answers, every index stays inside the line, and chunks share no element: what is no strict weak
order gives some permutation.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.lowering.kernels import delinearize
from shlo_disc.lowering.line_sort import LineSort, Rows, ceil_log2, row_of, sort_of
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering_gpu.block_loops import Values, as_long_as, ceil_div, counted, each_item
from shlo_disc.lowering_gpu.grid import THREADS, each_block
from shlo_disc.lowering_gpu.index_math import below
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.lowering_gpu.sort_tile import SortTile
from shlo_disc.shape_dialect.dialect.types import dims_of, product
from shlo_disc.shape_dialect.mlir import arith, gpu, ir
from shlo_disc.shape_dialect.symbolic.expr import Expr


def build_sort(frame: GpuFrame) -> tuple[Expr, int]:
    """Emit the body; returns the number of lines and the cost of one."""
    op = sort_of(frame.fusion)
    *outer, length = dims_of(op.operands[0])
    elements = frame.elements()
    tile = SortTile(frame, op, elements)
    most = frame.facts.range(length)[1]

    def line(linear: ir.Value) -> None:
        with elements.scope():
            n = frame.size_of(length)
            place = [Position(i) for i in delinearize(linear, tuple(outer), frame.size_of)]
            rows = [row_of(buffer, linear, n) for buffer in frame.output_buffers]
            count = len(op.results)
            sorter = BlockSort(tile, place, n)
            if most is not None and most <= tile.size:
                sorter.sort_tiles(rows[:count])
            else:
                sorter.run(rows[:count], rows[count:])

    each_block(frame.size_of(product(outer)), line)
    estimate = max(2, frame.facts.estimate(length))
    return product(outer), 4 * len(op.results) * estimate * estimate.bit_length()


@dataclass
class BlockSort:
    """Sorts one line of `length` elements; `place` is where it lies on the other axes."""

    tile: SortTile
    place: list[Position]
    length: ir.Value

    @property
    def sorter(self) -> LineSort:
        """The comparator."""
        return self.tile.sorter

    def run(self, results: Rows, spare: Rows) -> None:
        """Sort into `results`; the sorted tiles lie where an even number of passes ends there."""
        size, one = index_constant(self.tile.size), index_constant(1)
        passes = ceil_log2(ceil_div(self.length, size))
        is_even = arith.cmpi(arith.CmpIPredicate.eq, arith.andi(passes, one), index_constant(0))
        source = [arith.select(is_even, a, b) for a, b in zip(results, spare, strict=True)]
        target = [arith.select(is_even, b, a) for a, b in zip(results, spare, strict=True)]
        self.sort_tiles(source)

        def merging(_: ir.Value, carried: Values) -> Values:
            width, *buffers = carried
            source, target = buffers[: len(results)], buffers[len(results) :]
            gpu.barrier()
            self.merge_all(source, target, width)
            return [arith.addi(width, width), *target, *source]

        counted(index_constant(0), passes, one, [size, *source, *target], merging)

    # ---- tiles ------------------------------------------------------------------------------------------------------

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
        self.tile.put(slot, self.tile.element_at((*self.place, Position(arith.addi(begin, slot)))))

    # ---- merging ----------------------------------------------------------------------------------------------------

    def merge_all(self, source: Rows, target: Rows, width: ir.Value) -> None:
        """Merge the pairs of runs of `width` elements of `source`, in chunks whose sizes are powers of two."""
        one, pair = index_constant(1), arith.addi(width, width)
        share = ceil_div(self.length, index_constant(THREADS))
        chunk = arith.minui(pair, arith.shli(one, ceil_log2(share)))
        levels = ceil_log2(arith.divui(pair, chunk))

        def one_chunk(number: ir.Value) -> None:
            first = arith.muli(number, chunk)
            inside = arith.remui(first, pair)
            merge = PairMerge(self, source, arith.subi(first, inside), width)
            merge.write(target, *merge.share_of(inside, levels))

        each_item(ceil_div(self.length, chunk), one_chunk)


class PairMerge:
    """Two neighbouring runs of `width` elements, the first from `begin` on. Either may be cut by the end of the line.

    A cut (d, i) is where the first d elements of the merged run come from: i of the first run, d - i of the second.
    """

    def __init__(self, sort: BlockSort, source: Rows, begin: ir.Value, width: ir.Value):
        self.sorter, self.source, self.begin, self.width = sort.sorter, source, begin, width
        self.middle = arith.minui(arith.addi(begin, width), sort.length)
        self.end = arith.minui(arith.addi(self.middle, width), sort.length)
        self.last = arith.subi(sort.length, index_constant(1))

    def share_of(self, first: ir.Value, levels: ir.Value) -> tuple[Values, Values]:
        """The cuts around the chunk from `first` on, after halving the merged run `levels` times."""
        zero = index_constant(0)

        def halve(level: ir.Value, carried: Values) -> Values:
            low, high = carried[:2], carried[2:]
            bound = arith.addi(low[0], arith.shrui(self.width, level))
            middle = self._cut(arith.minui(bound, high[0]), low, high)
            is_left = below(first, bound)
            chosen = zip([*low, *middle], [*middle, *high], strict=True)
            return [arith.select(is_left, a, b) for a, b in chosen]

        whole = [arith.subi(end, self.begin) for end in (self.end, self.middle)]
        found = counted(zero, levels, index_constant(1), [zero, zero, *whole], halve)
        return found[:2], found[2:]

    def _cut(self, d: ir.Value, low: Values, high: Values) -> Values:
        """The cut at `d`, between two others: of equal elements those of the first run come first."""
        one = index_constant(1)
        least = arith.maxsi(low[1], arith.subi(d, arith.subi(high[0], high[1])))
        most = arith.minsi(high[1], arith.subi(d, arith.subi(low[0], low[1])))

        def bisect(bounds: Values) -> Values:
            least, most = bounds
            i = arith.divui(arith.addi(least, most), index_constant(2))
            j = arith.subi(arith.subi(d, i), one)
            left = self.sorter.load(self.source, arith.addi(self.begin, i))
            right = self.sorter.load(self.source, arith.addi(self.middle, j))
            right_is_first = self.sorter.is_before(right, left)
            return [
                arith.select(right_is_first, least, arith.addi(i, one)),
                arith.select(right_is_first, i, most),
            ]

        return [d, as_long_as([least, most], lambda bounds: below(*bounds), bisect)[0]]

    def write(self, target: Rows, low: Values, high: Values) -> None:
        """Merge what is between two cuts, without branches on the elements.

        Both heads are loaded at every step; that of a finished part is some element of the line, and not taken.
        """
        one = index_constant(1)
        left_end = arith.addi(self.begin, high[1])
        right_end = arith.addi(self.middle, arith.subi(high[0], high[1]))

        def step(d: ir.Value, heads: Values) -> Values:
            i, j = heads
            left = self.sorter.load(self.source, arith.minui(i, self.last))
            right = self.sorter.load(self.source, arith.minui(j, self.last))
            right_is_first = self.sorter.is_before(right, left)
            is_right = arith.ori(
                arith.cmpi(arith.CmpIPredicate.uge, i, left_end), arith.andi(below(j, right_end), right_is_first)
            )
            taken = [arith.select(is_right, b, a) for a, b in zip(left, right, strict=True)]
            self.sorter.store(target, arith.addi(self.begin, d), taken)
            moved = arith.index_castui(ir.IndexType.get(), is_right)
            return [arith.addi(i, arith.subi(one, moved)), arith.addi(j, moved)]

        heads = [arith.addi(self.begin, low[1]), arith.addi(self.middle, arith.subi(low[0], low[1]))]
        counted(low[0], high[0], one, heads, step)
