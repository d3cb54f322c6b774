# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scan kernels: a `reduce_window` whose windows are all prefixes, or all suffixes, of an axis, in one walk along it.

A work item is one line of elements along the axis, or as many neighbouring lines as a vector has lanes.
"""

from __future__ import annotations

from collections.abc import Callable

from shlo_disc.lowering.element_types import constant_like, element_of
from shlo_disc.lowering.elements import Positions
from shlo_disc.lowering.kernels import delinearize, op_cost
from shlo_disc.lowering.line_scan import scan_of
from shlo_disc.lowering.long_sums import LongSums, in_blocks
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.reduction import Combiner
from shlo_disc.lowering_cpu.emitters.frame import CpuFrame, store
from shlo_disc.lowering_cpu.emitters.loops import for_range
from shlo_disc.shape_dialect.dialect.types import product
from shlo_disc.shape_dialect.mlir import arith, ir, scf, vector
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv


def build_scan(frame: CpuFrame) -> tuple[Expr, Expr]:
    """Emit the body; returns the number of work items and the cost of one."""
    operations = list(frame.fusion.entry_block.operations)
    kernel = ScanKernel(frame)
    op = kernel.scan.op
    for_range(frame.begin, frame.end, kernel.item)
    cost = sum(op_cost(o) for o in operations if o != op) + len(list(op.regions[0].blocks[0].operations))
    return kernel.items, cost * kernel.scan.length


BLOCK = 64
"""Elements of a cumulative sum that are added before the sum so far is rounded: each waits for the one before it."""


class ScanKernel:
    """One cumulative op."""

    def __init__(self, frame: CpuFrame):
        self.frame = frame
        self.scan = scan_of(frame.fusion)
        self.dims, self.axis = self.scan.dims, self.scan.axis
        self.has_lanes = self.axis != len(self.dims) - 1
        self.elements = frame.elements(frame.width() if self.has_lanes else 1)
        self.combiner = Combiner(self.scan.op, self.elements.elementwise)
        self.outer = tuple(d for a, d in enumerate(self.dims) if a not in (self.axis, len(self.dims) - 1))
        self.blocks = ceildiv(self.dims[-1], self.elements.width) if self.has_lanes else Expr.const(1)

    @property
    def items(self) -> Expr:
        """The number of lines, or of vectors of lines."""
        return product(self.outer) * self.blocks

    def item(self, linear: ir.Value) -> None:
        """One work item."""
        size_of = self.frame.size_of
        blocks = size_of(self.blocks)
        with self.elements.scope():
            outer = [Position(i) for i in delinearize(arith.divui(linear, blocks), self.outer, size_of)]
            if not self.has_lanes:
                self._line(lambda i: (*outer, i))
                return
            first = arith.muli(arith.remui(linear, blocks), index_constant(self.elements.width))
            place = Position(first, 1 if self.elements.width > 1 else 0)
            self._lines(lambda i: (*outer[: self.axis], i, *outer[self.axis :], place), first)

    def _lines(self, place: Callable[[Position], Positions], first: ir.Value) -> None:
        """Neighbouring lines, with a mask for the last ones."""
        width = self.elements.width
        if self.frame.facts.divides(width, self.dims[-1]):
            self._line(place)
            return
        left = arith.subi(self.frame.size_of(self.dims[-1]), first)
        is_whole = arith.cmpi(arith.CmpIPredicate.uge, left, index_constant(width))
        guard = scf.IfOp(is_whole, [], has_else=True)
        with ir.InsertionPoint(guard.then_block), self.elements.scope():
            self._line(place)
            scf.yield_([])
        with ir.InsertionPoint(guard.else_block), self.elements.scope():
            mask = vector.create_mask(ir.VectorType.get([width], ir.IntegerType.get_signless(1)), [left])
            with self.elements.valid(mask=mask):
                self._line(place)
            scf.yield_([])

    def _line(self, place: Callable[[Position], Positions]) -> None:
        """Fold from the end where the windows start, storing each partial result."""
        elements, scan = self.elements, self.scan
        length = self.frame.size_of(scan.length)
        first = [elements.splat(elements.at(v, ())) for v in scan.inits]
        sums = LongSums([self.combiner])

        def step(index: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            index = scan.place(index, length)
            ((own, long),) = sums.split(carried)
            with elements.scope():
                here = place(Position(index))
                read = [elements.splat(elements.at(v, here)) for v in scan.inputs]
                new = scan.join(self.combiner, own, read)
                self._store(sums.finish([*new, *long])[0], here)
            return [*new, *long]

        zero = constant_like(first[0], 0.0) if sums.any else None
        carried = first if zero is None else [zero, first[0], zero]
        in_blocks(index_constant(0), length, 1, carried, step, sums.fold if sums.any else None, BLOCK)

    def _store(self, values: list[ir.Value], place: Positions) -> None:
        for output, buffer in zip(self.frame.outputs, self.frame.output_buffers, strict=True):
            value = self.combiner.rounded(values)[list(self.scan.op.results).index(output)]
            store(buffer, value, place, element_of(output.type), self.elements)
