# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compaction kernels for GPUs: the positions of the true elements of a mask, in order.

A block goes through the mask, or, where it is long, through a part of it, whose true elements it has counted once
before, so that it finds how many there are before its part (`ordered_parts`). In every step each thread counts the true
ones of a run of neighbouring elements, and writes their positions behind those of all threads before it. How many there
are was counted before, so that the result has its true size; nothing is stored behind it in any case.
"""

from __future__ import annotations

from shlo_disc.lowering.element_types import element_of, to_memory
from shlo_disc.lowering.elements import Elements
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering_gpu.block_loops import Values, counted, when
from shlo_disc.lowering_gpu.block_scan import prefix_of_block
from shlo_disc.lowering_gpu.grid import THREADS, thread
from shlo_disc.lowering_gpu.index_math import below
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.lowering_gpu.ordered_parts import OrderedParts
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref, scf
from shlo_disc.shape_dialect.symbolic.expr import Expr

RUN = 4
"""Neighbouring elements that a thread counts by itself."""


def build_nonzero(frame: GpuFrame) -> tuple[Expr, int]:
    """Emit the body; returns how many blocks have work, and the cost of what one does."""
    op = next(o for o in frame.fusion.entry_block.operations if o.operation.name == "disc.nonzero")
    (length,) = dims_of(op.operands[0])
    kernel = Nonzero(frame, op)
    kernel.parts.guard(length, GPU_POLICY.part_columns, Expr.const(1))
    kernel.parts.each(index_constant(1), lambda _: kernel.run())
    return kernel.parts.count, max(1, frame.facts.estimate(length))


class Nonzero:
    """The positions of the true elements of a mask."""

    def __init__(self, frame: GpuFrame, op: ir.OpView):
        self.frame, self.mask, self.parts = frame, op.operands[0], OrderedParts(frame)
        self.element = element_of(op.results[0].type)
        self.count = frame.size_of(dims_of(op.results[0])[0])
        self.elements: Elements = frame.elements()

    def run(self) -> None:
        """The block's part of it."""
        (length,) = dims_of(self.mask)
        begin, count = self.parts.share(length)
        self.end, is_split, start = arith.addi(begin, count), self.parts.is_split, index_constant(0)
        if is_split is not None:
            choice = scf.IfOp(is_split, [start.type], has_else=True)
            with ir.InsertionPoint(choice.then_block):
                scf.yield_([self._before(begin)])
            with ir.InsertionPoint(choice.else_block):
                scf.yield_([start])
            start = choice.results[0]
        counted(begin, self.end, index_constant(RUN * THREADS), [start], self._step)
        if is_split is not None:
            when(is_split, self.parts.finish)

    def _before(self, begin: ir.Value) -> ir.Value:
        """The number of true elements before the part that begins there."""
        long = ir.IntegerType.get_signless(64)
        none = arith.constant(long, 0)

        def add(a: Values, b: Values) -> Values:
            return [arith.addi(a[0], b[0])]

        def one(place: ir.Value, carried: Values) -> Values:
            return add(carried, [arith.extui(long, self._flag(place))])

        own = counted(arith.addi(begin, thread()), self.end, index_constant(THREADS), [none], one)
        found = self.parts.before(prefix_of_block(self.frame, add, own).total, [none], [], add)
        return arith.index_cast(ir.IndexType.get(), prefix_of_block(self.frame, add, found).total[0])

    def _step(self, begin: ir.Value, carried: Values) -> Values:
        """The elements from `begin` on, of which those before have so many true ones; gives how many there are then."""
        index, word = ir.IndexType.get(), ir.IntegerType.get_signless(32)
        first = arith.addi(begin, arith.muli(thread(), index_constant(RUN)))
        places = [arith.addi(first, index_constant(number)) for number in range(RUN)]
        flags = [self._flag(place) for place in places]
        own = arith.constant(word, 0)
        for flag in flags:
            own = arith.addi(own, arith.extui(word, flag))
        prefix = prefix_of_block(self.frame, lambda a, b: [arith.addi(a[0], b[0])], [own])
        through = prefix.then(lambda a, b: [arith.addi(a[0], b[0])], [own])[0]
        slot = arith.addi(carried[0], arith.index_castui(index, arith.subi(through, own)))
        for place, flag in zip(places, flags, strict=True):
            self._write(arith.andi(flag, below(slot, self.count)), slot, place)
            slot = arith.addi(slot, arith.index_castui(index, flag))
        gpu.barrier()
        return [arith.addi(carried[0], arith.index_castui(index, prefix.total[0]))]

    def _flag(self, place: ir.Value) -> ir.Value:
        """Tells whether an element is there, and true."""
        is_inside = below(place, self.end)
        with self.elements.scope(), self.elements.only_where(is_inside):
            return arith.andi(is_inside, self.elements.at(self.mask, (Position(place),)))

    def _write(self, is_true: ir.Value, slot: ir.Value, place: ir.Value) -> None:
        def store() -> None:
            value = self.elements.position_value(Position(place), self.element)
            memref.store(to_memory(value, self.element), self.frame.output_buffers[0], [slot])

        when(is_true, store)
