# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of f32, and of other types without tensor cores, whose result has few rows, as in decoding.

A block has a tile of all rows and 128 columns, so that the right side is read once; slices of both sides are on their
way while others are multiplied (`product_slices`). By plain arithmetic a thread has 4 rows and 2 columns, and reads
shared memory by 16 bytes: less often than memory brings a slice, and with few registers. By TF32 a warp has 16 columns,
and rounds what it reads.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence

from shlo_disc.lowering.element_types import convert, from_memory
from shlo_disc.lowering.elements import splat_constant
from shlo_disc.lowering.index_rules.folds import multiply_add, zero_of
from shlo_disc.lowering_gpu import tf32
from shlo_disc.lowering_gpu.block_loops import either
from shlo_disc.lowering_gpu.grid import WARP, thread
from shlo_disc.lowering_gpu.index_math import divided, parts, plus, times
from shlo_disc.lowering_gpu.lanes import ACCESS_BYTES
from shlo_disc.lowering_gpu.product_epilogue import EpilogueFrame
from shlo_disc.lowering_gpu.product_form import Matrix
from shlo_disc.lowering_gpu.product_parts import DepthParts
from shlo_disc.lowering_gpu.product_slices import FLAT, Sides, Slice, TileOfResult, Values, each_tile
from shlo_disc.lowering_gpu.thread_sums import Layout, ThreadSums
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref, vector

ROWS, PAIR = 4, 2
"""Rows and columns of a thread by plain arithmetic."""

STEP, COLUMNS = 8, 8
"""Elements along the depth, and columns, of an instruction of TF32."""


class FewRowsKernel(ABC):
    """The work of a kernel on results of at most `FLAT.m` rows."""

    def __init__(
        self, sides: Sides, result: Matrix, frame: EpilogueFrame | None, shared: ir.Value, depth_parts: DepthParts
    ):
        self.sides, self.result, self.shared, self.parts = sides, result, shared, depth_parts
        self.form = sides.form
        self.thread_sums = ThreadSums(result, self.form, frame, self.layout)
        self.row, self.column = self.place()

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """The sums of a thread in the end."""

    @abstractmethod
    def place(self) -> tuple[ir.Value, ir.Value]:
        """The row and the column of the thread's first sum in the end."""

    @abstractmethod
    def zeros(self) -> Values:
        """The sums of no slices."""

    @abstractmethod
    def add(self, tile: TileOfResult, base: ir.Value, sums: Values) -> Values:
        """The sums with the products of a slice that begins at `base` of shared memory."""

    @abstractmethod
    def of_thread(self, sums: Values) -> Values:
        """The sums of the thread, in the order of the layout."""

    def write(self) -> None:
        """All tiles, one block a tile, or a part of it, at a time."""
        either(self.sides.is_aligned(), lambda: self._tiles(True), lambda: self._tiles(False))

    def _tiles(self, aligned: bool) -> None:
        *batch, m, n = self.result.sizes
        tiles = [*batch, parts(m, FLAT.m), parts(n, FLAT.n)]
        each_tile(tiles, self.parts, lambda indices: self._tile(indices, aligned))

    def _tile(self, indices: Values, aligned: bool) -> None:
        tile = TileOfResult(self.sides, self.shared, self.sides.flat, aligned, indices, self.parts)
        sums = tile.walk(self.zeros(), lambda base, carried: self.add(tile, base, carried))
        place = arith.addi(tile.first_row, self.row), arith.addi(tile.first_column, self.column)
        self.parts.finish(self.of_thread(sums), lambda total: self.thread_sums.write(tile.batch, place, total))
        gpu.barrier()  # behind it, nobody reads slices


