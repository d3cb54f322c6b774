# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of items that blocks work on in rounds, as in a merge sort: in each round but the first, a part needs what the
parts of its group have left in the round before. Groups are 2, 4, 8 ... neighbouring parts, in the last round all.

Blocks take numbers in their order, those of a round behind those of the one before. So the parts that a block waits for
have been begun by blocks that run, and the one with the least number waits for none: each wait ends, however many
blocks are at work. A flag of each part holds the number of rounds that it has behind it. After the last round, the
block with the last ticket of an item lowers its flags, so that the kernel can be launched again.

In memory: all stores of a round come before a barrier, the fence of the block's first thread, and its raise of the
flag. Threads that have found flags raised fence, and a barrier follows before the block loads. What is read in a round
may be overwritten in the next one, as those who read it have raised their flags behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from shlo_disc.lowering.line_sort import ceil_log2
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu.block_loops import Values, as_long_as, counted, either, when
from shlo_disc.lowering_gpu.grid import THREADS, thread
from shlo_disc.lowering_gpu.ordered_parts import OrderedParts
from shlo_disc.lowering_gpu.parts import fence, word_type
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref


@dataclass
class PartRounds(OrderedParts):
    """The parts of each item of a kernel, round after round.

    round: the one that the block is at, and `last` the last one, 0 where items have one part; inside of `each`.
    """

    round: ir.Value = field(init=False)
    last: ir.Value = field(init=False)
    items: ir.Value = field(init=False)

    def each(self, items: ir.Value, body: Callable[[ir.Value], None]) -> None:
        """`body(item)` for all rounds of all parts of items below `items`, one block a part at a time."""
        self.items = items
        super().each(items, body)

    def _total(self, items: ir.Value, count: ir.Value) -> ir.Value:
        self.last = ceil_log2(count)
        return arith.muli(super()._total(items, count), arith.addi(self.last, index_constant(1)))

    def _stand(self, number: ir.Value, count: ir.Value) -> None:
        """Take up the round, too. Where there are several parts, numbers have no high word; else it is 0."""
        super()._stand(number, count)
        one = arith.constant(word_type(), 1)
        low, items = (arith.index_cast(word_type(), v) for v in (self.item, self.items))
        round_ = arith.index_castui(ir.IndexType.get(), arith.divui(low, arith.maxui(items, one)))
        is_one = arith.cmpi(arith.CmpIPredicate.eq, count, index_constant(1))
        self.round = arith.select(is_one, index_constant(0), round_)
        self.item = arith.subi(self.item, arith.muli(self.round, self.items))

    def wait(self) -> None:
        """Until the parts of the block's group have been left in the round before. All threads must get here."""
        size = arith.shli(index_constant(1), self.round)
        first = arith.subi(self.part, arith.remui(self.part, size))
        end = arith.minui(arith.addi(first, size), self.number())
        counted(arith.addi(first, thread()), end, index_constant(THREADS), [], self._wait_for_round)
        fence()
        gpu.barrier()

    def _wait_for_round(self, part: ir.Value, _: Values) -> Values:
        none, wanted = arith.constant(word_type(), 0), arith.index_cast(word_type(), self.round)
        as_long_as(
            [none],
            lambda found: arith.cmpi(arith.CmpIPredicate.ult, found[0], wanted),
            lambda _: [memref.AtomicRMWOp(arith.AtomicRMWKind.ori, none, self.flags, [self._flag(part)]).result],
        )
        return []

    def done(self) -> None:
        """To be called where a split item's part has been stored in a round, by all threads.

        The number is read again, so that no thread keeps what follows from it meanwhile.
        """
        number = memref.load(self.taken, [index_constant(0)])
        gpu.barrier()
        self._stand(arith.index_castui(ir.IndexType.get(), number), self.number())
        is_last = arith.cmpi(arith.CmpIPredicate.eq, self.round, self.last)
        either(is_last, self.finish, lambda: when(self._is_first_thread(), self._leave))

    def _leave(self) -> None:
        fence()
        behind = arith.index_cast(word_type(), arith.addi(self.round, index_constant(1)))
        memref.AtomicRMWOp(arith.AtomicRMWKind.assign, behind, self.flags, [self._flag(self.part)])

    @staticmethod
    def _is_first_thread() -> ir.Value:
        return arith.cmpi(arith.CmpIPredicate.eq, thread(), index_constant(0))
