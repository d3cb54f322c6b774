# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products by kernels of our own: any sizes, strides and number of batch axes, told at run time.

Those of f16, bf16 and 8-bit integers are in `tensor_product`. For all other types:

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
from shlo_disc.lowering_gpu.grid import THREADS, each_block, thread
from shlo_disc.lowering_gpu.index_math import below, divided, plus, times
from shlo_disc.lowering_gpu.kernel import pointer_type
from shlo_disc.lowering_gpu.product_epilogue import ChosenSums, Epilogue, EpilogueFrame
from shlo_disc.lowering_gpu.product_form import NUMBERS, NUMBERS_OF_AXIS, ProductForm, Told, indices_of
from shlo_disc.lowering_gpu.product_side import DEPTH, SIDE, TILE, Side
from shlo_disc.lowering_gpu.tensor_product import TensorKernel, takes_tensor_cores
from shlo_disc.shape_dialect.dialect.problems import MatrixProduct
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref, scf
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv


def tiles_of(problem: MatrixProduct) -> Expr:
    """The number of tiles of its result, over all matrices."""
    tiles = ceildiv(problem.m.size, TILE) * ceildiv(problem.n.size, TILE)
    for axis in problem.batch:
        tiles = tiles * axis.size
    return tiles


def build_fused_product(frame: EpilogueFrame) -> None:
    """The body of a product's kernel that does what follows as well, at the insertion point."""
    form = frame.form
    kernel = TensorKernel if takes_tensor_cores(form) else _Kernel
    kernel(frame.function, frame.told, form, frame).write()


def build_product(device: gpu.GPUModuleOp, form: ProductForm) -> gpu.GPUFuncOp:
    """The kernel at the end of a module. It is told two sides and a result, then `MatrixProduct.numbers`."""
    pointers = [pointer_type(e.memory()) for e in (form.element, form.element, form.result)]
    numbers = [ir.IndexType.get()] * (NUMBERS + NUMBERS_OF_AXIS * form.batch)
    with ir.InsertionPoint(device.regions[0].blocks[0]):
        type_ = ir.FunctionType.get([*pointers, *numbers], [])
        function = gpu.GPUFuncOp(type_, form.name, kernel=True, known_block_size=[THREADS, 1, 1])
    entry = function.add_entry_block()
    with ir.InsertionPoint(entry):
        kernel = TensorKernel if takes_tensor_cores(form) else _Kernel
        kernel(function, list(entry.arguments), form).write()
        gpu.ReturnOp([])
    return function


class _Kernel:
    """The body of a kernel, at the insertion point."""

    def __init__(
        self,
        function: gpu.GPUFuncOp,
        arguments: Sequence[ir.Value],
        form: ProductForm,
        frame: EpilogueFrame | None = None,
    ):
        self.form = form
        told = Told.of(arguments, form)
        self.epilogue = None if frame is None else Epilogue(frame, told.result, SIDE)
        self.batch, self.result = told.lhs.sizes[:-2], told.result
        by_k = (form.lhs == "mk", form.rhs == "nk")
        self.sides = [Side(function, i, side, form, by_k[i]) for i, side in enumerate((told.lhs, told.rhs))]
        across = index_constant(TILE // SIDE)
        self.places = [times(split(thread(), across), SIDE) for split in (arith.divui, arith.remui)]

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
        zeros = [zero_of(self.form.sums)] * SIDE**2
        loop = scf.ForOp(index_constant(0), self.sides[0].depth, index_constant(DEPTH), zeros)
        with ir.InsertionPoint(loop.body):
            pieces = [side.load(loop.induction_variable) for side in self.sides]
            gpu.barrier()  # behind it, nobody reads the pieces of the step before
            for side, piece in zip(self.sides, pieces, strict=True):
                side.keep(piece)
            gpu.barrier()
            scf.yield_(self._added(list(loop.inner_iter_args)))
        return list(loop.results)

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
            column, row = divided(number, SIDE // epilogue.width)
            row, column = arith.addi(first_row, row), arith.addi(first_column, times(column, epilogue.width))
            epilogue.take(matrix, row, column, chosen.at(number))
            return []

        counted(index_constant(0), index_constant(len(sums) // epilogue.width), index_constant(1), [], some)

    def _store(self, matrix: Sequence[ir.Value], firsts: Sequence[ir.Value], sums: Sequence[ir.Value]) -> None:
        """Write those of the sums that the result has."""
        starts = [arith.addi(first, place) for first, place in zip(firsts, self.places, strict=True)]
        indices = itertools.product(*([plus(start, i) for i in range(SIDE)] for start in starts))
        for (row, column), total in zip(indices, sums, strict=True):
            inside = arith.andi(below(row, self.sides[0].rows), below(column, self.sides[1].rows))
            branch = scf.IfOp(inside, [])
            with ir.InsertionPoint(branch.then_block):
                value = to_memory(convert(total, self.form.sums, self.form.result), self.form.result)
                memref.store(value, self.result.memory, [self.result.place((*matrix, row, column))])
                scf.yield_([])
