# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of matrices of f16 or bf16 in shared memory, from where tensor cores read them.

Rows run along what neighbours in memory are, and are eight elements longer than what is in them, so that the eight rows
of a fragment lie in different banks. What is outside of the matrix is zeros.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu import nvgpu
from shlo_disc.lowering_gpu.block_loops import each_item
from shlo_disc.lowering_gpu.grid import WARP, thread
from shlo_disc.lowering_gpu.index_math import below, divided, plus, times
from shlo_disc.lowering_gpu.product_form import Matrix
from shlo_disc.shape_dialect.mlir import arith, ir, memref, scf, vector

CHUNK = 8
"""Elements of 16 bytes."""

FRAGMENT = 16
"""Rows, or columns, that one `ldmatrix` of four matrices reads."""


@dataclass(frozen=True)
class SharedTile:
    """`rows` rows of `row` elements of a matrix, from element `start` of shared memory on.

    matrix: its last two axes are rows and their elements. aligned: whether rows begin at multiples of 16 bytes, and are
    of neighbours.
    """

    shared: ir.Value
    start: int
    matrix: Matrix
    aligned: ir.Value
    rows: int
    row: int

    @staticmethod
    def room(rows: int, row: int) -> int:
        """Elements of a tile, with what is between its rows."""
        return rows * (row + CHUNK)

    # ---- filling ----------------------------------------------------------------------------------------------------

    def fetch(self, batch: Sequence[ir.Value], first: ir.Value) -> None:
        """Begin to bring the rows from `first` on of a matrix of the batch. Copies of 16 bytes are one group."""
        start = self.matrix.place(batch) if batch else index_constant(0)
        items = index_constant(self.rows * (self.row // CHUNK))
        choice = scf.IfOp(self.aligned, [], has_else=True)
        for block, one in ((choice.then_block, self._copy), (choice.else_block, self._keep)):
            with ir.InsertionPoint(block):
                each_item(items, functools.partial(self._chunk, start, first, one))
                scf.yield_([])
        nvgpu.close_group()

    def _chunk(self, start: ir.Value, first: ir.Value, one: object, item: ir.Value) -> None:
        """Eight elements of a row: where they go, where they come from, and how many of them there are."""
        chunk, row = divided(item, self.row // CHUNK)
        column, zero = times(chunk, CHUNK), index_constant(0)
        target = arith.addi(plus(times(row, self.row + CHUNK), self.start), column)
        *_, rows, inner = self.matrix.sizes
        from_ = arith.addi(first, row)
        is_there = below(from_, rows)
        begin = arith.minui(column, inner)
        present = arith.minui(arith.subi(inner, begin), index_constant(CHUNK))
        present = arith.select(is_there, present, zero)
        from_ = arith.muli(arith.select(is_there, from_, zero), self.matrix.strides[-2])
        one(target, arith.addi(start, from_), column, present)  # type: ignore[operator]

    def _copy(self, target: ir.Value, row: ir.Value, column: ir.Value, present: ir.Value) -> None:
        at = arith.select(below(index_constant(0), present), arith.addi(row, column), index_constant(0))
        nvgpu.copy_async(self.shared, target, self.matrix.memory, at, CHUNK, present)

    def _keep(self, target: ir.Value, row: ir.Value, column: ir.Value, present: ir.Value) -> None:
        for offset in range(CHUNK):
            at = arith.addi(row, arith.muli(plus(column, offset), self.matrix.strides[-1]))
            value = self._element(below(index_constant(offset), present), at)
            memref.store(value, self.shared, [plus(target, offset)])

    def _element(self, is_there: ir.Value, at: ir.Value) -> ir.Value:
        type_ = ir.MemRefType(self.shared.type).element_type
        choice = scf.IfOp(is_there, [type_], has_else=True)
        with ir.InsertionPoint(choice.then_block):
            scf.yield_([memref.load(self.matrix.memory, [at])])
        with ir.InsertionPoint(choice.else_block):
            scf.yield_([arith.constant(type_, 0.0)])
        return choice.results[0]

    # ---- fragments --------------------------------------------------------------------------------------------------

    def left(self, row: ir.Value, inner: int) -> ir.Value:
        """A (16 x 16), with this tile's rows as its rows."""
        return self._matrices(row, inner, second_below=True, transpose=False)

    def right_by_columns(self, row: int, inner: int) -> list[ir.Value]:
        """Twice B (16 x 8), with this tile's rows as its columns."""
        return self._halves(self._matrices(index_constant(row), inner, second_below=False, transpose=False))

    def right_by_rows(self, row: int, inner: int) -> list[ir.Value]:
        """Twice B (16 x 8), with this tile's rows as its rows."""
        return self._halves(self._matrices(index_constant(row), inner, second_below=True, transpose=True))

    def _matrices(self, row: ir.Value, inner: int, second_below: bool, transpose: bool) -> ir.Value:
        lane, _ = divided(thread(), WARP)
        low, high = divided(lane, CHUNK)
        second, third = divided(high, 2)
        down, right = (second, third) if second_below else (third, second)
        row = arith.addi(row, arith.addi(low, times(down, CHUNK)))
        at = arith.addi(times(row, self.row + CHUNK), plus(times(right, CHUNK), self.start + inner))
        return nvgpu.load_matrices(self.shared, at, transpose=transpose)

    def _halves(self, four: ir.Value) -> list[ir.Value]:
        type_ = ir.VectorType.get([2, 2], ir.MemRefType(self.shared.type).element_type)
        return [vector.extract_strided_slice(type_, four, [first], [2], [1]) for first in (0, 2)]


def is_aligned(pointer: ir.Value, start: int, strides: Sequence[ir.Value]) -> ir.Value:
    """Tells whether all rows of a matrix begin at multiples of 16 bytes, its elements being neighbours."""
    *outer, inner = strides
    address = plus(memref.ExtractAlignedPointerAsIndexOp(pointer).result, 2 * start)
    together = functools.reduce(arith.ori, outer, index_constant(0))
    whole = [_is_multiple(address, nvgpu.CHUNK_BYTES), _is_multiple(together, CHUNK)]
    return functools.reduce(arith.andi, [*whole, arith.cmpi(arith.CmpIPredicate.eq, inner, index_constant(1))])


def _is_multiple(value: ir.Value, of: int) -> ir.Value:
    rest = arith.andi(value, index_constant(of - 1))
    return arith.cmpi(arith.CmpIPredicate.eq, rest, index_constant(0))


__all__ = ["CHUNK", "FRAGMENT", "SharedTile", "is_aligned"]
