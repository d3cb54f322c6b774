# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The consumers of the sums of `hopper_product`: they write them, or do what follows the product with them.

A thread of a warpgroup has, of each 8 columns of its warp's 16 rows, two neighbours in two rows that are 8 apart.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Protocol

from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu import hopper
from shlo_disc.lowering_gpu.block_loops import counted, either, when
from shlo_disc.lowering_gpu.grid import WARP, thread
from shlo_disc.lowering_gpu.hopper import FACTORS, WARPGROUP
from shlo_disc.lowering_gpu.hopper_ring import CONSUMERS, Place
from shlo_disc.lowering_gpu.index_math import below, divided, is_multiple_of, plus, times
from shlo_disc.lowering_gpu.kernel import shared_array
from shlo_disc.lowering_gpu.lanes import ACCESS_BYTES
from shlo_disc.lowering_gpu.product_epilogue import KeptSums, Sums
from shlo_disc.lowering_gpu.product_form import Matrix, ProductForm
from shlo_disc.shape_dialect.dialect.types import bytes_of
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref, vector

EIGHT = 8
"""Columns that a thread has two neighbours of; rows from one pair of a thread's to the next."""

ROWS = 16
"""Rows of a warp."""

SPAN = 32
"""Columns of a warp's rows that are in the memory of the block at a time."""

PITCH = SPAN + EIGHT
"""Sums from one row to the next there: the pairs of four rows are in different banks."""

KEPT_BYTES = 4 * CONSUMERS * WARPGROUP // WARP * ROWS * PITCH
"""Bytes for the sums of all warps that multiply."""


class Taker(Protocol):
    """A consumer of sums, `width` neighbours of a row at a time, of columns that begin at a multiple of them."""

    width: int

    def take(self, batch: Sequence[ir.Value], row: ir.Value, column: ir.Value, sums: Sums) -> None:
        """Do it from a row and a column of a matrix of the batch on, as far as the result has them."""


class ResultRows:
    """Rounds sums as the form says and writes them to the result: 16 bytes at a time where its rows begin at multiples
    of them."""

    def __init__(self, result: Matrix, form: ProductForm):
        self.result, self.type = result, form.result.memory()
        self.width = ACCESS_BYTES // bytes_of(self.type)
        address = memref.ExtractAlignedPointerAsIndexOp(result.memory).result
        strides = [is_multiple_of(stride, self.width) for stride in result.strides[:-1]]
        self.is_wide = functools.reduce(arith.andi, strides, is_multiple_of(address, ACCESS_BYTES))

    def take(self, batch: Sequence[ir.Value], row: ir.Value, column: ir.Value, sums: Sums) -> None:
        """Write `width` sums, as far as the result has them."""
        *_, m, n = self.result.sizes
        is_whole = arith.andi(self.is_wide, below(plus(column, self.width - 1), n))

        def together() -> None:
            place = self.result.place((*batch, row, column))
            vector.store(self._rounded(sums.together()), self.result.memory, [place], alignment=ACCESS_BYTES)

        def one(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            at = arith.addi(column, number)
            when(below(at, n), lambda: self._store(sums.one(number), (*batch, row, at)))
            return []

        def apart() -> None:
            counted(index_constant(0), index_constant(self.width), index_constant(1), [], one)

        when(below(row, m), lambda: either(is_whole, together, apart))

    def _store(self, value: ir.Value, place: Sequence[ir.Value]) -> None:
        memref.store(self._rounded(value), self.result.memory, [self.result.place(place)])

    def _rounded(self, value: ir.Value) -> ir.Value:
        is_vector = isinstance(value.type, ir.VectorType)
        type_ = ir.VectorType.get(ir.VectorType(value.type).shape, self.type) if is_vector else self.type
        return value if value.type == type_ else arith.truncf(type_, value)


class HandOver:
    """Hands the sums of warpgroups to a taker.

    They go through the memory of the block, where each warp has a part of its own, for SPAN columns at a time: so lanes
    take neighbours along rows, and the taker's code stands there once for many registers.
    """

    def __init__(self, function: gpu.GPUFuncOp, form: ProductForm, taker: Taker):
        self.taker, self.factors = taker, FACTORS[form.element.name]
        memory = shared_array(function, 0, KEPT_BYTES // 4, self.factors.sum_type)
        self.kept = KeptSums(memory, self.factors.sum_type, PITCH, taker.width)

    def write(self, sums: ir.Value, columns: int, place: Place) -> None:
        """Hand over those of a warpgroup, of 64 rows and so many columns from `place` on."""

        def some(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            hopper.meet_warp()  # behind it, no lane reads the sums of before
            for part in range(columns // SPAN):
                is_it = arith.cmpi(arith.CmpIPredicate.eq, number, index_constant(part))
                when(is_it, functools.partial(self._keep, sums, part))
            hopper.meet_warp()
            self._hand(place, times(number, SPAN))
            return []

        counted(index_constant(0), index_constant(columns // SPAN), index_constant(1), [], some)

    def _keep(self, sums: ir.Value, part: int) -> None:
        """This thread's sums of a part of the columns, pair by pair."""
        warp_of_all, _, pair, low = _position()
        first_row = arith.addi(times(warp_of_all, ROWS), low)
        type_ = ir.VectorType.get([2], self.factors.sum_type)
        for number in range(0, SPAN // 2, 2):
            row, column = of_number(number)
            two = [hopper.sum_at(sums, part * SPAN // 2 + number + one, self.factors) for one in range(2)]
            self.kept.keep(vector.from_elements(type_, two), plus(first_row, row), plus(pair, column))

    def _hand(self, place: Place, first_column: ir.Value) -> None:
        """Hand over the kept sums of this warp."""
        warp_of_all, warp, *_ = _position()
        lane, _ = divided(thread(), WARP)
        width = self.taker.width
        kept_row, first_row = times(warp_of_all, ROWS), arith.addi(place.row, times(warp, ROWS))

        def one(item: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            column, row = divided(item, SPAN // width)
            column = times(column, width)
            at = arith.addi(first_row, row), arith.addi(place.column, arith.addi(first_column, column))
            self.taker.take(place.batch, *at, self.kept.at(arith.addi(kept_row, row), column))
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


def of_number(number: int) -> tuple[int, int]:
    """The row and the column of a sum of a thread, from those of its first one on."""
    return EIGHT * (number // 2 % 2), EIGHT * (number // 4) + number % 2


__all__ = ["EIGHT", "KEPT_BYTES", "SPAN", "HandOver", "ResultRows", "of_number"]
