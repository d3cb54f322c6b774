# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of matrices of f16, bf16 or f32 in shared memory, from where tensor cores read them.

Rows run along what neighbours in memory are, and are 16 bytes longer than what is in them, so that the eight rows of a
fragment lie in different banks. What is outside of the matrix is zeros.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu import nvgpu
from shlo_disc.lowering_gpu.block_loops import each_item, when
from shlo_disc.lowering_gpu.grid import THREADS, WARP, thread
from shlo_disc.lowering_gpu.index_math import below, divided, plus, times
from shlo_disc.lowering_gpu.product_form import Matrix
from shlo_disc.shape_dialect.dialect.types import bytes_of
from shlo_disc.shape_dialect.mlir import arith, ir, memref, scf, vector

MATRIX = 8
"""Rows of 16 bytes of one of the matrices that `ldmatrix` reads."""

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
    aligned: bool
    rows: int
    row: int

    @property
    def element(self) -> ir.Type:
        """The type of the elements."""
        return ir.MemRefType(self.shared.type).element_type

    @property
    def chunk(self) -> int:
        """Elements of 16 bytes."""
        return chunk_of(self.element)

    @property
    def pitch(self) -> int:
        """Elements from a row to the next."""
        return self.row + self.chunk

    # ---- filling ----------------------------------------------------------------------------------------------------

    def fetch(self, batch: Sequence[ir.Value], first: ir.Value, is_whole: bool = False) -> None:
        """Begin to bring the rows from `first` on of a matrix of the batch. Copies of 16 bytes are one group.

        is_whole: the matrix has all rows of the tile.
        """
        start = self.matrix.place(batch) if batch else index_constant(0)
        if self.aligned:
            self._copy(start, first, is_whole)
        else:
            self._each_chunk(functools.partial(self._keep, start, first))
        nvgpu.close_group()

    def _copy(self, start: ir.Value, first: ir.Value, is_whole: bool) -> None:
        """This thread's copies. What does not depend on `first` is kept apart, so that a loop over pieces has it once;
        what does is the same for all threads. Where there is no row nothing is read, wherever that would be."""
        stride, (*_, rows, inner) = self.matrix.strides[-2], self.matrix.sizes
        count, across = self.rows * self._across, self._across
        for shift in range(0, count, THREADS):
            far = 0 if shift % across else shift // across
            chunk, row = divided(thread() if far else plus(thread(), shift), across)
            column = times(chunk, self.chunk)
            present = arith.minui(arith.subi(inner, arith.minui(column, inner)), index_constant(self.chunk))
            if not is_whole:
                present = arith.select(below(arith.addi(first, plus(row, far)), rows), present, index_constant(0))
            own = arith.addi(arith.addi(start, column), arith.muli(row, stride))
            source = arith.addi(own, arith.muli(plus(first, far), stride))
            target = arith.addi(plus(times(plus(row, far), self.pitch), self.start), column)
            copy = functools.partial(
                nvgpu.copy_async, self.shared, target, self.matrix.memory, source, self.chunk, present
            )
            self._in_row(chunk, copy if shift + THREADS <= count else functools.partial(_before, shift, count, copy))

    @property
    def _chunks(self) -> int:
        """Chunks of a row."""
        return self.row // self.chunk

    @property
    def _across(self) -> int:
        """Threads side by side along a row, a power of two: a thread then has the same columns of all its rows."""
        return 1 << (self._chunks - 1).bit_length()

    def _in_row(self, chunk: ir.Value, body: Callable[[], None]) -> None:
        if self._across == self._chunks:
            body()
        else:
            when(below(chunk, index_constant(self._chunks)), body)

    def _each_chunk(self, body: Callable[[ir.Value, ir.Value], None]) -> None:
        """`body` with the chunk and the row of each that this thread brings."""

        def each(item: ir.Value) -> None:
            chunk, row = divided(item, self._across)
            self._in_row(chunk, functools.partial(body, chunk, row))

        each_item(index_constant(self.rows * self._across), each)

    def _keep(self, start: ir.Value, first: ir.Value, chunk: ir.Value, row: ir.Value) -> None:
        """Copy the elements of a chunk one by one."""
        column, from_ = times(chunk, self.chunk), arith.addi(first, row)
        target = arith.addi(plus(times(row, self.pitch), self.start), column)
        *_, rows, inner = self.matrix.sizes
        begin = arith.addi(start, arith.muli(from_, self.matrix.strides[-2]))
        for offset in range(self.chunk):
            is_there = arith.andi(below(from_, rows), below(plus(column, offset), inner))
            at = arith.addi(begin, arith.muli(plus(column, offset), self.matrix.strides[-1]))
            memref.store(self._element(is_there, at), self.shared, [plus(target, offset)])

    def _element(self, is_there: ir.Value, at: ir.Value) -> ir.Value:
        type_ = self.element
        choice = scf.IfOp(is_there, [type_], has_else=True)
        with ir.InsertionPoint(choice.then_block):
            scf.yield_([memref.load(self.matrix.memory, [at])])
        with ir.InsertionPoint(choice.else_block):
            scf.yield_([arith.constant(type_, 0.0)])
        return choice.results[0]

    def change(self, one: Callable[[ir.Value], ir.Value]) -> None:
        """Replace the elements that this thread has brought, once they are there."""

        def each(chunk: ir.Value, row: ir.Value) -> None:
            at = arith.addi(plus(times(row, self.pitch), self.start), times(chunk, self.chunk))
            places = [[plus(at, offset)] for offset in range(self.chunk)]
            for place, value in zip(places, [memref.load(self.shared, place) for place in places], strict=True):
                memref.store(one(value), self.shared, place)

        self._each_chunk(each)

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

    def right_of_pair(self, row: int, own: ir.Value, column: int, across: ir.Value) -> ir.Value:
        """B (8 x 8) of elements of four bytes, with this tile's rows as its rows: those at `own` and behind it."""
        at = arith.addi(plus(times(own, self.pitch), self.start + row * self.pitch + column), across)
        values = [memref.load(self.shared, [plus(at, one * self.pitch)]) for one in range(2)]
        return vector.from_elements(ir.VectorType.get([2, 1], self.element), values)

    def _matrices(self, row: ir.Value, inner: int, second_below: bool, transpose: bool) -> ir.Value:
        lane, _ = divided(thread(), WARP)
        low, high = divided(lane, MATRIX)
        second, third = divided(high, 2)
        down, right = (second, third) if second_below else (third, second)
        row = arith.addi(row, arith.addi(low, times(down, MATRIX)))
        at = arith.addi(times(row, self.pitch), plus(times(right, self.chunk), self.start + inner))
        return nvgpu.load_matrices(self.shared, at, transpose=transpose)

    def _halves(self, four: ir.Value) -> list[ir.Value]:
        type_ = ir.VectorType.get([2, ir.VectorType(four.type).shape[1]], self.element)
        return [vector.extract_strided_slice(type_, four, [first], [2], [1]) for first in (0, 2)]


