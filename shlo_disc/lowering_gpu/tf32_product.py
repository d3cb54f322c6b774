# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of f32 matrices by the TF32 instructions of tensor cores, in one pass or in three.

Tiles and their pieces in shared memory are those of `plain_product`; a warp multiplies 16 rows by 32 columns of a tile
with `mma.sync`. Elements are rounded once, where they are brought, to the nearest number of 11 bits.

Three passes (3xTF32) follow NVIDIA's CUTLASS (`OpMultiplyAddFastF32`) and XLA's `TF32_TF32_F32_X3`: each side is the
sum of two numbers of TF32, a = hi + lo, and a b = lo hi + hi lo + hi hi, without lo lo, which is 2^-22 of a b. The two
small terms have sums of their own, which are added at the end. Small sums that are not finite are left out, as in XLA:
there the large sum has the value, and an infinite hi times a lo of 0 would make it NaN.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from shlo_disc.lowering.element_types import constant_like
from shlo_disc.lowering.elements import splat_constant
from shlo_disc.lowering_gpu import nvgpu
from shlo_disc.lowering_gpu.grid import WARP, thread
from shlo_disc.lowering_gpu.index_math import divided, plus, times
from shlo_disc.lowering_gpu.kernel import shared_array
from shlo_disc.lowering_gpu.plain_product import PlainKernel
from shlo_disc.lowering_gpu.product_form import Matrix, ProductForm
from shlo_disc.lowering_gpu.product_side import DEPTH, TILE, Side
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref, vector

ROWS, COLUMNS, STEP = 16, 8, 8
"""Rows and columns of one `mma.sync`, and its elements along the depth."""

WARP_COLUMNS = 32
"""Columns of a tile that a warp has."""

_PASSES = {"tf32": ((0, 0),), "tf32x3": ((0, 0), (1, 0), (0, 1))}
"""By precision: the parts of both sides whose products are added up, 0 for hi and 1 for lo."""

_DROPPED = 13
"""Bits of an f32 that are not in TF32."""

_INFINITY, _QUIET = 0x7F800000, 0x00400000
_LARGEST = 0x7F7FF000
"""The least bits that would be rounded to infinity."""


def round_to_tf32(value: ir.Value) -> ir.Value:
    """The nearest number of TF32, ties away from 0 as `cvt.rna.tf32.f32` has them.

    Finite values stay finite: those beyond the largest one are cut. A NaN stays one.
    """
    bits = arith.bitcast(ir.IntegerType.get_signless(32), value)
    magnitude = arith.andi(bits, constant_like(bits, 0x7FFFFFFF))
    rounds = arith.cmpi(arith.CmpIPredicate.ult, magnitude, constant_like(bits, _LARGEST))
    upwards = arith.addi(bits, constant_like(bits, 1 << (_DROPPED - 1)))
    cut = arith.andi(arith.select(rounds, upwards, bits), constant_like(bits, -(1 << _DROPPED)))
    is_nan = arith.cmpi(arith.CmpIPredicate.ugt, magnitude, constant_like(bits, _INFINITY))
    return arith.bitcast(value.type, arith.select(is_nan, arith.ori(cut, constant_like(bits, _QUIET)), cut))


def _is_finite(value: ir.Value) -> ir.Value:
    bits = arith.bitcast(ir.IntegerType.get_signless(32), value)
    exponent = arith.andi(bits, constant_like(bits, _INFINITY))
    return arith.cmpi(arith.CmpIPredicate.ne, exponent, constant_like(bits, _INFINITY))


def _finite_or_zero(value: ir.Value) -> ir.Value:
    return arith.select(_is_finite(value), value, constant_like(value, 0))


