# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of f16, bf16 or 8-bit integer matrices on tensor cores, for sizes that are told at run time.

A block computes a tile of the result. Warps read the slices of both sides (`product_slices`) as fragments (`ldmatrix`)
and add them up in 32 bits (`mma.sync`), as in NVIDIA's CUTLASS. How large tiles are is chosen by the sizes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from shlo_disc.lowering.elements import splat_constant
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu import nvgpu
from shlo_disc.lowering_gpu.block_loops import each_item, either
from shlo_disc.lowering_gpu.index_math import below, divided, parts, plus, times
from shlo_disc.lowering_gpu.kernel import shared_array
from shlo_disc.lowering_gpu.product_epilogue import Epilogue, EpilogueFrame, KeptSums
from shlo_disc.lowering_gpu.product_form import ProductForm, Told
from shlo_disc.lowering_gpu.product_parts import DepthParts
from shlo_disc.lowering_gpu.product_slices import (
    FLAT,
    FRAGMENT,
    FRAGMENT_BYTES,
    Sides,
    Slice,
    Tile,
    TileOfResult,
    Values,
    each_tile,
)
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref, scf, vector

EIGHT = 8
"""Rows of a matrix of `ldmatrix`, and columns of one of sums."""

BLOCKS = 2
"""Blocks that a multiprocessor is to have room for, so that one multiplies while another does what follows."""

PROCESSORS = 128
"""About as many multiprocessors as larger GPUs have: fewer tiles than that leave some idle."""

LARGE, SMALL = Tile(128, 128, 2, 4), Tile(64, 64, 2, 4)
"""Many products of few bytes; enough blocks for a smaller result."""


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
        self.form, self.sum_type = form, form.sums.register()
        told = Told.of(arguments, form)
        self.result, self.parts = told.result, DepthParts(function, told)
        self.whole = DepthParts(function, replace(told, memory=None, parts=None))
        self.sides = Sides(form, told, arguments)
        self.tile_forms = [self.sides.flat, SMALL]
        if form.narrow is None:  # many rows by a narrow side are a library's
            self.tile_forms.append(LARGE)
        elements = self.sides.elements(*self.tile_forms)
        self.sides.reserve_bytes(function, *self.tile_forms)
        self.shared = shared_array(function, 0, elements, self.sides.element)
        self.shared_bytes = elements * self.sides.bytes
        *self.batch, self.m, self.n = self.result.sizes
        self.epilogue = None if frame is None else Epilogue(frame, self.result, EIGHT)
        if frame is not None:
            word = ir.IntegerType.get_signless(32)
            function.attributes["nvvm.minctasm"] = ir.IntegerAttr.get(word, BLOCKS)

    # ---- choices ----------------------------------------------------------------------------------------------------

    def write(self) -> None:
        """All tiles of the result, in the version that suits sizes and addresses."""
        few_rows = arith.cmpi(arith.CmpIPredicate.ule, self.m, index_constant(FLAT.m))
        many = arith.cmpi(arith.CmpIPredicate.uge, self.count(self.tiles(LARGE)), index_constant(PROCESSORS))
        aligned = self.sides.is_aligned()
        if self.parts.whole is not None:
            many = arith.andi(many, self.parts.whole)
        tile = self.sides.flat
        flat = partial(either, aligned, self.with_tile(tile, True), self.with_tile(tile, False))
        by_copies = self.with_tile(SMALL, True)
        if LARGE in self.tile_forms:
            by_copies = partial(either, many, self.with_tile(LARGE, True), by_copies)
        either(few_rows, flat, partial(either, aligned, by_copies, self.with_tile(SMALL, False)))

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
            parts_of_tile = self.parts_of(tile)
            each_tile(self.tiles(tile), parts_of_tile, lambda place: _Fragments(self, tile, aligned, place).emit())

        return version

    def parts_of(self, tile: Tile) -> DepthParts:
        """The parts of the depth: many large tiles are whole."""
        return self.whole if tile == LARGE else self.parts


class _Fragments(TileOfResult):
    """The work on one tile by one block, whose warps have fragments of it."""

    def __init__(self, kernel: TensorKernel, tile: Tile, aligned: bool, place: Values):
        super().__init__(kernel.sides, kernel.shared, tile, aligned, place, kernel.parts_of(tile))
        self.kernel = kernel
        column_warp, self.row_warp = divided(self.warp, tile.n_warps)
        self.warp_row = times(self.row_warp, tile.m // tile.m_warps)
        self.warp_column = times(column_warp, tile.n // tile.n_warps)

    def emit(self) -> None:
        """Add up slice after slice, and write the sums."""
        zero = splat_constant(ir.VectorType.get([2, 2], self.kernel.sum_type))
        count = self.tile.m_fragments * self.tile.n_fragments * 2
        sums = self.walk([zero] * count, self.multiply)
        epilogue = self.kernel.epilogue
        self.depth_parts.finish(sums, self.write if epilogue is None else functools.partial(self.follow, epilogue))
        gpu.barrier()

    # ---- sums -------------------------------------------------------------------------------------------------------

    def multiply(self, base: ir.Value, sums: Values) -> Values:
        """Add what a stage has, whose elements begin at `base`."""
        lhs, rhs = self.slices
        for depth in range(0, self.sides.depth_of(self.tile), FRAGMENT_BYTES // self.sides.bytes):
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
        type_ = ir.VectorType.get([2, 4 // self.sides.bytes], self.sides.element)
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
        at = arith.addi(arith.addi(slice_.first(base), inner), times(outer, slice_.row))
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
