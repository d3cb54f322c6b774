# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of pieces that are whole buffers, so that one loop copies them: code for each piece takes time to compile."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_cpu.emitters.loops import for_range
from shlo_disc.shape_dialect.mlir import arith, ir, memref


class PieceTable:
    """The addresses of pieces that follow each other, and where they begin on the axis.

    addresses: one for each piece, in bytes. starts: those of the pieces, and where the last one ends.
    """

    def __init__(self, addresses: Sequence[ir.Value], starts: Sequence[ir.Value]):
        self.count = len(addresses)
        self.addresses = _stored(addresses)
        self.starts = _stored(starts)

    def for_each(self, body: Callable[[ir.Value, ir.Value, ir.Value], None]) -> None:
        """A loop over the pieces: `body(address, start, size)`."""

        def piece(number: ir.Value) -> None:
            start = memref.load(self.starts, [number])
            past = memref.load(self.starts, [arith.addi(number, index_constant(1))])
            body(memref.load(self.addresses, [number]), start, arith.subi(past, start))

        for_range(index_constant(0), index_constant(self.count), piece)


def _stored(values: Sequence[ir.Value]) -> ir.Value:
    """Values in memory on the stack."""
    memory = memref.alloca(ir.MemRefType.get([len(values)], ir.IndexType.get()), [], [])
    for number, value in enumerate(values):
        memref.store(value, memory, [index_constant(number)])
    return memory


__all__ = ["PieceTable"]
