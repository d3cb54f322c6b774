# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sides of a product in the memory of a block: slices of the depth, several ahead of their use.

A block computes a tile of the result. Slices of both sides go to shared memory by asynchronous copies of 16 bytes. Rows
of shared memory are 16 bytes longer than what is in them, so that the eight rows of a fragment lie in different banks.
What is outside of the operands, or of the block's part of the depth, is filled with zeros.

Such a copy needs operands whose rows begin at multiples of 16 bytes; others are brought an element at a time, by copies
where it has 4 bytes or more. So are sides of bytes whose neighbours are not along the depth: products have no other
order of bytes, and `ldmatrix` turns elements of two bytes only.

A right side of narrow integers comes as bytes, and becomes elements when its turn is there (`narrow_slices`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu import nvgpu
from shlo_disc.lowering_gpu.block_loops import counted, each_item, when
from shlo_disc.lowering_gpu.grid import THREADS, WARP, thread
from shlo_disc.lowering_gpu.index_math import below, divided, is_multiple_of, parts, plus, times
from shlo_disc.lowering_gpu.kernel import shared_array
from shlo_disc.lowering_gpu.narrow_slices import BytesOfSlice, NarrowSlices
from shlo_disc.lowering_gpu.product_form import Matrix, ProductForm, Told, indices_of
from shlo_disc.lowering_gpu.product_parts import DepthParts
from shlo_disc.shape_dialect.dialect.types import bytes_of
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref, scf

FRAGMENT = 16
"""Rows or columns that one `ldmatrix` of four matrices reads."""

FRAGMENT_BYTES = 32
"""Bytes of the depth in such a fragment."""

SHARED_BYTES = 40 << 10
"""Shared memory of a block for slices; more than 48 KiB would have to be asked for at the launch."""

Values = list[ir.Value]
Where = tuple[ir.Value, ir.Value]
"""A place along both axes in the memory of a side, that of neighbours last."""


MOST_NARROW_STAGES, NARROW_SHARED_BYTES = 8, 44 << 10
"""Stages of slices of bytes, which are small, and shared memory for them and the slice of elements."""

_BYTES = 15
"""The number of the array of the block's memory that holds them."""

_LEAST_COPY = 4
"""Bytes of an element that may be copied asynchronously by itself."""


@dataclass(frozen=True)
class Tile:
    """A block's part of the result: `m` by `n` sums, of `m / m_warps` by `n / n_warps` for each warp.

    `k_bytes`: of the depth, what a slice has.
    """

    m: int
    n: int
    m_warps: int
    n_warps: int
    k_bytes: int = 64

    @property
    def m_fragments(self) -> int:
        """Fragments of the left side in a warp, 16 rows each."""
        return self.m // self.m_warps // FRAGMENT

    @property
    def n_fragments(self) -> int:
        """Pairs of fragments of the right side in a warp, 16 columns each."""
        return self.n // self.n_warps // FRAGMENT


FLAT = Tile(16, 128, 1, 8)
"""The tile of few rows, as in decoding."""


@dataclass(frozen=True)
class Slice:
    """The location of a side's slices in shared memory: `outer` rows of `inner` elements, from `start` on.

    depth_inside: a row runs along the depth. is_turned: in the memory of the side, neighbours are along the other axis.
    chunk: elements of 16 bytes. is_shared: all stages have one slice.
    """

    side: Matrix
    depth_inside: bool
    is_turned: bool
    outer: int
    inner: int
    start: int
    chunk: int
    is_shared: bool = False

    def first(self, base: ir.Value) -> ir.Value:
        """The first element of the slice of a stage that begins at `base`."""
        return index_constant(self.start) if self.is_shared else plus(base, self.start)

    @property
    def row(self) -> int:
        """From one row to the next."""
        return self.inner + self.chunk

    @property
    def size(self) -> int:
        """Elements of one slice."""
        return self.outer * self.row

    @property
    def far_and_near(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The axes in the memory of the side, that of neighbours last: sizes, and steps in shared memory."""
        axes = (self.outer, self.row), (self.inner, 1)
        return axes[::-1] if self.is_turned else axes

    def in_order(self, axis: ir.Value, depth: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The values of the side's rows and of the depth: that of the outer axis first."""
        return (axis, depth) if self.depth_inside else (depth, axis)

    def in_memory_order(self, axis: ir.Value, depth: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The values of the side's rows and of the depth: that of neighbours in its memory last."""
        return self.in_order(axis, depth)[::-1] if self.is_turned else self.in_order(axis, depth)


class Sides:
    """Both sides of a product, as the slices of tiles."""

    def __init__(self, form: ProductForm, told: Told, pointers: Sequence[ir.Value]):
        self.form, self.lhs, self.rhs, self.weight = form, told.lhs, told.rhs, told.weight
        self.pointers = list(pointers)[:2]
        self.element = form.element.memory()
        self.bytes = bytes_of(self.element)
        self.chunk = nvgpu.CHUNK_BYTES // self.bytes
        self.insides = (form.lhs == "mk", form.rhs == "nk")
        self.flat = self._flat()

    def _flat(self) -> Tile:
        """The tile of few rows. Slices are twice as deep where a thread has fewer bytes of a narrow side than it can
        copy at once: so there are half as many steps."""
        narrow, deep = self.narrow_slice(FLAT), replace(FLAT, k_bytes=2 * FLAT.k_bytes)
        twice = self.narrow_slice(deep)
        if narrow is None or twice is None or narrow.piece == nvgpu.CHUNK_BYTES:
            return FLAT
        return deep if twice.are_pieces else FLAT

    def depth_of(self, tile: Tile) -> int:
        """The elements of the depth in a slice."""
        return tile.k_bytes // self.bytes

    def slices(self, tile: Tile) -> list[Slice]:
        """The slices of one stage, one behind the other, or behind one that all stages share."""
        found: list[Slice] = []
        for side, inside, size in zip((self.lhs, self.rhs), self.insides, (tile.m, tile.n), strict=True):
            depth, straight = self.depth_of(tile), inside or self.bytes == 1
            outer, inner = (size, depth) if straight else (depth, size)
            found.append(Slice(side, straight, straight and not inside, outer, inner, 0, self.chunk))
        lhs, rhs = found
        if self.weight is not None:
            return [replace(lhs, start=rhs.size), replace(rhs, is_shared=True)]
        return [lhs, replace(rhs, start=lhs.size)]

    def narrow_slice(self, tile: Tile) -> BytesOfSlice | None:
        """The bytes of a slice of a side of narrow integers."""
        return None if self.weight is None else BytesOfSlice(self.weight.weight, self.depth_of(tile), tile.n)

    def stages(self, tile: Tile) -> tuple[int, list[Slice]]:
        """The number of stages that shared memory holds, and the slices of one."""
        slices, narrow = self.slices(tile), self.narrow_slice(tile)
        if narrow is None:
            return min(4, SHARED_BYTES // (self.bytes * sum(s.size for s in slices))), slices
        lhs, rhs = slices
        most = (NARROW_SHARED_BYTES - self.bytes * rhs.size) // (self.bytes * lhs.size + narrow.size)
        return 1 << min(most, MOST_NARROW_STAGES).bit_length() - 1, slices

    def elements(self, *tiles: Tile) -> int:
        """The elements of shared memory that all stages of any of some tiles take."""
        return max(
            sum(s.size * (1 if s.is_shared else count) for s in slices) for count, slices in map(self.stages, tiles)
        )

    def reserve_bytes(self, function: gpu.GPUFuncOp, *tiles: Tile) -> None:
        """Shared memory for the stages of a side of narrow integers, if it is one, in any of some tiles."""
        slices = [(self.stages(tile)[0], self.narrow_slice(tile)) for tile in tiles]
        sizes = [count * slice_.size for count, slice_ in slices if slice_ is not None]
        if sizes:
            self.stages_of_bytes = shared_array(function, _BYTES, max(sizes), ir.IntegerType.get_signless(8))

    def is_aligned(self) -> ir.Value:
        """Tells whether all rows of both sides begin at multiples of 16 bytes, as far as they are copied so."""
        aligned = [arith.constant(ir.IntegerType.get_signless(1), 1)]
        narrow = self.narrow_slice(self.flat)
        if narrow is not None and self.weight is not None:
            addresses = map(memref.ExtractAlignedPointerAsIndexOp, narrow.pointers_of(self.weight))
            aligned += [is_multiple_of(address.result, nvgpu.CHUNK_BYTES) for address in addresses]
        for pointer, slice_ in zip(self.pointers, self.slices(self.flat), strict=True):
            if slice_.is_turned or slice_.is_shared:
                continue
            *batch, of_rows, of_depth = slice_.side.strides
            address = memref.ExtractAlignedPointerAsIndexOp(pointer).result
            strides = (*batch, slice_.in_memory_order(of_rows, of_depth)[0])
            aligned += [is_multiple_of(address, nvgpu.CHUNK_BYTES), *(is_multiple_of(s, self.chunk) for s in strides)]
        return functools.reduce(arith.andi, aligned)


class TileOfResult:
    """The work on one tile by one block, in its part of the depth. `place`: the tile's indices."""

    def __init__(
        self, sides: Sides, shared: ir.Value, tile: Tile, aligned: bool, place: Values, depth_parts: DepthParts
    ):
        self.sides, self.shared, self.tile, self.aligned = sides, shared, tile, aligned
        *self.batch, row, column = place
        self.first_row, self.first_column = times(row, tile.m), times(column, tile.n)
        self.starts = [_start(matrix, self.batch) for matrix in (sides.lhs, sides.rhs)]
        self.stages, self.slices = sides.stages(tile)
        self.stage_size = sum(s.size for s in self.slices if not s.is_shared)
        self.depth_parts = depth_parts
        self.begin, self.end = depth_parts.share(sides.depth_of(tile))
        self.lane, self.warp = divided(thread(), WARP)
        self.narrow = self._narrow()

    def _narrow(self) -> NarrowSlices | None:
        """The slices of a right side of narrow integers."""
        slice_, weight = self.sides.narrow_slice(self.tile), self.sides.weight
        if slice_ is None or weight is None:
            return None
        memory, place = (self.shared, self.sides.stages_of_bytes), (self.first_column, self.end)
        flat, element = self.sides.narrow_slice(self.sides.flat), self.sides.form.element
        by_pieces = self.aligned and flat is not None and flat.are_pieces
        return NarrowSlices(weight, slice_, memory, self.slices[1], element, place, by_pieces)

    def walk(self, start: Values, add: Callable[[ir.Value, Values], Values]) -> Values:
        """Sums of all slices of the block's part: `add(first, sums)` adds the one whose elements begin at `first` of
        shared memory."""
        depth = self.sides.depth_of(self.tile)

        def ahead_of_all(number: ir.Value, _: Values) -> Values:
            self.fetch(arith.addi(self.begin, times(number, depth)), number)
            return []

        counted(index_constant(0), index_constant(self.stages - 1), index_constant(1), [], ahead_of_all)

        def slice_(number: ir.Value, sums: Values) -> Values:
            nvgpu.wait_for_groups(self.stages - 2)
            gpu.barrier()
            ahead = plus(number, self.stages - 1)
            self.fetch(arith.addi(self.begin, times(ahead, depth)), arith.remui(ahead, index_constant(self.stages)))
            stage = arith.remui(number, index_constant(self.stages))
            if self.narrow is not None:
                self.narrow.write(arith.addi(self.begin, times(number, depth)), stage)
                gpu.barrier()
            return add(times(stage, self.stage_size), sums)

        count = parts(arith.subi(self.end, self.begin), depth)
        found = counted(index_constant(0), count, index_constant(1), start, slice_)
        nvgpu.wait_for_groups(0)
        return found

    # ---- copies -----------------------------------------------------------------------------------------------------

    def fetch(self, first_depth: ir.Value, stage: ir.Value) -> None:
        """Begin to bring a slice of both sides into a stage of shared memory. Behind the block's part of the depth it
        is zeros."""
        base = times(stage, self.stage_size)
        firsts = (self.first_row, self.first_column)
        if self.narrow is not None:
            self.narrow.fetch(first_depth, stage)
        for slice_, start, first in zip(self.slices, self.starts, firsts, strict=True):
            if not slice_.is_shared:
                self._fetch_side(slice_, start, slice_.in_memory_order(first, first_depth), base)
        nvgpu.close_group()

    def _fetch_side(self, slice_: Slice, start: ir.Value, firsts: tuple[ir.Value, ir.Value], base: ir.Value) -> None:
        """By copies of a chunk or, where rows begin anywhere, of an element; elements of fewer bytes, which cannot be
        copied so, by loads of a chunk's."""
        (far_size, far_step), (near_size, near_step) = slice_.far_and_near
        is_whole = self.aligned and not slice_.is_turned
        by_copies = is_whole or self.sides.bytes >= _LEAST_COPY
        length = slice_.chunk if is_whole or not by_copies else 1
        of_row = near_size // length
        total = far_size * of_row

        def piece(number: ir.Value) -> None:
            near, far = divided(number, of_row)
            near = times(near, length)
            place = arith.addi(slice_.first(base), arith.addi(times(far, far_step), times(near, near_step)))
            where = arith.addi(firsts[0], far), arith.addi(firsts[1], near)
            (self._copy if by_copies else self._load)(slice_, start, place, where, length)

        if length == 1:
            each_item(index_constant(total), piece)
            return
        for step in range(0, total, THREADS):
            number = plus(thread(), step)
            if step + THREADS <= total:
                piece(number)
            else:
                when(below(number, index_constant(total)), functools.partial(piece, number))

    def _copy(self, slice_: Slice, start: ir.Value, place: ir.Value, where: Where, length: int) -> None:
        row, present = self._there(slice_, start, where, length)
        at = arith.select(below(index_constant(0), present), arith.addi(row, where[1]), index_constant(0))
        nvgpu.copy_async(self.shared, place, slice_.side.memory, at, length, present)

    def _load(self, slice_: Slice, start: ir.Value, place: ir.Value, where: Where, length: int) -> None:
        row, present = self._there(slice_, start, where, length)
        *_, (_, step) = slice_.far_and_near
        for offset in range(length):
            is_there, at = below(index_constant(offset), present), arith.addi(row, plus(where[1], offset))
            memref.store(self._element(slice_.side, is_there, at), self.shared, [plus(place, offset * step)])

    def _there(self, slice_: Slice, start: ir.Value, where: Where, length: int) -> tuple[ir.Value, ir.Value]:
        """The beginning of the row of some neighbours, and how many of them there are."""
        (far, near), zero = where, index_constant(0)
        far_size, near_size = slice_.in_memory_order(slice_.side.sizes[-2], self.end)
        far_stride, _ = slice_.in_memory_order(*slice_.side.strides[-2:])
        is_there = below(far, far_size)
        present = arith.minui(arith.subi(near_size, arith.minui(near, near_size)), index_constant(length))
        row = arith.addi(start, arith.muli(arith.select(is_there, far, zero), far_stride))
        return row, arith.select(is_there, present, zero)

    def _element(self, side: Matrix, is_there: ir.Value, at: ir.Value) -> ir.Value:
        """An element, zero where there is none."""
        choice = scf.IfOp(is_there, [self.sides.element], has_else=True)
        with ir.InsertionPoint(choice.then_block):
            scf.yield_([memref.load(side.memory, [at])])
        with ir.InsertionPoint(choice.else_block):
            scf.yield_([arith.constant(self.sides.element, 0.0 if self.sides.form.element.is_float else 0)])
        return choice.results[0]


def each_tile(tiles: Values, depth_parts: DepthParts, one: Callable[[Values], None]) -> None:
    """`one(indices)` for all tiles, of which there are so many along each axis, or the parts of them."""
    depth_parts.each(functools.reduce(arith.muli, tiles), lambda item: one(indices_of(item, tiles)))


def _start(matrix: Matrix, batch: Values) -> ir.Value:
    return matrix.place(batch) if batch else index_constant(0)


__all__ = ["FLAT", "FRAGMENT", "FRAGMENT_BYTES", "Sides", "Slice", "Tile", "TileOfResult", "each_tile"]
