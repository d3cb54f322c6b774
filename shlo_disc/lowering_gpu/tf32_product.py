# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of f32 matrices by the TF32 instructions of tensor cores, in one pass or in three.

Tiles and their pieces in shared memory are those of `plain_product`; a warp multiplies 16 rows by 32 columns of a tile
with `mma.sync`. Elements are rounded once, where they are brought (`tf32`).
"""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.lowering.elements import splat_constant
from shlo_disc.lowering_gpu.few_rows import FewRowsByTf32, FewRowsKernel
from shlo_disc.lowering_gpu.grid import WARP, thread
from shlo_disc.lowering_gpu.index_math import divided, plus, times
from shlo_disc.lowering_gpu.narrow_weight import WeightElements
from shlo_disc.lowering_gpu.plain_product import PlainKernel
from shlo_disc.lowering_gpu.product_form import Matrix, ProductForm
from shlo_disc.lowering_gpu.product_side import DEPTH, TILE, Side
from shlo_disc.lowering_gpu.tf32 import in_parts, joined, kinds_of, multiply_add
from shlo_disc.lowering_gpu.thread_sums import Layout
from shlo_disc.shape_dialect.mlir import arith, ir, memref, vector

ROWS, COLUMNS, STEP = 16, 8, 8
"""Rows and columns of one `mma.sync`, and its elements along the depth."""

WARP_COLUMNS = 32
"""Columns of a tile that a warp has."""


class _Tf32Side(Side):
    """A side whose pieces have one part in TF32, or two."""

    pitch = TILE + 8
    """Four neighbours along k by eight rows, which a fragment reads, are in different banks."""

    @classmethod
    def elements(cls, form: ProductForm) -> int:
        """The elements of a piece in the memory of the block."""
        return super().elements(form) * kinds_of(form.precision)

    def __init__(
        self,
        memory: ir.Value,
        start: int,
        matrix: Matrix,
        form: ProductForm,
        along_k: bool,
        weight: WeightElements | None = None,
    ):
        super().__init__(memory, start, matrix, form, along_k, weight)
        self.parts = range(0, self.elements(form), DEPTH * self.pitch)

    def keep(self, values: Sequence[ir.Value]) -> None:
        """Write this thread's elements, rounded or in two parts, to the memory of the block."""
        for value, slot in zip(values, self.slots, strict=True):
            for start, part in zip(self.parts, in_parts(value, self.form.precision), strict=True):
                memref.store(part, self.piece, [plus(slot, start)])

    def fragments(self, place: ir.Value, rows: int) -> list[ir.Value]:
        """The fragments, one of each part, of `rows` rows and STEP elements along k, of which this lane's first is at
        `place`."""
        at = [k * self.pitch + row for k in (0, STEP // 2) for row in range(0, rows, COLUMNS)]
        type_, place = ir.VectorType.get([len(at), 1], self.form.sums.register()), plus(place, self.start)
        return [
            vector.from_elements(type_, [memref.load(self.piece, [plus(place, start + one)]) for one in at])
            for start in self.parts
        ]


class Tf32Kernel(PlainKernel):
    """The body of a kernel, at the insertion point. Fragments are laid out as `nvgpu` describes."""

    layout = Layout(2, ((2, COLUMNS, 0), (WARP_COLUMNS // COLUMNS, 0, COLUMNS)))
    side_type: type[Side] = _Tf32Side
    few_type: type[FewRowsKernel] = FewRowsByTf32

    def _places(self) -> list[ir.Value]:
        lane, warp = divided(thread(), WARP)
        near, far = divided(lane, 4)
        across, down = divided(warp, TILE // WARP_COLUMNS)
        first_row, first_column = times(down, ROWS), times(across, WARP_COLUMNS)
        depth = times(near, _Tf32Side.pitch)
        self.fragment_places = [arith.addi(depth, arith.addi(first, far)) for first in (first_row, first_column)]
        return [arith.addi(first_row, far), arith.addi(first_column, times(near, 2))]

    def _zeros(self) -> list[ir.Value]:
        zero = splat_constant(ir.VectorType.get([2, 2], self.form.sums.register()))
        return [zero] * (WARP_COLUMNS // COLUMNS * kinds_of(self.form.precision))

    def _added(self, sums: list[ir.Value]) -> list[ir.Value]:
        """The sums, large ones first, with the products of a piece."""
        sums = list(sums)
        lhs_side, rhs_side = (side for side in self.sides if isinstance(side, _Tf32Side))
        for depth in range(0, DEPTH, STEP):
            left, right = (plus(place, depth * _Tf32Side.pitch) for place in self.fragment_places)
            lhs = lhs_side.fragments(left, ROWS)
            for tile in range(WARP_COLUMNS // COLUMNS):
                rhs = rhs_side.fragments(plus(right, tile * COLUMNS), COLUMNS)
                multiply_add(lhs, rhs, sums, tile, self.form.precision)
        return sums

    def _sums(self) -> list[ir.Value]:
        """This thread's sums, in the order of the layout."""
        return joined(super()._sums(), self.form.precision)


__all__ = ["Tf32Kernel"]
