# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of `select_and_scatter` for GPUs: each element of the result by a thread.

A thread looks at the windows that hold its element, in their order, and takes the source elements of those that have
selected it. No two threads meet, and sums are added in one order.
"""

from __future__ import annotations

from shlo_disc.lowering.elements import uniform
from shlo_disc.lowering.index_rules import nest
from shlo_disc.lowering.kernels import delinearize
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.reduction import Combiner
from shlo_disc.lowering.window_selection import WindowSelection, selection_in
from shlo_disc.lowering_gpu.grid import THREADS, each_thread
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.shape_dialect.dialect.types import dims_of, product
from shlo_disc.shape_dialect.mlir import arith, ir
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv


def build_select_and_scatter(frame: GpuFrame) -> tuple[Expr, Expr]:
    """Emit the body; returns how many blocks have work, and the cost of what one does."""
    kernel = _Elements(frame, selection_in(frame.fusion))
    total = product(kernel.selection.dims)
    each_thread(frame.size_of(total), kernel.element)
    # Along an axis, as many windows hold an element as it has strides.
    windows = product(ceildiv(s, t) for s, t in zip(kernel.window.size, kernel.window.stride, strict=True))
    return ceildiv(total, THREADS), 4 * windows * product(kernel.window.size) * THREADS


class _Elements:
    """The elements of one op's result."""

    def __init__(self, frame: GpuFrame, op: ir.OpView):
        self.frame = frame
        self.op = op
        self.elements = frame.elements()
        self.selection = WindowSelection(op, self.elements, False)
        self.window = self.selection.window
        self.source = dims_of(op.operands[1])
        self.scatter = Combiner(op, self.elements.elementwise, region=1)

    def element(self, linear: ir.Value) -> None:
        """The one at a row-major offset."""
        with self.elements.scope():
            place = delinearize(linear, self.selection.dims, self.frame.size_of)
            ranges = [self._windows_with(axis, index) for axis, index in enumerate(place)]

            def hand_over(indices: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
                window = uniform([arith.addi(first, i) for (first, _), i in zip(ranges, indices, strict=True)])
                return self._taken(linear, window, carried)

            start = [self.elements.at(self.op.operands[2], ())]
            (value,) = nest(self.elements, [count for _, count in ranges], start, hand_over)
            output = self.op.results[0]
            self.frame.store(self.frame.output_buffers[0], value, uniform(place), output, self.elements, False)

    def _taken(self, linear: ir.Value, window: tuple[Position, ...], carried: list[ir.Value]) -> list[ir.Value]:
        """The carried value with the source element of a window, if that has selected this element."""
        offset, found = self.selection.at(window)
        is_this = arith.andi(found, arith.cmpi(arith.CmpIPredicate.eq, offset, linear))
        with self.elements.only_where(is_this):
            new = self.elements.at(self.op.operands[1], window)
        (combined,) = self.scatter.combine(carried, [new], exact=True)
        return [self.elements.select(is_this, combined, carried[0])]

    def _windows_with(self, axis: int, index: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Along an axis: the first window that holds the element at `index`, and how many do.

        Window w holds the positions from w * stride on, counted from the beginning of the padding.
        """
        zero, one = index_constant(0), index_constant(1)
        if self.window.is_trivial(axis):
            return index, one
        size, stride, low = (
            self.elements.size_of(p[axis]) for p in (self.window.size, self.window.stride, self.window.low)
        )
        position = arith.addi(index, low)
        behind = arith.maxsi(arith.addi(arith.subi(position, size), one), zero)
        first = arith.divui(arith.addi(behind, arith.subi(stride, one)), stride)
        past = arith.divui(arith.maxsi(arith.addi(position, stride), zero), stride)
        past = arith.minui(past, self.elements.size_of(self.source[axis]))
        return first, arith.maxsi(arith.subi(past, first), zero)
