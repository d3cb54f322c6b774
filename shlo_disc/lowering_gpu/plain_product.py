# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of matrices by plain arithmetic, of any element type.

A block computes a tile of the result of one matrix at a time. It walks k in steps of DEPTH: its threads bring a piece
of either side to the memory of the block, in the type of the sums, and then each adds up SIDE x SIDE products from
there (the blocking of Volkov and Demmel, "Benchmarking GPUs to tune dense linear algebra"). Rows and columns beyond the
last are read as the last ones, and not written; beyond the end of k there are zeros on both sides.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

from shlo_disc.lowering.element_types import convert, to_memory
from shlo_disc.lowering.index_rules.folds import multiply_add, zero_of
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu.block_loops import counted
from shlo_disc.lowering_gpu.grid import each_block, thread
from shlo_disc.lowering_gpu.index_math import below, divided, plus, times
from shlo_disc.lowering_gpu.product_epilogue import ChosenSums, Epilogue, EpilogueFrame
from shlo_disc.lowering_gpu.product_form import Matrix, ProductForm, Told, indices_of
from shlo_disc.lowering_gpu.product_side import DEPTH, SIDE, TILE, Side
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref, scf


class PlainKernel:
    """The body of a kernel, at the insertion point.

    neighbours: sums of a thread that are neighbours in a row. offsets: of each sum, its row and column behind the place
    of the thread.
    """

    neighbours = SIDE
    offsets = tuple(itertools.product(range(SIDE), repeat=2))

    def __init__(
        self,
        function: gpu.GPUFuncOp,
        arguments: Sequence[ir.Value],
        form: ProductForm,
        frame: EpilogueFrame | None = None,
    ):
        self.form = form
        told = Told.of(arguments, form)
        self.epilogue = None if frame is None else Epilogue(frame, told.result, self.neighbours)
        self.batch, self.result = told.lhs.sizes[:-2], told.result
        by_k = (form.lhs == "mk", form.rhs == "nk")
        self.sides = [self._side(function, i, side, by_k[i]) for i, side in enumerate((told.lhs, told.rhs))]
        self.places = self._places()

    def _side(self, function: gpu.GPUFuncOp, number: int, matrix: Matrix, along_k: bool) -> Side:
        return Side(function, number, matrix, self.form, along_k)

    def _places(self) -> list[ir.Value]:
        """The row and the column of this thread in a tile."""
        across = index_constant(TILE // SIDE)
        return [times(split(thread(), across), SIDE) for split in (arith.divui, arith.remui)]

    def write(self) -> None:
        """All tiles, one block a tile at a time."""
        counts = [arith.divui(plus(side.rows, TILE - 1), index_constant(TILE)) for side in self.sides]
        each_block(functools.reduce(arith.muli, [*self.batch, *counts]), lambda tile: self._tile(tile, counts))

    def _tile(self, tile: ir.Value, counts: Sequence[ir.Value]) -> None:
        """One tile; from one to the next its place changes first along n, then along m, then over matrices."""
        *matrix, row, column = indices_of(tile, [*self.batch, *counts])
        firsts = times(row, TILE), times(column, TILE)
        for side, first in zip(self.sides, firsts, strict=True):
            side.open(matrix, first)
        finish = self._store if self.epilogue is None else functools.partial(self._follow, self.epilogue)
        finish(matrix, firsts, self._sums())

    def _sums(self) -> list[ir.Value]:
        """This thread's sums, row by row."""
        zeros = self._zeros()
        loop = scf.ForOp(index_constant(0), self.sides[0].depth, index_constant(DEPTH), zeros)
        with ir.InsertionPoint(loop.body):
            pieces = [side.load(loop.induction_variable) for side in self.sides]
            gpu.barrier()  # behind it, nobody reads the pieces of the step before
            for side, piece in zip(self.sides, pieces, strict=True):
                side.keep(piece)
            gpu.barrier()
            scf.yield_(self._added(list(loop.inner_iter_args)))
        return list(loop.results)

    def _zeros(self) -> list[ir.Value]:
        return [zero_of(self.form.sums)] * SIDE**2

    def _added(self, sums: list[ir.Value]) -> list[ir.Value]:
        """The sums with the products of a piece."""
        for depth in range(DEPTH):
            factors = [side.factors(depth, place) for side, place in zip(self.sides, self.places, strict=True)]
            pairs = zip(itertools.product(*factors), sums, strict=True)
            sums = [multiply_add(a, b, total, self.form.sums) for (a, b), total in pairs]
        return sums

    def _follow(
        self, epilogue: Epilogue, matrix: Sequence[ir.Value], firsts: Sequence[ir.Value], sums: list[ir.Value]
    ) -> None:
        """Do what follows, with so many neighbours of a row at a time as the epilogue takes."""
        first_row, first_column = (arith.addi(first, place) for first, place in zip(firsts, self.places, strict=True))
        chosen = ChosenSums(sums, epilogue.width)

        def some(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            rest, group = divided(number, self.neighbours // epilogue.width)
            row, column = self._offset_of(group)
            column = arith.addi(column, times(rest, epilogue.width))
            epilogue.take(matrix, arith.addi(first_row, row), arith.addi(first_column, column), chosen.at(number))
            return []

        counted(index_constant(0), index_constant(len(sums) // epilogue.width), index_constant(1), [], some)

    def _offset_of(self, group: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The entry of `offsets` of the first of some neighbours."""
        return group, index_constant(0)

    def _store(self, matrix: Sequence[ir.Value], firsts: Sequence[ir.Value], sums: Sequence[ir.Value]) -> None:
        """Write those of the sums that the result has."""
        starts = [arith.addi(first, place) for first, place in zip(firsts, self.places, strict=True)]
        for offset, total in zip(self.offsets, sums, strict=True):
            row, column = map(plus, starts, offset)
            inside = arith.andi(below(row, self.sides[0].rows), below(column, self.sides[1].rows))
            branch = scf.IfOp(inside, [])
            with ir.InsertionPoint(branch.then_block):
                value = to_memory(convert(total, self.form.sums, self.form.result), self.form.result)
                memref.store(value, self.result.memory, [self.result.place((*matrix, row, column))])
                scf.yield_([])
