# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Concatenations of many pieces for GPUs: each element of each piece by a thread, which writes it where it belongs.

Threads are numbered through all pieces, one piece after the other, so neighbours read neighbours. A thread finds its
piece by halving: of n pieces it compares with the beginnings of log2(n).
"""

from __future__ import annotations

from shlo_disc.lowering.elements import Elements, uniform
from shlo_disc.lowering.kernels import delinearize, op_cost
from shlo_disc.lowering.pieces import piece_starts
from shlo_disc.lowering.positions import Position
from shlo_disc.lowering_gpu.grid import THREADS, each_thread
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.shape_dialect.dialect.types import dims_of, product
from shlo_disc.shape_dialect.mlir import arith, ir, scf
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv


def build_concatenation(frame: GpuFrame) -> tuple[Expr, int]:
    """Emit the body; returns how many blocks have work, and the cost of what one does."""
    pieces, total = _Pieces(frame), product(dims_of(frame.outputs[0]))
    each_thread(frame.size_of(total), lambda linear: pieces.write(linear, 0, len(pieces.pieces)))
    cost = sum(op_cost(op) for op in frame.fusion.entry_block.operations) // len(pieces.pieces)
    return ceildiv(total, THREADS), max(1, cost) * THREADS


class _Pieces:
    """Those of one concatenation along `axis`.

    starts: where each begins on that axis. numbers: the number of its first thread.
    """

    def __init__(self, frame: GpuFrame):
        (self.output,) = frame.outputs
        op = frame.maker()
        self.frame = frame
        self.elements: Elements = frame.elements()
        self.pieces = list(op.operands)
        self.axis = ir.IntegerAttr(op.attributes["dimension"]).value
        dims = dims_of(self.output)
        around = frame.size_of(product((*dims[: self.axis], *dims[self.axis + 1 :])))
        self.starts = piece_starts(frame, self.pieces, self.axis)
        self.numbers = [arith.muli(start, around) for start in self.starts]

    def write(self, linear: ir.Value, begin: int, end: int) -> None:
        """The element of thread `linear`, which is in one of the pieces [begin, end).

        That is the last one that begins at or before it: pieces before that with the same beginning are empty.
        """
        if end - begin == 1:
            self._element(begin, arith.subi(linear, self.numbers[begin]))
            return
        middle = (begin + end) // 2
        is_before = arith.cmpi(arith.CmpIPredicate.ult, linear, self.numbers[middle])
        choice = scf.IfOp(is_before, [], has_else=True)
        for block, half in ((choice.then_block, (begin, middle)), (choice.else_block, (middle, end))):
            with ir.InsertionPoint(block), self.elements.scope():
                self.write(linear, *half)
                scf.yield_([])

    def _element(self, number: int, linear: ir.Value) -> None:
        """Element `linear` of a piece."""
        frame, elements, piece = self.frame, self.elements, self.pieces[number]
        with elements.scope():
            here = uniform(delinearize(linear, dims_of(piece), frame.size_of))
            value = elements.at(piece, here)
            moved = Position(arith.addi(here[self.axis].base, self.starts[number]))
            there = (*here[: self.axis], moved, *here[self.axis + 1 :])
            frame.store(frame.output_buffers[0], value, there, self.output, elements, False)
