# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Some elements of a line in shared memory, which the threads of a block sort together.

They go through a network: Batcher's bitonic sort, in the form in which the first step of each level compares with the
mirror image, so that all pairs are put the same way round and a network for more elements than there are is right
(K. E. Batcher, "Sorting networks and their applications"). Pairs are exchanged or not, so that what is no order, too,
gives a permutation. Equal elements are told apart by the slots where they were put: the sort is stable.
"""

from __future__ import annotations

from shlo_disc.errors import Unsupported, UnsupportedError
from shlo_disc.lowering.elements import Elements, Positions
from shlo_disc.lowering.line_sort import LineSort, ceil_log2
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu.block_loops import Values, counted, when
from shlo_disc.lowering_gpu.grid import THREADS, thread
from shlo_disc.lowering_gpu.index_math import below
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref
from shlo_disc.shape_dialect.utils.locations import source_line

SHARED_BYTES = 32 << 10
"""Shared memory of a tile, if fewer slots are enough: of the 48 KiB of a block, so that others fit beside it."""

MOST_BYTES = 47 << 10
"""Shared memory of a tile, at most."""

MOST_WIDTH = 8 * THREADS
"""Elements that are merged at once, at most: a few of each thread."""

_ORDER_BYTES = 4


class SortTile:
    """Slots for the elements of every operand of a sort: `size`, a power of two, of which each thread compares two.

    There are at least `least`. Where more than those are sorted, up to `most`, there are slots for `width` elements of
    either of two runs that are merged, else `width` is 0. cuts: a word for each thread that merges.

    Raises UnsupportedError where so many do not fit into the memory of a block.
    """

    def __init__(self, frame: GpuFrame, op: ir.OpView, elements: Elements, least: int = 2, most: int | None = 0):
        self.sorter = LineSort(op, elements)
        bytes_of_element = sum(max(8, kind.bits) // 8 for kind in self.sorter.kinds)
        bytes_of_slot = _ORDER_BYTES + bytes_of_element
        self.size = 2 * THREADS
        while self.size // 2 >= least and self.size * bytes_of_slot > SHARED_BYTES:
            self.size //= 2
        if self.size * bytes_of_slot > MOST_BYTES:
            reason = f"{len(self.sorter.kinds)} operands do not fit into the shared memory of a GPU's block"
            advice = "sort the indices, and take the operands at those"
            raise UnsupportedError([Unsupported(op.operation.name, "", source_line(op.location), reason, advice)])
        self.width = 0 if most is not None and most <= self.size else _width(self.size // 2, bytes_of_element)
        slots, word = max(self.size, 2 * self.width), ir.IntegerType.get_signless(8 * _ORDER_BYTES)
        self.slots = [frame.shared_memory(slots, kind.memory()) for kind in self.sorter.kinds]
        self.order = frame.shared_memory(max(self.size, self.width), word)
        self.cuts = frame.shared_memory(min(THREADS, self.width), word) if self.width else self.order

    def element_at(self, where: Positions) -> Values:
        """The elements at some positions of the operands."""
        with self.sorter.elements.scope():
            return self.sorter.element_at(where)

    def put(self, slot: ir.Value, elements: Values) -> None:
        """Put elements of the operands into a slot, behind their equals in the slots before."""
        self.sorter.store(self.slots, slot, elements)
        self.number(slot)

    def number(self, slot: ir.Value) -> None:
        """Number a slot, so that its element is behind its equals in the slots before."""
        word = ir.IntegerType.get_signless(8 * _ORDER_BYTES)
        memref.store(arith.index_cast(word, slot), self.order, [slot])

    def at(self, slot: ir.Value) -> Values:
        """The elements in a slot."""
        return self.sorter.load(self.slots, slot)

    def sort(self, count: ir.Value) -> None:
        """Sort the first slots, `count` of them. All threads of the block must get here."""
        gpu.barrier()
        one, levels = index_constant(1), ceil_log2(count)

        def level(number: ir.Value, _: Values) -> Values:
            """Runs of 2**number slots, whose halves are sorted, become sorted."""

            def step(part: ir.Value, _: Values) -> Values:
                is_first = arith.cmpi(arith.CmpIPredicate.eq, part, index_constant(0))
                self._compare(arith.subi(arith.subi(number, part), one), is_first, count)
                gpu.barrier()
                return []

            return counted(index_constant(0), number, one, [], step)

        counted(one, arith.addi(levels, one), one, [], level)

    def _compare(self, shift: ir.Value, mirrored: ir.Value, count: ir.Value) -> None:
        """This thread's pair: of two neighbouring runs of 2**shift slots, the ones as far from their starts.

        The second is counted from the end where the second run is mirrored. Behind the last slot nothing comes before.
        """
        one, run = index_constant(1), arith.shrui(thread(), shift)
        distance = arith.shli(one, shift)
        inside = arith.subi(thread(), arith.shli(run, shift))
        start = arith.shli(run, arith.addi(shift, one))
        first, middle = arith.addi(start, inside), arith.addi(start, distance)
        from_end = arith.subi(arith.subi(distance, one), inside)
        second = arith.addi(middle, arith.select(mirrored, from_end, inside))
        when(below(second, count), lambda: self._exchange(first, second))

    def _exchange(self, first: ir.Value, second: ir.Value) -> None:
        """Put two slots in order."""
        left, right = self.at(first), self.at(second)
        numbers = [memref.load(self.order, [slot]) for slot in (first, second)]
        is_wrong, is_right = self.sorter.is_before(right, left), self.sorter.is_before(left, right)
        is_tie = arith.cmpi(arith.CmpIPredicate.eq, is_wrong, is_right)
        is_older = arith.cmpi(arith.CmpIPredicate.ult, numbers[1], numbers[0])

        def swap() -> None:
            for slot, values, number in ((first, right, numbers[1]), (second, left, numbers[0])):
                self.sorter.store(self.slots, slot, values)
                memref.store(number, self.order, [slot])

        when(arith.select(is_tie, is_older, is_wrong), swap)


def _width(least: int, bytes_of_element: int) -> int:
    """The elements of either of two runs that slots of an element and words for half of them have room for."""
    width = least
    while width < MOST_WIDTH and 2 * width * (2 * bytes_of_element + _ORDER_BYTES) <= SHARED_BYTES:
        width *= 2
    return width
