# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of f16, bf16 or 8-bit integer matrices on tensor cores, for sizes that are told at run time.

A block computes a tile of the result. Slices of both sides go to shared memory, several ahead of their use, by
asynchronous copies of 16 bytes; warps read them as fragments (`ldmatrix`) and add them up in 32 bits (`mma.sync`), as
in NVIDIA's CUTLASS. Rows of shared memory are 16 bytes longer than what is in them, so that the eight rows of a
fragment lie in different banks. What is outside of the operands is filled with zeros and not written.

How large tiles are is chosen by the sizes. A copy needs operands whose rows begin at multiples of 16 bytes; others are
copied an element at a time. So are sides of bytes whose neighbours are not along the depth: products have no other
order of bytes, and `ldmatrix` turns elements of two bytes only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shlo_disc.lowering.elements import splat_constant
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu import nvgpu
from shlo_disc.lowering_gpu.block_loops import each_item
from shlo_disc.lowering_gpu.grid import THREADS, WARP, each_block, thread
from shlo_disc.lowering_gpu.index_math import below, divided, parts, plus, times
from shlo_disc.lowering_gpu.kernel import shared_array
from shlo_disc.lowering_gpu.product_epilogue import Epilogue, EpilogueFrame, KeptSums
from shlo_disc.lowering_gpu.product_form import Matrix, ProductForm, Told, indices_of
from shlo_disc.shape_dialect.dialect.types import bytes_of
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref, scf, vector

EIGHT = 8
"""Rows of a matrix of `ldmatrix`, and columns of one of sums."""

FRAGMENT = 16
"""Rows or columns that one `ldmatrix` of four matrices reads."""

FRAGMENT_BYTES = 32
"""Bytes of the depth in such a fragment."""

SHARED_BYTES = 40 << 10
"""Shared memory of a block for slices; more than 48 KiB would have to be asked for at the launch."""

BLOCKS = 2
"""Blocks that a multiprocessor is to have room for, so that one multiplies while another does what follows."""

PROCESSORS = 128
"""About as many multiprocessors as larger GPUs have: fewer tiles than that leave some idle."""

Values = list[ir.Value]


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


LARGE, SMALL, FLAT = Tile(128, 128, 2, 4), Tile(64, 64, 2, 4), Tile(16, 128, 1, 8)
"""Many products of few bytes; enough blocks for a smaller result; few rows, as in decoding."""


@dataclass(frozen=True)
class Slice:
    """The location of a side's slices in shared memory: `outer` rows of `inner` elements, from `start` on.

    depth_inside: a row runs along the depth. is_turned: in the memory of the side, neighbours are along the other axis.
    chunk: elements of 16 bytes.
    """

    side: Matrix
    depth_inside: bool
    is_turned: bool
    outer: int
    inner: int
    start: int
    chunk: int

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


def takes_tensor_cores(form: ProductForm) -> bool:
    """Tells whether a product is one of f16, bf16 or integers of 8 bits."""
    return form.element.is_half or form.element.name in ("i8", "ui8")


