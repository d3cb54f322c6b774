# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compaction kernels for GPUs: the positions of the true elements of a mask, in order.

One block goes through the mask. In every step each thread counts the true ones of a run of neighbouring elements, and
writes their positions behind those of all threads before it. How many there are was counted before, so that the result
has its true size; nothing is stored behind it in any case.
"""

from __future__ import annotations

from shlo_disc.lowering.element_types import element_of, to_memory
from shlo_disc.lowering.elements import Elements
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering_gpu.block_loops import Values, below, counted, when
from shlo_disc.lowering_gpu.block_scan import prefix_of_block
from shlo_disc.lowering_gpu.grid import THREADS, each_block, thread
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref
from shlo_disc.shape_dialect.symbolic.expr import Expr

RUN = 4
"""Neighbouring elements that a thread counts by itself."""


def build_nonzero(frame: GpuFrame) -> tuple[Expr, int]:
    """Emit the body; returns one block and its cost."""
    op = next(o for o in frame.fusion.entry_block.operations if o.operation.name == "disc.nonzero")
    (length,) = dims_of(op.operands[0])
    kernel = Nonzero(frame, op, frame.size_of(length))
    each_block(index_constant(1), lambda _: kernel.run())
    return Expr.const(1), max(1, frame.facts.estimate(length))


class Nonzero:
    """The positions of the true ones of `length` elements."""

    def __init__(self, frame: GpuFrame, op: ir.OpView, length: ir.Value):
        self.frame, self.mask, self.length = frame, op.operands[0], length
        self.element = element_of(op.results[0].type)
        self.count = frame.size_of(dims_of(op.results[0])[0])
        self.elements: Elements = frame.elements()

    def run(self) -> None:
        """All of it."""
        zero, step = index_constant(0), index_constant(RUN * THREADS)
        counted(zero, self.length, step, [zero], self._step)

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
        is_inside = below(place, self.length)
        with self.elements.scope(), self.elements.only_where(is_inside):
            return arith.andi(is_inside, self.elements.at(self.mask, (Position(place),)))

    def _write(self, is_true: ir.Value, slot: ir.Value, place: ir.Value) -> None:
        def store() -> None:
            value = self.elements.position_value(Position(place), self.element)
            memref.store(to_memory(value, self.element), self.frame.output_buffers[0], [slot])

        when(is_true, store)
