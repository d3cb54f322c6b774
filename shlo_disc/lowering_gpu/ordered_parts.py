# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of items of which each needs what all parts before it make together, as in a cumulative sum.

A block takes the number of a part by an atomic addition, so that the blocks of all parts before it are at work. It
leaves what its part makes, raises the part's flag, and waits for the flags of the parts before it. No block waits
before it has left its own, so none waits forever, however many are at work. It takes what has been left in one order
and never what another block has combined, so that results do not depend on which is first (decoupled look-back as of
Merrill and Garland, 2016, with aggregates alone). The block with the last ticket of an item lowers its flags, and the
one with the last number sets that back to 0, so that the kernel can be launched again.

In memory: the thread that stores a part fences before it raises the flag. A thread that has found a flag raised fences,
and a barrier follows before the block loads. So loads come after the stores, as in `parts`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu.block_loops import Values, as_long_as, counted, when
from shlo_disc.lowering_gpu.grid import THREADS, each_block, thread
from shlo_disc.lowering_gpu.kernel import zeroed_array
from shlo_disc.lowering_gpu.parts import Parts, fence
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref, scf


@dataclass
class OrderedParts(Parts):
    """The parts of each item of a kernel, in their order."""

    next: ir.Value = field(init=False)
    flags: ir.Value = field(init=False)
    taken: ir.Value = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.may_be_split:
            word = ir.IntegerType.get_signless(32)
            self.next = zeroed_array(self.frame.function, "next", 1, word)
            self.flags = zeroed_array(self.frame.function, "flags", GPU_POLICY.blocks, word)
            self.taken = self.frame.shared_memory(1, word)

    def each(self, items: ir.Value, body: Callable[[ir.Value], None]) -> None:
        """`body(item)` for all parts of items below `items`, in an order in which parts are begun one after another."""
        if not self.may_be_split:
            each_block(items, body)
            return
        count = self.number()
        total = self._total(items, count)

        def one(place: ir.Value) -> None:
            self._stand(self._number(place, count, total), count)
            body(self.item)

        each_block(total, one)

    def _total(self, items: ir.Value, count: ir.Value) -> ir.Value:
        """The count of numbers that are taken in a launch, where items have so many parts each."""
        return arith.muli(items, count)

    def _number(self, place: ir.Value, count: ir.Value, total: ir.Value) -> ir.Value:
        """The number that a block works on: one that it takes where items are split, else its place in the grid."""
        several = arith.cmpi(arith.CmpIPredicate.ne, count, index_constant(1))
        choice = scf.IfOp(several, [place.type], has_else=True)
        with ir.InsertionPoint(choice.then_block):
            scf.yield_([self._taken(total)])
        with ir.InsertionPoint(choice.else_block):
            scf.yield_([place])
        return choice.results[0]

    def _taken(self, total: ir.Value) -> ir.Value:
        """The next number of `total`, the same in all threads of the block. As many are taken in a launch."""
        word, zero = ir.IntegerType.get_signless(32), index_constant(0)

        def take() -> None:
            taken = memref.AtomicRMWOp(arith.AtomicRMWKind.addi, arith.constant(word, 1), self.next, [zero]).result
            behind = arith.addi(arith.index_castui(ir.IndexType.get(), taken), index_constant(1))
            when(arith.cmpi(arith.CmpIPredicate.eq, behind, total), lambda: self._set(self.next, zero, 0))
            memref.store(taken, self.taken, [zero])

        when(arith.cmpi(arith.CmpIPredicate.eq, thread(), zero), take)
        gpu.barrier()
        return arith.index_castui(ir.IndexType.get(), memref.load(self.taken, [zero]))

    def before(
        self, own: Values, start: Values, at: Sequence[ir.Value], combine: Callable[[Values, Values], Values]
    ) -> Values:
        """This thread's share of what parts before the block's make at an index, where its own part makes `own`.

        Threads have neighbouring parts, combined in their order behind `start`. For split items, in all threads.
        """

        def leave() -> None:
            self.store(own, at)
            fence()
            self._set(self.flags, self._flag(self.part), 1)

        when(arith.cmpi(arith.CmpIPredicate.eq, thread(), index_constant(0)), leave)
        counted(thread(), self.part, index_constant(THREADS), [], self._wait)
        fence()
        gpu.barrier()
        return self.combined(start, at, combine, thread(), THREADS, count=self.part)

    def _wait(self, part: ir.Value, _: Values) -> Values:
        """Until a part has been left."""
        word = ir.IntegerType.get_signless(32)
        none, place = arith.constant(word, 0), self._flag(part)
        as_long_as(
            [none],
            lambda found: arith.cmpi(arith.CmpIPredicate.eq, found[0], none),
            lambda _: [memref.AtomicRMWOp(arith.AtomicRMWKind.ori, none, self.flags, [place]).result],
        )
        return []

    def finish(self) -> None:
        """To be called where a split item's part is done, behind a barrier. The last block lowers the flags."""

        def lower(part: ir.Value, _: Values) -> Values:
            self._set(self.flags, self._flag(part), 0)
            return []

        def lower_all() -> None:
            counted(thread(), self.number(), index_constant(THREADS), [], lower)

        when(self.is_last(), lower_all)

    def _flag(self, part: ir.Value) -> ir.Value:
        return arith.addi(arith.muli(self.item, self.number()), part)

    @staticmethod
    def _set(words: ir.Value, place: ir.Value, number: int) -> None:
        value = arith.constant(ir.IntegerType.get_signless(32), number)
        memref.AtomicRMWOp(arith.AtomicRMWKind.assign, value, words, [place])