class TensorKernel:
    """The body of a kernel, at the insertion point."""

    def __init__(
        self,
        function: gpu.GPUFuncOp,
        arguments: Sequence[ir.Value],
        form: ProductForm,
        frame: EpilogueFrame | None = None,
    ):
        nvgpu.load(function.context)
        self.form = form
        self.element = form.element.memory()
        self.bytes, self.sum_type = bytes_of(self.element), form.sums.register()
        self.chunk, self.depth = nvgpu.CHUNK_BYTES // self.bytes, FRAGMENT_BYTES // self.bytes
        told = Told.of(arguments, form)
        self.lhs, self.rhs, self.result = told.lhs, told.rhs, told.result
        self.pointers = list(arguments[:2])
        self.insides = (form.lhs == "mk", form.rhs == "nk")
        elements = max(count * sum(s.size for s in slices) for count, slices in map(self.stages, (FLAT, SMALL, LARGE)))
        self.shared = shared_array(function, 0, elements, self.element)
        self.shared_bytes = elements * self.bytes
        *self.batch, self.m, self.n = self.result.sizes
        self.epilogue = None if frame is None else Epilogue(frame, self.result, EIGHT)
        if frame is not None:
            word = ir.IntegerType.get_signless(32)
            function.attributes["nvvm.minctasm"] = ir.IntegerAttr.get(word, BLOCKS)

    def slices(self, tile: Tile) -> list[Slice]:
        """Those of one stage, one behind the other."""
        found: list[Slice] = []
        for side, inside, size in zip((self.lhs, self.rhs), self.insides, (tile.m, tile.n), strict=True):
            depth, straight = tile.k_bytes // self.bytes, inside or self.bytes == 1
            outer, inner = (size, depth) if straight else (depth, size)
            start = sum(s.size for s in found)
            found.append(Slice(side, straight, straight and not inside, outer, inner, start, self.chunk))
        return found

    def stages(self, tile: Tile) -> tuple[int, list[Slice]]:
        """The number of stages that shared memory holds, and the slices of one."""
        slices = self.slices(tile)
        return min(4, SHARED_BYTES // (self.bytes * sum(s.size for s in slices))), slices

    # ---- choices ----------------------------------------------------------------------------------------------------

    def write(self) -> None:
        """All tiles of the result, in the version that suits sizes and addresses."""
        few_rows = arith.cmpi(arith.CmpIPredicate.ule, self.m, index_constant(FLAT.m))
        many = arith.cmpi(arith.CmpIPredicate.uge, self.count(self.tiles(LARGE)), index_constant(PROCESSORS))
        aligned = self.is_aligned()
        flat = self.either(aligned, self.with_tile(FLAT, True), self.with_tile(FLAT, False))
        by_copies = self.either(many, self.with_tile(LARGE, True), self.with_tile(SMALL, True))
        self.either(few_rows, flat, self.either(aligned, by_copies, self.with_tile(SMALL, False)))()

    @staticmethod
    def either(condition: ir.Value, then: Callable[[], None], otherwise: Callable[[], None]) -> Callable[[], None]:
        """One of two versions, written when it is called."""

        def both() -> None:
            choice = scf.IfOp(condition, [], has_else=True)
            for block, version in ((choice.then_block, then), (choice.else_block, otherwise)):
                with ir.InsertionPoint(block):
                    version()
                    scf.yield_([])

        return both

    def is_aligned(self) -> ir.Value:
        """Tells whether all rows of both sides begin at multiples of 16 bytes, as far as they are copied so."""
        aligned = [arith.constant(ir.IntegerType.get_signless(1), 1)]
        for pointer, slice_ in zip(self.pointers, self.slices(LARGE), strict=True):
            if slice_.is_turned:
                continue
            *batch, of_rows, of_depth = slice_.side.strides
            address = memref.ExtractAlignedPointerAsIndexOp(pointer).result
            strides = (*batch, slice_.in_memory_order(of_rows, of_depth)[0])
            aligned += [_is_multiple(address, nvgpu.CHUNK_BYTES), *(_is_multiple(s, self.chunk) for s in strides)]
        return functools.reduce(arith.andi, aligned)

    def tiles(self, tile: Tile) -> Values:
        """The numbers of tiles: of each batch axis, along m, along n."""
        return [*self.batch, parts(self.m, tile.m), parts(self.n, tile.n)]

    @staticmethod
    def count(tiles: Values) -> ir.Value:
        """The number of tiles in all."""
        return functools.reduce(arith.muli, tiles)

    def with_tile(self, tile: Tile, aligned: bool) -> Callable[[], None]:
        """A version, written when it is called."""

        def version() -> None:
            tiles = self.tiles(tile)

            def one(item: ir.Value) -> None:
                _TileOfResult(self, tile, aligned, indices_of(item, tiles)).emit()

            each_block(self.count(tiles), one)

        return version


class _TileOfResult:
    """The work on one tile by one block."""

    def __init__(self, kernel: TensorKernel, tile: Tile, aligned: bool, place: Values):
        self.kernel, self.tile, self.aligned = kernel, tile, aligned
        *batch, row, column = place
        self.first_row, self.first_column = times(row, tile.m), times(column, tile.n)
        self.starts = [_start(matrix, batch) for matrix in (kernel.lhs, kernel.rhs)]
        self.batch = batch
        self.stages, self.slices = kernel.stages(tile)
        self.stage_size = sum(s.size for s in self.slices)
        self.lane, warp = divided(thread(), WARP)
        column_warp, self.row_warp = divided(warp, tile.n_warps)
        self.warp_row = times(self.row_warp, tile.m // tile.m_warps)
        self.warp_column = times(column_warp, tile.n // tile.n_warps)

    def emit(self) -> None:
        """Add up slice after slice, and write the sums."""
        tile, (*_, depth), slice_depth = self.tile, self.kernel.lhs.sizes, self.tile.k_bytes // self.kernel.bytes
        for number in range(self.stages - 1):
            self.fetch(index_constant(number), index_constant(number))
        zero = splat_constant(ir.VectorType.get([2, 2], self.kernel.sum_type))
        count = tile.m_fragments * tile.n_fragments * 2
        loop = scf.ForOp(index_constant(0), parts(depth, slice_depth), index_constant(1), [zero] * count)
        with ir.InsertionPoint(loop.body):
            number = loop.induction_variable
            nvgpu.wait_for_groups(self.stages - 2)
            gpu.barrier()
            ahead = arith.addi(number, index_constant(self.stages - 1))
            self.fetch(ahead, arith.remui(ahead, index_constant(self.stages)))
            scf.yield_(self.multiply(arith.remui(number, index_constant(self.stages)), list(loop.inner_iter_args)))
        nvgpu.wait_for_groups(0)
        if self.kernel.epilogue is None:
            self.write(list(loop.results))
        else:
            self.follow(self.kernel.epilogue, list(loop.results))
        gpu.barrier()

    # ---- slices -----------------------------------------------------------------------------------------------------

    def fetch(self, number: ir.Value, stage: ir.Value) -> None:
        """Begin to bring a slice of both sides into a stage of shared memory. Behind the depth it is zeros."""
        first_depth = times(number, self.tile.k_bytes // self.kernel.bytes)
        base = times(stage, self.stage_size)
        firsts = (self.first_row, self.first_column)
        for slice_, start, first in zip(self.slices, self.starts, firsts, strict=True):
            self._fetch_side(slice_, start, slice_.in_memory_order(first, first_depth), base)
        nvgpu.close_group()

    def _fetch_side(self, slice_: Slice, start: ir.Value, firsts: tuple[ir.Value, ir.Value], base: ir.Value) -> None:
        (far_size, far_step), (near_size, near_step) = slice_.far_and_near
        chunks = near_size // slice_.chunk
        total = far_size * chunks

        def chunk(number: ir.Value) -> None:
            near, far = divided(number, chunks)
            near = times(near, slice_.chunk)
            place = arith.addi(plus(base, slice_.start), arith.addi(times(far, far_step), times(near, near_step)))
            self._fetch_chunk(slice_, start, place, arith.addi(firsts[0], far), arith.addi(firsts[1], near))

        for step in range(0, total, THREADS):
            number = plus(thread(), step)
            if step + THREADS <= total:
                chunk(number)
                continue
            some = scf.IfOp(below(number, index_constant(total)), [])
            with ir.InsertionPoint(some.then_block):
                chunk(number)
                scf.yield_([])

    def _fetch_chunk(self, slice_: Slice, start: ir.Value, place: ir.Value, far: ir.Value, near: ir.Value) -> None:
        side, zero, chunk = slice_.side, index_constant(0), slice_.chunk
        far_size, near_size = slice_.in_memory_order(*side.sizes[-2:])
        far_stride, _ = slice_.in_memory_order(*side.strides[-2:])
        is_there = below(far, far_size)
        begin = arith.minui(near, near_size)
        present = arith.minui(arith.subi(near_size, begin), index_constant(chunk))
        present = arith.select(is_there, present, zero)
        row = arith.addi(start, arith.muli(arith.select(is_there, far, zero), far_stride))
        if self.aligned and not slice_.is_turned:
            at = arith.select(below(zero, present), arith.addi(row, begin), zero)
            nvgpu.copy_async(self.kernel.shared, place, side.memory, at, chunk, present)
            return
        *_, (_, step) = slice_.far_and_near
        for offset in range(chunk):
            value = self._element(side, below(index_constant(offset), present), arith.addi(row, plus(near, offset)))
            memref.store(value, self.kernel.shared, [plus(place, offset * step)])

    def _element(self, side: Matrix, is_there: ir.Value, at: ir.Value) -> ir.Value:
        """An element, zero where there is none."""
        choice = scf.IfOp(is_there, [self.kernel.element], has_else=True)
        with ir.InsertionPoint(choice.then_block):
            scf.yield_([memref.load(side.memory, [at])])
        with ir.InsertionPoint(choice.else_block):
            scf.yield_([arith.constant(self.kernel.element, 0.0 if self.kernel.form.element.is_float else 0)])
        return choice.results[0]

    # ---- sums -------------------------------------------------------------------------------------------------------

    def multiply(self, stage: ir.Value, sums: Values) -> Values:
        """Add what a stage has."""
        base = times(stage, self.stage_size)
        lhs, rhs = self.slices
        for depth in range(0, self.tile.k_bytes // self.kernel.bytes, self.kernel.depth):
            right = [f for j in range(self.tile.n_fragments) for f in self._right(rhs, base, j * FRAGMENT, depth)]
            new: Values = []
            for i in range(self.tile.m_fragments):
                left = self._matrices(lhs, base, self.warp_row, i * FRAGMENT, depth, lhs.depth_inside)
                new += [self._multiply_add(left, b, sums[len(new) + j]) for j, b in enumerate(right)]
            sums = new
        return sums

    def _multiply_add(self, left: ir.Value, right: ir.Value, sums: ir.Value) -> ir.Value:
        element = self.kernel.form.element
        if element.is_float:
            return nvgpu.multiply_add(left, right, sums)
        return nvgpu.multiply_add_bytes(left, right, sums, element.is_unsigned)

    def _right(self, slice_: Slice, base: ir.Value, column: int, depth: int) -> Values:
        """Twice 8 columns of the right side, with a fragment's depth."""
        four = self._matrices(slice_, base, self.warp_column, column, depth, not slice_.depth_inside)
        type_ = ir.VectorType.get([2, 4 // self.kernel.bytes], self.kernel.element)
        return [vector.extract_strided_slice(type_, four, [first], [2], [1]) for first in (0, 2)]

    def _matrices(
        self, slice_: Slice, base: ir.Value, warp: ir.Value, place: int, depth: int, is_below_second: bool
    ) -> ir.Value:
        """The four matrices of 16 rows or columns and a fragment's depth. is_below_second: the second is the one below
        the first, as the slice lies, and not the one beside it."""
        low, high = divided(self.lane, EIGHT)
        second, third = divided(high, 2)
        down, right = (second, third) if is_below_second else (third, second)
        outer, inner = slice_.in_order(plus(warp, place), index_constant(depth))
        outer = arith.addi(outer, arith.addi(low, times(down, EIGHT)))
        inner = arith.addi(inner, times(right, slice_.chunk))
        at = arith.addi(arith.addi(plus(base, slice_.start), inner), times(outer, slice_.row))
        return nvgpu.load_matrices(self.kernel.shared, at, transpose=not slice_.depth_inside)

    # ---- what follows -----------------------------------------------------------------------------------------------

    def follow(self, epilogue: Epilogue, sums: Values) -> None:
        """Do what follows, for as many fragments of each warp's rows at a time as there is shared memory for.

        The sums go through there, where slices were: so threads take neighbours along rows, and the code of the
        epilogue stands there once for many registers.
        """
        tile = self.tile
        kept = KeptSums(self.kernel.shared, self.kernel.sum_type, tile.n + EIGHT, epilogue.width)
        most = self.kernel.shared_bytes // (4 * tile.m_warps * FRAGMENT * kept.pitch)
        for first in range(0, tile.m_fragments, most):
            count = min(most, tile.m_fragments - first)
            gpu.barrier()  # behind it, nobody reads slices, or sums
            self._keep(kept, sums, first, count)
            gpu.barrier()
            items = index_constant(tile.m_warps * count * FRAGMENT * (tile.n // epilogue.width))
            each_item(items, functools.partial(self._follow_some, epilogue, kept, first, count))

    def _follow_some(self, epilogue: Epilogue, kept: KeptSums, first: int, count: int, item: ir.Value) -> None:
        """Do it for the neighbours of a number among the fragments that are kept."""
        place, row = divided(item, self.tile.n // epilogue.width)
        place = times(place, epilogue.width)
        inside, fragment = divided(row, FRAGMENT)
        fragment, warp = divided(fragment, count)
        below = arith.addi(times(plus(fragment, first), FRAGMENT), inside)
        below = arith.addi(times(warp, self.tile.m // self.tile.m_warps), below)
        at = arith.addi(self.first_row, below), arith.addi(self.first_column, place)
        epilogue.take(self.batch, *at, kept.at(row, place))

    def _keep(self, kept: KeptSums, sums: Values, first: int, count: int) -> None:
        """This thread's sums of some fragments, pair by pair."""
        in_group, group = divided(self.lane, 4)
        row = arith.addi(times(self.row_warp, count * FRAGMENT), group)
        column = arith.addi(self.warp_column, times(in_group, 2))
        columns = self.tile.n_fragments * 2
        for number, four in enumerate(sums[first * columns : (first + count) * columns]):
            for half in range(2):
                below = plus(row, number // columns * FRAGMENT + half * EIGHT)
                kept.keep(vector.extract(four, [], [half]), below, plus(column, number % columns * EIGHT))

    # ---- results ----------------------------------------------------------------------------------------------------

    def write(self, sums: Values) -> None:
        """Write the sums that are inside of the result."""
        in_group, group = divided(self.lane, 4)
        row = arith.addi(arith.addi(self.first_row, self.warp_row), group)
        column = arith.addi(arith.addi(self.first_column, self.warp_column), times(in_group, 2))
        columns = self.tile.n_fragments * 2
        for number, four in enumerate(sums):
            for half in range(2):
                below = plus(row, number // columns * FRAGMENT + half * EIGHT)
                for one in range(2):
                    self._write(four, (half, one), below, plus(column, number % columns * EIGHT + one))

    def _write(self, four: ir.Value, place: tuple[int, int], row: ir.Value, column: ir.Value) -> None:
        result, type_ = self.kernel.result, self.kernel.form.result.memory()
        inside = scf.IfOp(arith.andi(below(row, self.kernel.m), below(column, self.kernel.n)), [])
        with ir.InsertionPoint(inside.then_block):
            value = vector.extract(four, [], list(place))
            value = value if value.type == type_ else arith.truncf(type_, value)
            memref.store(value, result.memory, [result.place((*self.batch, row, column))])
            scf.yield_([])


def _start(matrix: Matrix, batch: Values) -> ir.Value:
    return matrix.place(batch) if batch else index_constant(0)


def _is_multiple(value: ir.Value, of: int) -> ir.Value:
    return arith.cmpi(arith.CmpIPredicate.eq, arith.remui(value, index_constant(of)), index_constant(0))
