# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrices that a kernel reads from the panels of a packed form where a call has nothing else.

A packed form has the transposed matrix in panels of some rows of the matrix (`runtime/native/kernels/packing.h`): the
first elements of these rows side by side, then their second ones, and so on. Where a product multiplies words of two
elements of 16 bits, it has the first two elements of each row side by side; where it multiplies those as f32, it has
them as f32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.element_types import Element, element_of
from shlo_disc.lowering.elements import Positions
from shlo_disc.lowering.positions import Position, PositionMath, index_constant
from shlo_disc.lowering_cpu.micro_kernels.gemm_format import MULTIPLIERS, format_of
from shlo_disc.lowering_cpu.options import CpuOptions
from shlo_disc.shape_dialect.mlir import arith, ir, memref
from shlo_disc.shape_dialect.symbolic.expr import Expr, Symbol


def columns_of_panels(operand: int) -> Expr:
    """The columns of the panels of an operand's packed form, as a size of the kernel."""
    return Expr.of_atom(Symbol(f"%columns_of_panels_{operand}"))


@dataclass
class PackedMatrix:
    """The packed form of a matrix, and the columns of its panels, which are rows of the matrix.

    element: that of the buffer, whose type has the matrix's sizes. together: of neighbours in a row that lie side by
    side. tested: the blocks that run where the matrix itself has a buffer.
    """

    buffer: ir.Value
    columns: ir.Value
    element: Element
    together: int
    tested: list[ir.Block] = field(default_factory=list)

    def offset(self, math: PositionMath, positions: Positions) -> Position:
        """The element of the buffer at which that of the matrix is."""
        row, column = positions
        words = -(-ir.MemRefType(self.buffer.type).shape[1] // self.together)
        panel, place = math.divmod(row, self.columns)
        word, rest = math.divmod(column, index_constant(self.together)) if self.together > 1 else (column, None)
        line = math.add(math.scale(panel, index_constant(words), words), word)
        found = math.add(math.scale(line, self.columns), place)
        if rest is None:
            return found
        return math.add(math.scale(found, index_constant(self.together), self.together), rest)


def packed_type(matrix: ir.Value, options: CpuOptions) -> tuple[ir.MemRefType, Element, int]:
    """The type of the buffer of a matrix's packed form, its element, and the neighbours that lie side by side."""
    element = element_of(matrix.type)
    word = MULTIPLIERS[format_of(element.name, options).multiplier].word
    kept = Element(word) if element.is_half and word == "f32" else element
    shape = ir.RankedTensorType(matrix.type).shape
    return ir.MemRefType.get(shape, kept.memory()), kept, max(1, Element(word).width // kept.bits)


def is_missing(buffer: ir.Value) -> ir.Value:
    """Tells whether a buffer's address is null."""
    address = memref.ExtractAlignedPointerAsIndexOp(buffer).result
    return arith.cmpi(arith.CmpIPredicate.eq, address, index_constant(0))


def check_panels(panels: Mapping[ir.Value, PackedMatrix]) -> None:
    """Raises CompilerError where a kernel reads a matrix that may be missing without a test."""
    for buffer, packed in panels.items():
        for use in buffer.uses:
            user = use.owner.operation
            if user.name != "memref.extract_aligned_pointer_as_index" and not _is_inside(user, packed.tested):
                raise CompilerError(f"kernels: {user.name} reads a matrix that may be in panels only")


def _is_inside(op: ir.Operation, blocks: Sequence[ir.Block]) -> bool:
    while op.name != "func.func":
        if op.block in blocks:
            return True
        op = op.parent.operation
    return False
