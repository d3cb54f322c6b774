# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrence kernels: whole loops over independent rows, each thread with rows of its own from start to end.

The states of a thread's rows, and what an iteration keeps in between, stay in its first-level cache, the weights in the
second; no thread waits for another one. A work item is a block of rows; a range of items is cut into chunks of as many
rows as there is scratch memory for. Where a kernel has several loops, the items of each follow those of the one before.
"""

from __future__ import annotations

from collections.abc import Callable

from shlo_disc.lowering.element_types import element_of
from shlo_disc.lowering.elements import Positions
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.recurrence_kernel import RecurrenceKernel, loops_of, row_cost, trip_cost
from shlo_disc.lowering.recurrence_schedule import IterationSchedule, schedule, shape_of_rows
from shlo_disc.lowering_cpu.emitters.frame import CpuFrame
from shlo_disc.lowering_cpu.emitters.interruption import RUNTIME, TRIPS, Interruption
from shlo_disc.lowering_cpu.emitters.loops import for_range, over_lanes
from shlo_disc.lowering_cpu.emitters.row_block_dot import HEIGHT, RowBlockDot
from shlo_disc.lowering_cpu.emitters.vector_elements import VectorElements
from shlo_disc.shape_dialect.dialect.types import Dims
from shlo_disc.shape_dialect.mlir import arith, ir, memref
from shlo_disc.shape_dialect.ops.recurrences import LoopOfRows
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv

PIECES = 8
"""Blocks of rows to make at least where there are many rows, so that threads can share them out evenly."""

MOST_ROWS = 24
LONG_TRIP = 1 << 18
"""Vector operations of a trip, some 100 us, from which on each trip asks whether the run has ended."""

SCRATCH_BYTES = 1 << 16
"""Limit for the scratch memory of a chunk, unless it is for few rows."""


def build_recurrence(frame: CpuFrame) -> tuple[Expr, Expr]:
    """Emit the body; returns the number of work items and the cost of one."""
    loops = loops_of(frame.fusion)
    total, cost = Expr.const(0), Expr.const(1)
    for found in loops:
        block = _rows_of_item(found.rows, len(loops), frame.options.pieces)
        LaneRecurrence(frame, found).emit(block, total)
        total = total + ceildiv(found.rows, block)
        cost = Expr.maximum(cost, block * row_cost(found))
    return total, cost


def _rows_of_item(rows: Expr, loops: int, pieces: int | None) -> Expr:
    """The rows of a work item of one of several loops: even parts, each a tile high at least unless a schedule says how
    many there are."""
    if pieces is not None:
        return Expr.maximum(1, ceildiv(rows, pieces))
    half = ceildiv(rows * loops, 2)
    most = Expr.minimum(rows, Expr.maximum(HEIGHT, ceildiv(rows, PIECES)))
    return Expr.maximum(1, Expr.minimum(half, most))


class LaneRecurrence(RecurrenceKernel):
    """One loop, whose rows' elements are walked over in vectors."""

    frame: CpuFrame
    elements: VectorElements
    can_end = True

    def __init__(self, frame: CpuFrame, found: LoopOfRows):
        plan = schedule(found)
        super().__init__(frame, found, plan, frame.elements(_width(frame, found, plan)))
        self.dot = RowBlockDot(frame, self.elements)
        self.interruption = Interruption(frame.size_of(RUNTIME))

    def emit(self, block: Expr, before: Expr) -> None:
        """The kernel: chunks of rows, one after the other. `before` is the number of the first item."""
        size = self.frame.size_of(block)
        rows = self.frame.size_of(self.found.rows)
        zero = index_constant(0)
        items = [arith.subi(i, self.frame.size_of(before)) for i in (self.frame.begin, self.frame.end)]
        begin, end = (arith.minui(arith.muli(arith.maxsi(i, zero), size), rows) for i in items)
        count = max(1, min(MOST_ROWS, SCRATCH_BYTES // max(self.row_bytes(), 1)) // HEIGHT) * HEIGHT
        self.allocate(count, _on_stack)

        def chunk(first: ir.Value) -> None:
            self.chunk(first, arith.minui(arith.addi(first, index_constant(count)), end))

        for_range(begin, end, chunk, index_constant(count))

    def has_ended(self, trips: ir.Value) -> ir.Value:
        """One trip in so many asks, each one where they take long."""
        is_long = MOST_ROWS * trip_cost(self.found) > LONG_TRIP
        return self.interruption.before_trip(trips, 1 if is_long else TRIPS)

    def multiply(self, dot: ir.OpView, target: ir.Value) -> None:
        """By tiles of registers."""
        self.dot.emit(dot, target, self.first, self.past)

    def nest(self, dims: Dims, axis: int, body: Callable[[Positions], None]) -> None:
        """Loop by loop, lanes along the last size."""
        elements = self.elements
        last = len(dims) - 1

        def level(number: int, outer: Positions) -> None:
            begin, end = self.first, self.past
            if number != axis:
                begin, end = index_constant(0), self.frame.size_of(dims[number])
            if number < last:
                for_range(begin, end, lambda i: inner(number, (*outer, Position(i))))
                return
            divisible = number != axis and elements.facts.divides(elements.width, dims[number])

            def lanes(position: Position, carried: list[ir.Value], mask: ir.Value | None) -> list[ir.Value]:
                body((*outer, position))
                return []

            over_lanes(elements, begin, end, divisible, [], lanes)

        def inner(number: int, outer: Positions) -> None:
            with elements.scope():
                level(number + 1, outer)

        level(0, ())


def _width(frame: CpuFrame, found: LoopOfRows, plan: IterationSchedule) -> int:
    """Lanes: two registers, or one where two would mostly be masked."""
    options = frame.options
    values = [v for step in plan.steps if step.dot is None for v in step.values]
    widest = max((element_of(v.type).width for v in found.row_axis), default=32)
    lanes = max(1, options.vector_bits // max(32, widest))
    sizes = [shape_of_rows(found, v)[0][-1].constant or 0 for v in values]

    def padded(width: int) -> int:
        return sum(-(-size // width) * width for size in sizes)

    return lanes if padded(lanes) < padded(options.unroll * lanes) else options.unroll * lanes


def _on_stack(value: ir.Value, sizes: list[int]) -> ir.Value:
    type_ = ir.MemRefType.get(sizes, element_of(value.type).memory())
    return memref.AllocaOp(type_, [], [], alignment=64).memref
