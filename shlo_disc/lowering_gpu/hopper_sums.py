# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What becomes of the sums of `hopper_product`: they are written, or handed to what follows the product.

A thread of a warpgroup has, of each 8 columns of its warp's 16 rows, two neighbours in two rows that are 8 apart.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu import hopper
from shlo_disc.lowering_gpu.block_loops import counted, when
from shlo_disc.lowering_gpu.grid import WARP, thread
from shlo_disc.lowering_gpu.hopper import FACTORS, WARPGROUP
from shlo_disc.lowering_gpu.hopper_ring import CONSUMERS, Place
from shlo_disc.lowering_gpu.index_math import below, divided, plus, times
from shlo_disc.lowering_gpu.kernel import shared_array
from shlo_disc.lowering_gpu.product_epilogue import Epilogue, EpilogueFrame, KeptSums
from shlo_disc.lowering_gpu.product_form import Matrix, ProductForm
from shlo_disc.mlir import arith, ir, memref, vector

EIGHT = 8
"""Columns that a thread has two neighbours of; rows from one pair of a thread's to the next."""

ROWS = 16
"""Of a warp."""

SPAN = 32
"""Columns of a warp's rows that are in the memory of the block at a time."""

PITCH = SPAN + EIGHT
"""Sums from one row to the next there: the pairs of four rows are in different banks."""

KEPT_BYTES = 4 * CONSUMERS * WARPGROUP // WARP * ROWS * PITCH
"""Of all warps that multiply."""


class SumsWriter:
    """Rounds sums as the form says and writes them to the result."""

    def __init__(self, result: Matrix, form: ProductForm):
        self.result, self.type = result, form.result.memory()
        self.factors = FACTORS[form.element.name]
        *_, self.m, self.n = result.sizes

    def write(self, sums: ir.Value, columns: int, place: Place) -> None:
        """Write those sums of a warpgroup, of 64 rows and so many columns from `place` on, that the result has."""
        _, warp, pair, low = _position()
        first_row, first_column = (
            arith.addi(place.row, arith.addi(times(warp, ROWS), low)),
            arith.addi(place.column, pair),
        )
        for number in range(columns // 2):
            row, column = _of_number(number)
            at = (plus(first_row, row), plus(first_column, column))
            self._write(hopper.sum_at(sums, number, self.factors), place.batch, *at)

    def _write(self, value: ir.Value, batch: Sequence[ir.Value], row: ir.Value, column: ir.Value) -> None:
        def store() -> None:
            rounded = value if value.type == self.type else arith.truncf(self.type, value)
            memref.store(rounded, self.result.memory, [self.result.place((*batch, row, column))])

        when(arith.andi(below(row, self.m), below(column, self.n)), store)


class SumsFollower:
    """Hands sums to what follows the product.

    They go through the memory of the block, where each warp has a part of its own, for SPAN columns at a time: so lanes
    take neighbours along rows, and the code of the epilogue stands there once for many registers.
    """

    def __init__(self, result: Matrix, form: ProductForm, frame: EpilogueFrame):
        self.epilogue = Epilogue(frame, result, EIGHT)
        self.factors = FACTORS[form.element.name]
        memory = shared_array(frame.function, 0, KEPT_BYTES // 4, self.factors.sum_type)
        self.kept = KeptSums(memory, self.factors.sum_type, PITCH, self.epilogue.width)

    def write(self, sums: ir.Value, columns: int, place: Place) -> None:
        """Do it with the sums of a warpgroup, of 64 rows and so many columns from `place` on, that the result has."""

        def some(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            hopper.meet_warp()  # behind it, no lane reads the sums of before
            for part in range(columns // SPAN):
                is_it = arith.cmpi(arith.CmpIPredicate.eq, number, index_constant(part))
                when(is_it, functools.partial(self._keep, sums, part))
            hopper.meet_warp()
            self._follow(place, times(number, SPAN))
            return []

        counted(index_constant(0), index_constant(columns // SPAN), index_constant(1), [], some)

    def _keep(self, sums: ir.Value, part: int) -> None:
        """This thread's sums of a part of the columns, pair by pair."""
        warp_of_all, _, pair, low = _position()
        first_row = arith.addi(times(warp_of_all, ROWS), low)
        type_ = ir.VectorType.get([2], self.factors.sum_type)
        for number in range(0, SPAN // 2, 2):
            row, column = _of_number(number)
            two = [hopper.sum_at(sums, part * SPAN // 2 + number + one, self.factors) for one in range(2)]
            self.kept.keep(vector.from_elements(type_, two), plus(first_row, row), plus(pair, column))

    def _follow(self, place: Place, first_column: ir.Value) -> None:
        """Do it with the kept sums of this warp."""
        warp_of_all, warp, *_ = _position()
        lane, _ = divided(thread(), WARP)
        width = self.epilogue.width
        kept_row, first_row = times(warp_of_all, ROWS), arith.addi(place.row, times(warp, ROWS))

        def one(item: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            column, row = divided(item, SPAN // width)
            column = times(column, width)
            at = arith.addi(first_row, row), arith.addi(place.column, arith.addi(first_column, column))
            self.epilogue.take(place.batch, *at, self.kept.at(arith.addi(kept_row, row), column))
            return []

        counted(lane, index_constant(ROWS * SPAN // width), index_constant(WARP), [], one)


def _position() -> tuple[ir.Value, ir.Value, ir.Value, ir.Value]:
    """The number of this warp among all that multiply, and in its warpgroup; the first column of this thread's pairs,
    and their first row."""
    lane, warp = divided(thread(), WARP)
    in_four, low = divided(lane, 4)
    of_all = arith.subi(warp, index_constant(WARPGROUP // WARP))
    in_group, _ = divided(of_all, WARPGROUP // WARP)
    return of_all, in_group, times(in_four, 2), low


def _of_number(number: int) -> tuple[int, int]:
    """The row and the column of a sum of a thread, from those of its first one on."""
    return EIGHT * (number // 2 % 2), EIGHT * (number // 4) + number % 2


__all__ = ["KEPT_BYTES", "SumsFollower", "SumsWriter"]
