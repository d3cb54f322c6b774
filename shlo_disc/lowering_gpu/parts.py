# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Items of work that several blocks have parts of: one facility for every kernel that is split over blocks.

A block leaves what it finds of its part in the kernel's scratch memory (`Frame.partials`) and takes a ticket of the
item, a number in the memory of the device. Whoever takes the last ticket finds all parts there, combines them in their
order and resets the number, so that the kernel can be launched again. Nobody waits for another block, and what is
computed does not depend on which block is the last (CUDA's sample `threadFenceReduction` is of this form).

Tickets belong to a kernel of a loaded program, and the launches of a device follow each other in its one stream, so no
two launches share them, nor what lies in the arena.

In memory: what a block stores comes before the fence of its first thread, which stores it itself or meets the others
at a barrier first; then this thread takes the ticket. If it is the last one, a fence, a barrier and the block's loads
follow. So each load of a part comes after all stores of it by the PTX memory model: fences and barriers are cumulative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from shlo_disc.lowering.element_types import element_of, from_memory, to_memory
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu.atomics import RELAXED
from shlo_disc.lowering_gpu.block_loops import Values, ceil_div, counted, when
from shlo_disc.lowering_gpu.grid import each_block, thread
from shlo_disc.lowering_gpu.kernel import GpuFrame, zeroed_array
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.shape_dialect.dialect.fusion import Sort, fusion_of
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref, scf
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.shape_dialect.symbolic.facts import Relation

ACQUIRE_RELEASE = 6
"""LLVM's number of the order of a fence that stores before it, and loads behind it, do not pass."""


@dataclass
class Parts:
    """The parts of each item of a kernel, `count` of them. A kernel that is never split has one part an item.

    item, part: those that the block works on, and `is_split` whether there are several; inside of `each`.
    """

    frame: GpuFrame
    count: Expr = field(init=False)
    item: ir.Value = field(init=False)
    part: ir.Value = field(init=False)
    tickets: Tickets = field(init=False)
    is_split: ir.Value | None = None

    def __post_init__(self) -> None:
        self.count = parts_of(self.frame)
        if self.may_be_split:
            self.tickets = Tickets.of(self.frame.function)

    @property
    def may_be_split(self) -> bool:
        """Tells whether items have several parts at some sizes."""
        return split_of(self.frame) is not None

    def number(self) -> ir.Value:
        """The number of parts of an item."""
        split = split_of(self.frame)
        return index_constant(1) if split is None else arith.maxui(self.frame.size_of(split), index_constant(1))

    def guard(self, length: Expr, least: int, items: Expr, blocks: int = GPU_POLICY.blocks) -> None:
        """Note the choice: items of `length` elements are split where there are few items, and each is long."""
        if self.may_be_split:
            conditions = (Relation.ge(length, 2 * least), Relation.le(items * 2, blocks))
            self.frame.guard("several blocks for each result", "one block for each result", *conditions)

    def each(self, items: ir.Value, body: Callable[[ir.Value], None]) -> None:
        """`body(item)` for all parts of items below `items`, one block a part at a time."""
        if not self.may_be_split:
            each_block(items, body)
            return
        count = self.number()

        def one(number: ir.Value) -> None:
            self._stand(number, count)
            body(self.item)

        each_block(arith.muli(items, count), one)

    def _stand(self, number: ir.Value, count: ir.Value) -> None:
        """Take up the item and the part that a number stands for."""
        self.item, self.part, self.is_split = item_and_part(number, count)

    def share(self, length: Expr, multiple: int = 1) -> tuple[ir.Value, ir.Value]:
        """The first of `length` elements that are in the block's part, and how many are. Parts begin at multiples."""
        whole = self.frame.size_of(length)
        if self.is_split is None:
            return index_constant(0), whole
        size = self.frame.size_of(ceildiv(ceildiv(length, self.count), multiple) * multiple)
        begin = arith.minui(arith.muli(self.part, size), whole)
        return begin, arith.minui(size, arith.subi(whole, begin))

    def of_all(
        self, own: Values, leave: Callable[[], None], gather: Callable[[], Values]
    ) -> tuple[Values, ir.Value | None]:
        """The values that all parts of the item make, and whether this block goes on with them; None where each does.

        leave: stores what the block has found, by `store`: in the first thread, or before a barrier. gather: gives what
        is stored there together, by `combined`. All threads of the block must get here.
        """
        if self.is_split is None:
            return own, None
        yes, truth = arith.constant(ir.IntegerType.get_signless(1), 1), ir.IntegerType.get_signless(1)
        choice = scf.IfOp(self.is_split, [truth, *(v.type for v in own)], has_else=True)
        with ir.InsertionPoint(choice.then_block):
            leave()
            is_last = self.is_last()
            found = scf.IfOp(is_last, [v.type for v in own], has_else=True)
            for block, values in ((found.then_block, gather), (found.else_block, lambda: own)):
                with ir.InsertionPoint(block):
                    scf.yield_(values())
            scf.yield_([is_last, *found.results])
        with ir.InsertionPoint(choice.else_block):
            scf.yield_([yes, *own])
        goes_on, *values = choice.results
        return values, goes_on

    def store(self, values: Sequence[ir.Value], at: Sequence[ir.Value], first: int = 0) -> None:
        """Leave values of this part at the index of a result, in the scratch memory from number `first` on."""
        for value, (buffer, partial) in zip(values, self._memory(first, len(values)), strict=True):
            memref.store(to_memory(value, element_of(partial.type)), buffer, [self.part, *at])

    def combined(
        self,
        start: Values,
        at: Sequence[ir.Value],
        combine: Callable[[Values, Values], Values],
        lane: ir.Value,
        lanes: int,
        is_there: ir.Value | None = None,
        first: int = 0,
        count: ir.Value | None = None,
    ) -> Values:
        """The parts at an index that are the lane's, each lane having as many neighbours, combined in their order; none
        where it is not there. count: so many of the first ones, else all."""
        count = self.number() if count is None else count
        if is_there is not None:
            count = arith.select(is_there, count, index_constant(0))
        each = ceil_div(count, index_constant(lanes))
        begin = arith.minui(arith.muli(lane, each), count)
        end = arith.minui(arith.addi(begin, each), count)

        def one(part: ir.Value, carried: Values) -> Values:
            return combine(carried, self.left(part, at, first, len(start)))

        return counted(begin, end, index_constant(1), start, one)

    def left(self, part: ir.Value, at: Sequence[ir.Value], first: int, count: int) -> Values:
        """The values of a part at the index of a result, so many from number `first` of the scratch memory on."""
        return [
            from_memory(memref.load(buffer, [part, *at]), element_of(partial.type))
            for buffer, partial in self._memory(first, count)
        ]

    def _memory(self, first: int, count: int) -> list[tuple[ir.Value, ir.Value]]:
        """Buffers, and what they hold."""
        end = first + count
        return list(zip(self.frame.partial_buffers[first:end], self.frame.partials[first:end], strict=True))

    def is_last(self) -> ir.Value:
        """Tells whether all other parts of the item have been left already: the same in all threads of the block."""
        return self.tickets.is_last(self.item, self.number(), self.frame.shared_memory(1, word_type()))


@dataclass(frozen=True)
class Tickets:
    """The numbers by which the blocks of an item count those that have left their parts."""

    numbers: ir.Value

    @staticmethod
    def of(function: gpu.GPUFuncOp) -> Tickets:
        """The tickets of a kernel."""
        function.attributes[RELAXED] = ir.UnitAttr.get()
        return Tickets(zeroed_array(function, "tickets", GPU_POLICY.blocks // 2, word_type()))

    def is_last(self, item: ir.Value, count: ir.Value, flag: ir.Value) -> ir.Value:
        """Tells whether all others of the `count` parts of an item have been left already: the same in all threads of
        the block. flag: a word of the block's memory."""
        zero = index_constant(0)

        def take() -> None:
            fence()
            one = arith.constant(word_type(), 1)
            taken = memref.AtomicRMWOp(arith.AtomicRMWKind.addi, one, self.numbers, [item]).result
            fence()
            behind = arith.addi(arith.index_castui(ir.IndexType.get(), taken), index_constant(1))
            is_last = arith.cmpi(arith.CmpIPredicate.eq, behind, count)
            when(is_last, lambda: self._reset(item))
            memref.store(arith.extui(word_type(), is_last), flag, [zero])

        when(arith.cmpi(arith.CmpIPredicate.eq, thread(), zero), take)
        gpu.barrier()
        return arith.cmpi(arith.CmpIPredicate.ne, memref.load(flag, [zero]), arith.constant(word_type(), 0))

    def _reset(self, item: ir.Value) -> None:
        memref.AtomicRMWOp(arith.AtomicRMWKind.assign, arith.constant(word_type(), 0), self.numbers, [item])


def item_and_part(number: ir.Value, count: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The item and the part that a number stands for, and whether there are several parts. Where items are split,
    numbers have no high word.

    The last is made of the part, too: LLVM would copy the loop over items for a condition from outside of it.
    """
    word, index = word_type(), ir.IndexType.get()
    low, of_each = arith.index_castui(word, number), arith.index_castui(word, count)
    high = arith.subi(number, arith.index_castui(index, low))
    item = arith.addi(high, arith.index_castui(index, arith.divui(low, of_each)))
    part = arith.index_castui(index, arith.remui(low, of_each))
    several = arith.ori(part, arith.subi(count, index_constant(1)))
    return item, part, arith.cmpi(arith.CmpIPredicate.ne, several, index_constant(0))


def word_type() -> ir.IntegerType:
    """The type of tickets."""
    return ir.IntegerType.get_signless(32)


def split_of(frame: GpuFrame) -> Expr | None:
    """Into how many parts each item of a kernel is cut, 0 where it is not; None if the kernel never has parts."""
    if frame.partials:
        return dims_of(frame.partials[0])[0]
    what = fusion_of(frame.fusion)
    return what.parts if isinstance(what, Sort) and what.parts.constant != 0 else None


def parts_of(frame: GpuFrame) -> Expr:
    """The parts of each item of a kernel."""
    split = split_of(frame)
    return Expr.const(1) if split is None else Expr.maximum(split, 1)


def fence() -> None:
    """Orders this thread's accesses, and those that it has seen, for all threads of the device."""
    order = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), ACQUIRE_RELEASE)
    attributes = {"ordering": order, "syncscope": ir.StringAttr.get("device")}
    ir.Operation.create("llvm.fence", attributes=attributes)
