# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A side of a product on plain arithmetic: the pieces of it that go through the memory of a block."""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.lowering.element_types import Element, constant_like, convert, from_memory
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu.grid import THREADS, thread
from shlo_disc.lowering_gpu.index_math import below, plus, times
from shlo_disc.lowering_gpu.narrow_weight import WeightElements
from shlo_disc.lowering_gpu.product_form import Matrix, ProductForm
from shlo_disc.shape_dialect.mlir import arith, ir, memref

TILE = 64
"""Rows, and columns, of the result that a block computes at a time."""

DEPTH = 16
"""Elements along k that are in the memory of the block at a time."""

SIDE = 4
"""Rows, and columns, of a thread."""

PITCH = TILE + SIDE
"""Elements from one k to the next: neighbours along k are in different banks."""


class Side:
    """A side, and the piece of it that is in the memory of the block.

    Each thread brings SIDE elements of a piece, neighbours in memory by neighbours: those along k where `along_k`, else
    those of different rows. memory, start: of the block, and where the piece begins there. pitch: elements from one k
    to the next. weight: the elements of a side of narrow integers.
    """

    pitch = PITCH

    @classmethod
    def elements(cls, form: ProductForm) -> int:
        """The elements of a piece in the memory of the block."""
        return DEPTH * cls.pitch

    def __init__(
        self,
        memory: ir.Value,
        start: int,
        matrix: Matrix,
        form: ProductForm,
        along_k: bool,
        weight: WeightElements | None = None,
    ):
        self.matrix, self.form, self.weight = matrix, form, weight
        *_, self.rows, self.depth = matrix.sizes
        self.piece, self.start = memory, start
        width = index_constant(DEPTH if along_k else TILE)
        near, far = arith.remui(thread(), width), arith.divui(thread(), width)
        together = [near] * SIDE
        apart = [plus(far, THREADS // (DEPTH if along_k else TILE) * i) for i in range(SIDE)]
        self.own_depths: list[ir.Value] = together if along_k else apart
        self.own_rows: list[ir.Value] = apart if along_k else together
        pairs = zip(self.own_depths, self.own_rows, strict=True)
        self.slots = [plus(arith.addi(times(depth, self.pitch), row), start) for depth, row in pairs]

    def open(self, matrix: Sequence[ir.Value], first: ir.Value) -> None:
        """Go to the rows from `first` of a matrix of the batch."""
        last = arith.subi(self.rows, index_constant(1))
        rows = [arith.minui(arith.addi(first, row), last) for row in self.own_rows]
        self.starts = rows if self.weight is not None else [self.matrix.place((*matrix, row)) for row in rows]

    def load(self, first: ir.Value) -> list[ir.Value]:
        """This thread's elements of the piece from `first` along k."""
        pairs = zip(self.starts, self.own_depths, strict=True)
        return [self._element(start, arith.addi(first, depth)) for start, depth in pairs]

    def _element(self, start: ir.Value, k: ir.Value) -> ir.Value:
        inside = arith.minui(k, arith.subi(self.depth, index_constant(1)))
        if self.weight is not None:
            value = self.weight.at(inside, start)
        else:
            place = arith.addi(start, arith.muli(inside, self.matrix.strides[-1]))
            element = self.form.element
            value = from_memory(memref.load(self.matrix.memory, [place]), element)
            value = convert(value, Element("f32") if element.is_half else element, self.form.sums)
        return arith.select(below(k, self.depth), value, constant_like(value, 0))

    def keep(self, values: Sequence[ir.Value]) -> None:
        """Write this thread's elements to the memory of the block."""
        for value, slot in zip(values, self.slots, strict=True):
            memref.store(value, self.piece, [slot])

    def factors(self, depth: int, place: ir.Value) -> list[ir.Value]:
        """Those of SIDE rows from `place`, at one k of the piece."""
        return [memref.load(self.piece, [plus(place, self.start + depth * self.pitch + i)]) for i in range(SIDE)]
