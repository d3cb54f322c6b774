# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of a block of rows with a matrix inside of a kernel: one tile of the result at a time in registers.

A tile is some rows high and some vectors wide; the loop along k is innermost. Tiles lower than `HEIGHT` are for the
last rows, and wider, so that there are always enough sums to keep the multipliers busy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shlo_disc.lowering.element_types import element_of
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering_cpu.emitters.frame import CpuFrame
from shlo_disc.lowering_cpu.emitters.loops import for_range
from shlo_disc.lowering_cpu.emitters.vector_elements import VectorElements
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import arith, ir, math, scf, vector

HEIGHT = 6
"""Rows of a full tile."""

_WIDTHS = {HEIGHT: 4, 4: 6, 2: 8, 1: 8}
"""Vectors of a tile by its rows, for 32 registers."""


class RowBlockDot:
    """Emits products [rows, k] x [k, n] of a kernel whose values `elements` gives."""

    def __init__(self, frame: CpuFrame, elements: VectorElements):
        self.frame = frame
        self.outer = elements

    def emit(self, dot: ir.OpView, target: ir.Value, first: ir.Value, past: ir.Value) -> None:
        """Write rows [first, past) of the product to `target`, whose row 0 is `first`."""
        self.lhs, self.rhs = dot.operands
        self.target, self.first = target, first
        depth, columns = (d.constant or 0 for d in dims_of(self.rhs))
        self.depth, self.columns = depth, columns
        element = element_of(self.rhs.type)
        self.lanes = max(1, self.frame.options.vector_bits // element.width)
        self.type = ir.VectorType.get([self.lanes], element.register())
        outer = self.outer
        self.elements = VectorElements(
            self.lanes, outer.facts, outer.size_of, outer.library, outer.rules, outer.memory, outer.bound, outer.cached
        )
        count = arith.subi(past, first)
        rest = arith.remui(count, index_constant(HEIGHT))
        full = arith.subi(past, rest)
        self._columns(HEIGHT, lambda *tile: for_range(first, full, self._at(*tile), index_constant(HEIGHT)))
        row = full
        for height in (4, 2, 1):
            bit = arith.andi(rest, index_constant(height))
            some = scf.IfOp(arith.cmpi(arith.CmpIPredicate.ne, bit, index_constant(0)))
            with ir.InsertionPoint(some.then_block):
                self._columns(height, lambda *tile, row=row: self._at(*tile)(row))
                scf.yield_([])
            row = arith.addi(row, bit)

    def _columns(self, height: int, body: Callable[[int, ir.Value, int], None]) -> None:
        """Call `body(height, column, width)` for all blocks of columns."""
        vectors = _WIDTHS[height]
        if self.frame.options.vector_bits == 256:
            vectors //= 2
        block = vectors * self.lanes
        whole = self.columns // block * block
        if whole == block:
            body(height, index_constant(0), block)
        elif whole:
            for_range(index_constant(0), index_constant(whole), lambda c: body(height, c, block), index_constant(block))
        if self.columns > whole:
            body(height, index_constant(whole), self.columns - whole)

    def _at(self, height: int, column: ir.Value, width: int) -> Callable[[ir.Value], None]:
        return lambda row: self._tile(row, height, column, width)

    def _tile(self, row: ir.Value, height: int, column: ir.Value, width: int) -> None:
        """The tile of `height` rows from `row` on and `width` columns from `column` on."""
        rows = [row, *(arith.addi(row, index_constant(i)) for i in range(1, height))]
        places = [arith.addi(column, index_constant(i)) for i in range(0, width, self.lanes)]
        tail = width % self.lanes
        mask = None
        if tail:
            flags = ir.VectorType.get([self.lanes], ir.IntegerType.get_signless(1))
            mask = vector.create_mask(flags, [index_constant(tail)])
        zero = arith.constant(
            self.type, ir.DenseElementsAttr.get_splat(self.type, ir.FloatAttr.get(self.type.element_type, 0.0))
        )
        sums = [zero] * (height * len(places))
        loop = scf.ForOp(index_constant(0), index_constant(self.depth), index_constant(1), sums)
        with ir.InsertionPoint(loop.body), self.elements.scope():
            scf.yield_(self._multiply_add(loop.induction_variable, rows, places, mask, list(loop.inner_iter_args)))
        results = list(loop.results)
        for i in range(height):
            local = arith.subi(rows[i], self.first)
            for j, place in enumerate(places):
                total = results[i * len(places) + j]
                if mask is not None and j == len(places) - 1:
                    vector.maskedstore(self.target, [local, place], mask, total)
                else:
                    vector.store(total, self.target, [local, place])

    def _multiply_add(
        self,
        k: ir.Value,
        rows: Sequence[ir.Value],
        places: Sequence[ir.Value],
        mask: ir.Value | None,
        sums: list[ir.Value],
    ) -> list[ir.Value]:
        step = 1 if self.lanes > 1 else 0
        right = []
        for j, place in enumerate(places):
            with self.elements.valid(mask=mask if j == len(places) - 1 else None):
                weights = self.elements.at(self.rhs, (Position(k), Position(place, step)))
                right.append(self.elements.splat(weights))  # a constant is one scalar for all lanes
        new = []
        for i, row in enumerate(rows):
            left = vector.broadcast(self.type, self.elements.at(self.lhs, (Position(row), Position(k))))
            new += [math.fma(left, b, sums[i * len(places) + j]) for j, b in enumerate(right)]
        return new