class _Tf32Side(Side):
    """A side whose pieces have one part in TF32, or two."""

    pitch = TILE + 8
    """Four neighbours along k by eight rows, which a fragment reads, are in different banks."""

    def __init__(self, function: gpu.GPUFuncOp, number: int, matrix: Matrix, form: ProductForm, along_k: bool):
        super().__init__(function, number, matrix, form, along_k)
        self.parts = [self.piece]
        if form.precision == "tf32x3":
            self.parts.append(shared_array(function, number + 2, DEPTH * self.pitch, form.sums.register()))

    def keep(self, values: Sequence[ir.Value]) -> None:
        """Write this thread's elements, rounded or in two parts, to the memory of the block."""
        for value, slot in zip(values, self.slots, strict=True):
            high = round_to_tf32(value)
            memref.store(high, self.parts[0], [slot])
            if len(self.parts) > 1:
                memref.store(round_to_tf32(_finite_or_zero(arith.subf(value, high))), self.parts[1], [slot])

    def fragments(self, place: ir.Value, rows: int) -> list[ir.Value]:
        """The fragments, one of each part, of `rows` rows and STEP elements along k, of which this lane's first is at
        `place`."""
        at = [plus(place, k * self.pitch + row) for k in (0, STEP // 2) for row in range(0, rows, COLUMNS)]
        type_ = ir.VectorType.get([len(at), 1], self.form.sums.register())
        return [vector.from_elements(type_, [memref.load(part, [one]) for one in at]) for part in self.parts]


class Tf32Kernel(PlainKernel):
    """The body of a kernel, at the insertion point. Fragments are laid out as `nvgpu` describes."""

    neighbours = 2
    offsets = tuple(
        (half * COLUMNS, tile * COLUMNS + one)
        for tile, half, one in itertools.product(range(WARP_COLUMNS // COLUMNS), range(2), range(2))
    )

    def _side(self, function: gpu.GPUFuncOp, number: int, matrix: Matrix, along_k: bool) -> Side:
        nvgpu.load(function.context)
        return _Tf32Side(function, number, matrix, self.form, along_k)

    def _places(self) -> list[ir.Value]:
        lane, warp = divided(thread(), WARP)
        near, far = divided(lane, 4)
        across, down = divided(warp, TILE // WARP_COLUMNS)
        first_row, first_column = times(down, ROWS), times(across, WARP_COLUMNS)
        depth = times(near, _Tf32Side.pitch)
        self.fragment_places = [arith.addi(depth, arith.addi(first, far)) for first in (first_row, first_column)]
        return [arith.addi(first_row, far), arith.addi(first_column, times(near, 2))]

    def _offset_of(self, group: ir.Value) -> tuple[ir.Value, ir.Value]:
        half, tile = divided(group, 2)
        return times(half, COLUMNS), times(tile, COLUMNS)

    def _zeros(self) -> list[ir.Value]:
        zero = splat_constant(ir.VectorType.get([2, 2], self.form.sums.register()))
        return [zero] * (WARP_COLUMNS // COLUMNS * self._kinds)

    @property
    def _kinds(self) -> int:
        """Sums of each result: that of large terms, and that of small ones."""
        return min(2, len(_PASSES[self.form.precision]))

    def _added(self, sums: list[ir.Value]) -> list[ir.Value]:
        """The sums, large ones first, with the products of a piece."""
        tiles, passes = WARP_COLUMNS // COLUMNS, _PASSES[self.form.precision]
        sums = list(sums)
        lhs_side, rhs_side = (side for side in self.sides if isinstance(side, _Tf32Side))
        for depth in range(0, DEPTH, STEP):
            left, right = (plus(place, depth * _Tf32Side.pitch) for place in self.fragment_places)
            lhs = lhs_side.fragments(left, ROWS)
            for tile in range(tiles):
                rhs = rhs_side.fragments(plus(right, tile * COLUMNS), COLUMNS)
                for a, b in passes:
                    number = tile + tiles * min(1, a + b)
                    sums[number] = nvgpu.multiply_add_tf32(lhs[a], rhs[b], sums[number])
        return sums

    def _sums(self) -> list[ir.Value]:
        """This thread's sums, in the order of `offsets`."""
        found, tiles = super()._sums(), WARP_COLUMNS // COLUMNS
        large, small = ([self._numbers(v) for v in some] for some in (found[:tiles], found[tiles:]))
        if not small:
            return list(itertools.chain(*large))
        pairs = zip(itertools.chain(*large), itertools.chain(*small), strict=True)
        return [arith.addf(_finite_or_zero(less), more) for more, less in pairs]

    @staticmethod
    def _numbers(fragment: ir.Value) -> list[ir.Value]:
        return [vector.extract(fragment, [], [i, j]) for i in range(2) for j in range(2)]


__all__ = ["Tf32Kernel", "round_to_tf32"]
