# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The common part of line sorts of every target: lines in memory, and the op's own comparator on their elements.

Elements move as they are stored, so that every bit of a NaN, and the sign of a zero, stays what it was.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.lowering.element_types import element_of, from_memory, to_memory
from shlo_disc.lowering.elements import Elements, Positions
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering.reduction import Combiner
from shlo_disc.shape_dialect.dialect.types import DYNAMIC
from shlo_disc.shape_dialect.mlir import arith, func, ir, math, memref

Rows = list[ir.Value]
"""One row of every operand, as memrefs of rank 1."""


def sort_of(fusion: func.FuncOp) -> ir.OpView:
    """The sort of a fusion that sorts, or that takes the beginning of what is sorted."""
    return next(o for o in fusion.entry_block.operations if o.operation.name == "stablehlo.sort")


def row_of(buffer: ir.Value, linear: ir.Value, length: ir.Value) -> ir.Value:
    """Row `linear` of a contiguous buffer."""
    return elements_from(buffer, arith.muli(linear, length), length)


def elements_from(buffer: ir.Value, offset: ir.Value, length: ir.Value) -> ir.Value:
    """So many elements of a contiguous buffer, from number `offset` on."""
    whole = ir.MemRefType(buffer.type)
    layout = ir.StridedLayoutAttr.get(DYNAMIC, [1])
    type_ = ir.MemRefType.get([DYNAMIC], whole.element_type, layout, whole.memory_space)
    return memref.ReinterpretCastOp(type_, buffer, [offset], [length], [], [DYNAMIC], [DYNAMIC], [1]).result


@dataclass
class LineSort:
    """The comparator of a sort, on elements of all its operands as they are stored."""

    op: ir.OpView
    elements: Elements

    def __post_init__(self) -> None:
        self.kinds = [element_of(v.type) for v in self.op.operands]
        self.comparator = Combiner(self.op, self.elements.elementwise)

    def element_at(self, where: Positions) -> list[ir.Value]:
        """The element of every operand at some positions, computed where it is not in memory."""
        found = [self.elements.at(v, where) for v in self.op.operands]
        return [to_memory(v, kind) for v, kind in zip(found, self.kinds, strict=True)]

    def is_before(self, left: list[ir.Value], right: list[ir.Value]) -> ir.Value:
        """The comparator on stored elements of every operand."""
        pairs = zip(left, right, self.kinds, strict=True)
        interleaved = [from_memory(v, kind) for a, b, kind in pairs for v in (a, b)]
        return self.comparator.combine(interleaved, [], exact=True)[0]

    @staticmethod
    def load(rows: Rows, i: ir.Value) -> list[ir.Value]:
        """Element `i` of every row, as stored."""
        return [memref.load(row, [i]) for row in rows]

    @staticmethod
    def store(rows: Rows, i: ir.Value, values: list[ir.Value]) -> None:
        """Write element `i` of every row."""
        for row, value in zip(rows, values, strict=True):
            memref.store(value, row, [i])


def ceil_log2(n: ir.Value) -> ir.Value:
    """The smallest k with 2**k >= n; 0 for n = 0."""
    integer = ir.IntegerType.get_signless(64)
    wide = arith.index_cast(integer, arith.maxui(n, index_constant(1)))
    zeros = math.ctlz(arith.subi(wide, arith.constant(integer, 1)))
    return arith.index_cast(ir.IndexType.get(), arith.subi(arith.constant(integer, 64), zeros))
