# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of `select_and_scatter`: each window hands its source element to the operand element that it selects.

Windows that overlap hand over one after the other, in order. When the windows do not extend along the last axis, lanes
and threads divide it among themselves: no two of them meet in one element. Else threads divide the leading axes along
which there are no windows.
"""

from __future__ import annotations

from collections.abc import Callable

from shlo_disc.lowering.element_types import element_of, from_memory, to_memory
from shlo_disc.lowering.elements import Positions, splat_constant
from shlo_disc.lowering.index_rules import nest
from shlo_disc.lowering.kernels import delinearize
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.reduction import Combiner
from shlo_disc.lowering.window_selection import WindowSelection, selection_in
from shlo_disc.lowering_cpu.emitters.frame import CpuFrame, store
from shlo_disc.lowering_cpu.emitters.loops import column_blocks, columns_of_items, for_range, over_lanes
from shlo_disc.shape_dialect.dialect.types import DYNAMIC, dims_of, product
from shlo_disc.shape_dialect.mlir import arith, ir, memref, scf, vector
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.windows import window_of


def build_select_and_scatter(frame: CpuFrame) -> tuple[Expr, Expr]:
    """Emit the body; returns the number of work items and the cost of one."""
    kernel = SelectScatterKernel(frame, selection_in(frame.fusion))
    kernel.run()
    return kernel.items, kernel.cost


class SelectScatterKernel:
    """One op; `shared` are the axes that work is divided over: the last one, or leading ones."""

    def __init__(self, frame: CpuFrame, op: ir.OpView):
        self.frame = frame
        self.op = op
        self.window = window_of(op)
        self.dims, self.source = dims_of(op.operands[0]), dims_of(op.operands[1])
        rank = len(self.dims)
        self.has_lanes = rank > 0 and self.window.is_trivial(rank - 1)
        self.elements = frame.elements(frame.width() if self.has_lanes else 1)
        leading = 0
        while leading < rank and self.window.is_trivial(leading):
            leading += 1
        self.shared = [rank - 1] if self.has_lanes else list(range(leading))
        self.rest = [axis for axis in range(rank) if axis not in self.shared]
        self.selection = WindowSelection(op, self.elements, self.has_lanes)
        self.scatter = Combiner(op, self.elements.elementwise, region=1)
        self.element = element_of(op.operands[0].type)
        self.output = frame.output_buffers[0]

    @property
    def items(self) -> Expr:
        """The number of blocks of columns, or of leading places."""
        if self.has_lanes:
            return column_blocks(self.dims[-1], self.elements.width)[0]
        return product(self.dims[axis] for axis in self.shared)

    @property
    def cost(self) -> Expr:
        """The work of an item: its places are filled, and those of its windows looked at."""
        filled, windows = (product(dims[axis] for axis in self.rest) for dims in (self.dims, self.source))
        vectors = 1
        if self.has_lanes:
            vectors = column_blocks(self.dims[-1], self.elements.width)[1] // self.frame.lanes
        return vectors * (filled + 4 * windows * product(self.window.size))

    def run(self) -> None:
        """Fill the result with the initial value, then walk over the windows."""
        if self.has_lanes:
            self.columns = columns_of_items(self.elements, self.frame.begin, self.frame.end, self.dims[-1])
            self._walk(self.dims, self._fill, [])
            self._walk(self.source, self._hand_over, [])
            return

        def item(linear: ir.Value) -> None:
            with self.elements.scope():
                dims = tuple(self.dims[axis] for axis in self.shared)
                place = [Position(i) for i in delinearize(linear, dims, self.frame.size_of)]
                self._walk(self.dims, self._fill, place)
                self._walk(self.source, self._hand_over, place)

        for_range(self.frame.begin, self.frame.end, item)

    def _walk(self, dims: tuple[Expr, ...], visit: Callable[[Positions], None], shared: list[Position]) -> None:
        """`visit` every place of a tensor of `dims`; lanes stand side by side along the last axis."""

        def row(indices: list[ir.Value], _: list[ir.Value]) -> list[ir.Value]:
            inner = [Position(i) for i in indices]
            if not self.has_lanes:
                visit((*shared, *inner))
                return []

            def lanes(column: Position, carried: list[ir.Value], mask: ir.Value | None) -> list[ir.Value]:
                visit((*inner, column))
                return carried

            return over_lanes(self.elements, *self.columns, False, [], lanes)

        nest(self.elements, [self.frame.size_of(dims[axis]) for axis in self.rest], [], row)

    def _fill(self, place: Positions) -> None:
        store(self.output, self.elements.at(self.op.operands[2], ()), place, self.element, self.elements)

    # ---- one window -------------------------------------------------------------------------------------------------

    def _hand_over(self, place: Positions) -> None:
        """The source element at `place` goes to the element that its window selects."""
        elements = self.elements
        offset, found = self.selection.at(place)
        guard = scf.IfOp(found, [])
        with ir.InsertionPoint(guard.then_block), elements.scope():
            new = elements.splat(elements.at(self.op.operands[1], place))
            if not self.has_lanes:
                self._scatter_one(offset, new)
            else:
                self._scatter_lanes(arith.addi(elements.math.as_lanes(place[-1]), offset), new)
            scf.yield_([])

    def _scatter_one(self, offset: ir.Value, new: ir.Value) -> None:
        flat = ir.MemRefType.get([DYNAMIC], self.element.memory())
        size = self.frame.size_of(product(self.dims))
        buffer = memref.reinterpret_cast(flat, self.output, [], [size], [], [0], [DYNAMIC], [1])
        old = from_memory(memref.load(buffer, [offset]), self.element)
        (result,) = self.scatter.combine([old], [new], exact=True)
        memref.store(to_memory(result, self.element), buffer, [offset])

    def _scatter_lanes(self, offsets: ir.Value, new: ir.Value) -> None:
        """Lanes stand in different columns, so no two of them have one target."""
        every = splat_constant(ir.VectorType.get([self.elements.width], ir.IntegerType.get_signless(1)), 1)
        mask = self.elements.lane_mask() or every
        type_ = ir.VectorType.get([self.elements.width], self.element.memory())
        origin = [index_constant(0)] * len(self.dims)
        raw = vector.gather(type_, self.output, origin, offsets, mask, splat_constant(type_))
        (result,) = self.scatter.combine([from_memory(raw, self.element)], [new], exact=True)
        vector.scatter(None, self.output, origin, offsets, mask, to_memory(result, self.element))