class FewRows(FewRowsKernel):
    """By plain arithmetic, with all bits."""

    @property
    def step(self) -> int:
        """From one column of a thread to the next. Neighbours in shared memory are either along the columns, and then
        are read together, or along the depth, and then lanes have neighbouring columns, which are in different banks.
        """
        return 1 if self.form.rhs == "kn" else WARP

    @property
    def layout(self) -> Layout:
        """Row by row."""
        rows = (ROWS, 1, 0)
        return Layout(PAIR, (rows,)) if self.step == 1 else Layout(1, ((PAIR, 0, WARP), rows))

    def place(self) -> tuple[ir.Value, ir.Value]:
        """Warps have 4 rows of half of the columns."""
        lane, warp = divided(thread(), WARP)
        side, down = divided(warp, FLAT.n // (PAIR * WARP))
        own = times(lane, PAIR) if self.step == 1 else lane
        return times(down, ROWS), arith.addi(times(side, PAIR * WARP), own)

    def zeros(self) -> Values:
        """The first sums of all rows and columns of the thread."""
        return [zero_of(self.form.sums)] * (ROWS * PAIR)

    def add(self, tile: TileOfResult, base: ir.Value, sums: Values) -> Values:
        """All of the slice, 16 bytes of the depth at a time."""
        lhs, rhs = tile.slices
        chunk = self.sides.chunk
        columns = range(0, PAIR * self.step, self.step)
        for depth in range(0, self.sides.depth_of(self.sides.flat), chunk):
            left = self._values(lhs, base, self.row, range(ROWS), depth)
            right = self._values(rhs, base, self.column, columns, depth)
            for k in range(chunk):
                pairs = zip(itertools.product(left, right), sums, strict=True)
                sums = [multiply_add(a[k], b[k], total, self.form.sums) for (a, b), total in pairs]
        return sums

    def _values(self, slice_: Slice, base: ir.Value, first: ir.Value, offsets: range, depth: int) -> list[Values]:
        """The elements of rows or columns at some offsets, 16 bytes of the depth of each."""
        start, chunk = plus(slice_.first(base), depth * (1 if slice_.depth_inside else slice_.row)), slice_.chunk
        if slice_.depth_inside:
            rows = [times(plus(first, offset), slice_.row) for offset in offsets]
            return [self._loaded(arith.addi(start, row), chunk) for row in rows]
        found = [self._loaded(plus(arith.addi(start, first), k * slice_.row), len(offsets)) for k in range(chunk)]
        return [list(column) for column in zip(*found, strict=True)]

    def _loaded(self, place: ir.Value, count: int) -> Values:
        """Neighbours in shared memory, which begin at a multiple of them."""
        type_ = ir.VectorType.get([count], self.sides.element)
        alignment = min(ACCESS_BYTES, count * self.sides.bytes)
        together = vector.load(type_, self.shared, [place], alignment=alignment)
        element = self.form.element
        values = [vector.extract(together, [], [i]) for i in range(count)]
        return [convert(from_memory(value, element), element, self.form.sums) for value in values]

    def of_thread(self, sums: Values) -> Values:
        """They are in order."""
        return sums


class FewRowsByTf32(FewRowsKernel):
    """By instructions of TF32, as `tf32` has them; fragments are laid out as `nvgpu` describes."""

    tiles = FLAT.n // FLAT.n_warps // COLUMNS

    @property
    def layout(self) -> Layout:
        """Pairs of a fragment's two halves, of each tile of columns."""
        return Layout(2, ((2, COLUMNS, 0), (self.tiles, 0, COLUMNS)))

    def place(self) -> tuple[ir.Value, ir.Value]:
        """The first row and column of a lane of the warp that has the columns."""
        lane, warp = divided(thread(), WARP)
        self.near, self.far = divided(lane, 4)
        self.warp_column = times(warp, self.tiles * COLUMNS)
        return self.far, arith.addi(self.warp_column, times(self.near, 2))

    def zeros(self) -> Values:
        """Fragments of all tiles."""
        zero = splat_constant(ir.VectorType.get([2, 2], self.form.sums.register()))
        return [zero] * (self.tiles * tf32.kinds_of(self.form.precision))

    def add(self, tile: TileOfResult, base: ir.Value, sums: Values) -> Values:
        """All of the slice."""
        lhs, rhs = tile.slices
        sums = list(sums)
        for depth in range(0, self.sides.depth_of(self.sides.flat), STEP):
            left = self._fragments(lhs, base, self.far, depth, FLAT.m)
            for number in range(self.tiles):
                column = arith.addi(plus(self.warp_column, number * COLUMNS), self.far)
                right = self._fragments(rhs, base, column, depth, COLUMNS)
                tf32.multiply_add(left, right, sums, number, self.form.precision)
        return sums

    def _fragments(self, slice_: Slice, base: ir.Value, first: ir.Value, depth: int, rows: int) -> Sequence[ir.Value]:
        """The fragments, one of each part, of `rows` rows or columns, of which this lane's first is `first`."""
        values = []
        for k, row in itertools.product((0, STEP // 2), range(0, rows, COLUMNS)):
            outer, inner = slice_.in_order(plus(first, row), plus(self.near, depth + k))
            place = arith.addi(arith.addi(slice_.first(base), times(outer, slice_.row)), inner)
            values.append(tf32.in_parts(memref.load(self.shared, [place]), self.form.precision))
        type_ = ir.VectorType.get([len(values), 1], self.sides.element)
        return [vector.from_elements(type_, list(part)) for part in zip(*values, strict=True)]

    def of_thread(self, sums: Values) -> Values:
        """The numbers of all fragments."""
        return tf32.joined(sums, self.form.precision)


__all__ = ["FewRows", "FewRowsByTf32", "FewRowsKernel"]
