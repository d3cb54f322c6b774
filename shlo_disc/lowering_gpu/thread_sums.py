# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of a tile that are in the registers of threads, one by one: what becomes of them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from shlo_disc.lowering.element_types import convert, to_memory
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu.block_loops import counted, when
from shlo_disc.lowering_gpu.index_math import below, divided, plus, times
from shlo_disc.lowering_gpu.product_epilogue import ChosenSums, Epilogue, EpilogueFrame
from shlo_disc.lowering_gpu.product_form import Matrix, ProductForm
from shlo_disc.shape_dialect.mlir import arith, ir, memref


@dataclass(frozen=True)
class Layout:
    """The sums of a thread: groups of `neighbours` in a row.

    steps: how many groups there are, and the rows and columns from one to the next; then the same of what these groups
    are together, and so on.
    """

    neighbours: int
    steps: tuple[tuple[int, int, int], ...]

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """The row and the column of each sum behind the place of the thread."""
        found = []
        for numbers in itertools.product(*(range(count) for count, *_ in reversed(self.steps))):
            pairs = list(zip(numbers, reversed(self.steps), strict=True))
            row, column = (sum(number * step[axis] for number, step in pairs) for axis in (1, 2))
            found += [(row, column + one) for one in range(self.neighbours)]
        return found

    def place_of(self, group: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The row and the column of a group behind the place of the thread."""
        row = column = index_constant(0)
        for count, down, across in self.steps:
            number, group = divided(group, count)
            row, column = arith.addi(row, times(number, down)), arith.addi(column, times(number, across))
        return row, column


class ThreadSums:
    """Writes sums to the result, or does what follows with them."""

    def __init__(self, result: Matrix, form: ProductForm, frame: EpilogueFrame | None, layout: Layout):
        self.result, self.form, self.layout = result, form, layout
        self.epilogue = None if frame is None else Epilogue(frame, result, layout.neighbours)

    def write(self, matrix: Sequence[ir.Value], place: Sequence[ir.Value], sums: Sequence[ir.Value]) -> None:
        """Do it with sums in the order of the layout, which has the row and the column `place` as its first."""
        if self.epilogue is None:
            self._store(matrix, place, sums)
        else:
            self._follow(self.epilogue, matrix, place, sums)

    def _follow(
        self, epilogue: Epilogue, matrix: Sequence[ir.Value], place: Sequence[ir.Value], sums: Sequence[ir.Value]
    ) -> None:
        """Do what follows, with so many neighbours of a row at a time as the epilogue takes."""
        chosen = ChosenSums(sums, epilogue.width)

        def some(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            rest, group = divided(number, self.layout.neighbours // epilogue.width)
            row, column = map(arith.addi, place, self.layout.place_of(group))
            epilogue.take(matrix, row, arith.addi(column, times(rest, epilogue.width)), chosen.at(number))
            return []

        counted(index_constant(0), index_constant(len(sums) // epilogue.width), index_constant(1), [], some)

    def _store(self, matrix: Sequence[ir.Value], place: Sequence[ir.Value], sums: Sequence[ir.Value]) -> None:
        """Write those of the sums that the result has."""
        *_, rows, columns = self.result.sizes
        for offset, total in zip(self.layout.offsets, sums, strict=True):
            row, column = map(plus, place, offset)
            inside = arith.andi(below(row, rows), below(column, columns))
            when(inside, functools.partial(self._store_one, (*matrix, row, column), total))

    def _store_one(self, at: Sequence[ir.Value], total: ir.Value) -> None:
        value = to_memory(convert(total, self.form.sums, self.form.result), self.form.result)
        memref.store(value, self.result.memory, [self.result.place(at)])


__all__ = ["Layout", "ThreadSums"]
