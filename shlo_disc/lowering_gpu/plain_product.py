# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of matrices by plain arithmetic, of any element type.

A block computes a tile of the result of one matrix at a time. It walks k in steps of DEPTH: its threads bring a piece
of either side to the memory of the block, in the type of the sums, and then each adds up SIDE x SIDE products from
there (the blocking of Volkov and Demmel, "Benchmarking GPUs to tune dense linear algebra"). Rows and columns beyond the
last are read as the last ones, and not written; beyond the end of k there are zeros on both sides.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from shlo_disc.lowering.index_rules.folds import multiply_add, zero_of
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu import nvgpu
from shlo_disc.lowering_gpu.block_loops import either
from shlo_disc.lowering_gpu.few_rows import FewRows, FewRowsKernel
from shlo_disc.lowering_gpu.grid import thread
from shlo_disc.lowering_gpu.index_math import below, times
from shlo_disc.lowering_gpu.index_math import parts as parts_of_size
from shlo_disc.lowering_gpu.kernel import shared_array
from shlo_disc.lowering_gpu.product_epilogue import EpilogueFrame
from shlo_disc.lowering_gpu.product_form import ProductForm, Told
from shlo_disc.lowering_gpu.product_parts import DepthParts
from shlo_disc.lowering_gpu.product_side import DEPTH, SIDE, TILE, Side
from shlo_disc.lowering_gpu.product_slices import FLAT, Sides, each_tile
from shlo_disc.lowering_gpu.thread_sums import Layout, ThreadSums
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, scf


class PlainKernel:
    """The body of a kernel, at the insertion point. Results of few rows have tiles of another form."""

    layout = Layout(SIDE, ((SIDE, 1, 0),))
    side_type: type[Side] = Side
    few_type: type[FewRowsKernel] = FewRows

    def __init__(
        self,
        function: gpu.GPUFuncOp,
        arguments: Sequence[ir.Value],
        form: ProductForm,
        frame: EpilogueFrame | None = None,
    ):
        nvgpu.load(function.context)
        self.form = form
        told = Told.of(arguments, form)
        self.parts, sides = DepthParts(function, told), Sides(form, told, arguments)
        sides.reserve_bytes(function, sides.flat)
        self.batch, self.thread_sums = told.lhs.sizes[:-2], ThreadSums(told.result, form, frame, self.layout)
        piece = self.side_type.elements(form)
        shared = shared_array(function, 0, max(2 * piece, sides.elements(sides.flat)), form.sums.register())
        self.few = self.few_type(sides, told.result, frame, shared, self.parts)
        by_k = (form.lhs == "mk", form.rhs == "nk")
        self.sides = [
            self.side_type(shared, i * piece, side, form, by_k[i], weight)
            for i, (side, weight) in enumerate(((told.lhs, None), (told.rhs, told.weight)))
        ]
        self.places = self._places()

    def _places(self) -> list[ir.Value]:
        """The row and the column of this thread in a tile."""
        across = index_constant(TILE // SIDE)
        return [times(split(thread(), across), SIDE) for split in (arith.divui, arith.remui)]

    def write(self) -> None:
        """All tiles, one block a tile, or a part of it, at a time."""
        rows, _ = (side.rows for side in self.sides)
        either(below(index_constant(FLAT.m), rows), self._write_tiles, self.few.write)

    def _write_tiles(self) -> None:
        counts = [parts_of_size(side.rows, TILE) for side in self.sides]
        each_tile([*self.batch, *counts], self.parts, self._tile)

    def _tile(self, indices: Sequence[ir.Value]) -> None:
        """One tile; from one to the next its place changes first along n, then along m, then over matrices."""
        *matrix, row, column = indices
        firsts = times(row, TILE), times(column, TILE)
        for side, first in zip(self.sides, firsts, strict=True):
            side.open(matrix, first)
        place = [arith.addi(first, own) for first, own in zip(firsts, self.places, strict=True)]
        self.parts.finish(self._sums(), lambda sums: self.thread_sums.write(matrix, place, sums))

    def _sums(self) -> list[ir.Value]:
        """This thread's sums, row by row."""
        loop = scf.ForOp(*self.parts.share(DEPTH), index_constant(DEPTH), self._zeros())
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