def _before(shift: int, count: int, body: Callable[[], None]) -> None:
    when(below(plus(thread(), shift), index_constant(count)), body)


def is_aligned(pointer: ir.Value, start: int, strides: Sequence[ir.Value]) -> ir.Value:
    """Tells whether all rows of a matrix begin at multiples of 16 bytes, its elements being neighbours."""
    *outer, inner = strides
    element = ir.MemRefType(pointer.type).element_type
    address = plus(memref.ExtractAlignedPointerAsIndexOp(pointer).result, bytes_of(element) * start)
    together = functools.reduce(arith.ori, outer, index_constant(0))
    whole = [_is_multiple(address, nvgpu.CHUNK_BYTES), _is_multiple(together, chunk_of(element))]
    return functools.reduce(arith.andi, [*whole, arith.cmpi(arith.CmpIPredicate.eq, inner, index_constant(1))])


def _is_multiple(value: ir.Value, of: int) -> ir.Value:
    rest = arith.andi(value, index_constant(of - 1))
    return arith.cmpi(arith.CmpIPredicate.eq, rest, index_constant(0))


def chunk_of(element: ir.Type) -> int:
    """Elements of 16 bytes."""
    return nvgpu.CHUNK_BYTES // bytes_of(element)


__all__ = ["FRAGMENT", "MATRIX", "SharedTile", "chunk_of", "is_aligned"]
