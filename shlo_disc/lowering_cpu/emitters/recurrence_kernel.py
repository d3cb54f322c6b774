# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrence kernels: whole loops over independent rows, each thread with rows of its own from start to end.

The states of a thread's rows, and what an iteration keeps in between, stay in its first-level cache, the weights in the
second; no thread waits for another one. A work item is a block of rows; a range of items is cut into chunks of as many
rows as there is scratch memory for. Where a kernel has several loops, the items of each follow those of the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.element_types import element_of
from shlo_disc.lowering.elements import Positions
from shlo_disc.lowering.index_rules.movement import scalar_starts
from shlo_disc.lowering.kernels import op_cost
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering_cpu.emitters.frame import CpuFrame, store
from shlo_disc.lowering_cpu.emitters.loops import for_range, over_lanes
from shlo_disc.lowering_cpu.emitters.recurrence_schedule import Step, schedule, shape_of_rows
from shlo_disc.lowering_cpu.emitters.row_block_dot import HEIGHT, RowBlockDot
from shlo_disc.mlir import arith, ir, memref, scf
from shlo_disc.shape_dialect.dialect.fusion import Recurrence, fusion_of
from shlo_disc.shape_dialect.dialect.types import Dims, bytes_of, dims_of, element_type_of, product
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.transforms.fusion.recurrence import LoopOfRows, dots_of, recurrence_of, row_dims

PIECES = 8
"""Blocks of rows to make at least where there are many rows, so that threads can share them out evenly."""

MOST_ROWS = 24
SCRATCH_BYTES = 1 << 16
"""What the scratch memory of a chunk should not exceed, unless it is for few rows."""

UNKNOWN_TRIP = 8


@dataclass(frozen=True)
class Scratch:
    """A buffer for a value of a chunk: the rows, along `axis`, are counted from the first one of the chunk."""

    buffer: ir.Value
    axis: int
    dims: Dims


def build_recurrence(frame: CpuFrame) -> tuple[Expr, Expr]:
    """Emit the body; returns the number of work items and the cost of one."""
    whiles = [op for op in frame.fusion.entry_block.operations if op.operation.name == "stablehlo.while"]
    said = fusion_of(frame.fusion)
    if not isinstance(said, Recurrence):
        raise CompilerError(f"kernels: a {said.kind} is no recurrence")
    loops = [recurrence_of(op, loop) for op, loop in zip(whiles, said.loops, strict=True)]
    total, cost = Expr.const(0), Expr.const(1)
    for found in loops:
        half = ceildiv(found.rows * len(loops), 2)
        most = Expr.minimum(found.rows, HEIGHT * ceildiv(found.rows, HEIGHT * PIECES))
        block = Expr.maximum(1, Expr.minimum(half, most))
        RecurrenceKernel(frame, found).emit(block, total)
        total = total + ceildiv(found.rows, block)
        trip = Expr.const(UNKNOWN_TRIP) if found.trip is None else found.trip
        cost = Expr.maximum(cost, block * trip * _row_cost(found))
    return total, cost


def _row_cost(found: LoopOfRows) -> int:
    """The work of one iteration on one row."""
    elements = {v: product(row_dims(v, axis)).constant or 1 for v, axis in found.row_axis.items()}
    cost = sum(op_cost(v.owner) * n for v, n in elements.items() if not isinstance(v.owner, ir.Block))
    weights = sum(product(dims_of(op.operands[1])).constant or 0 for op in dots_of(found))
    return max(1, (cost + weights) // 4)


class RecurrenceKernel:
    """One loop."""

    def __init__(self, frame: CpuFrame, found: LoopOfRows):
        self.frame = frame
        self.found = found
        self.plan = schedule(found)
        self.elements = frame.elements(self._width())
        results = list(found.loop.results)
        self.buffers = {
            i: buffer
            for output, buffer in zip(frame.outputs, frame.output_buffers, strict=True)
            if output in results
            for i in (results.index(output),)
        }
        self.dot = RowBlockDot(frame, self.elements)
        for i in found.states:
            self.elements.memory[found.body.arguments[i]] = self.buffers[i]

    def _width(self) -> int:
        """Lanes: two registers, or one where two would mostly be masked."""
        options = self.frame.options
        values = [v for step in self.plan.steps if step.dot is None for v in step.values]
        widest = max((element_of(v.type).width for v in self.found.row_axis), default=32)
        lanes = max(1, options.vector_bits // max(32, widest))
        sizes = [shape_of_rows(self.found, v)[0][-1].constant or 0 for v in values]

        def padded(width: int) -> int:
            return sum(-(-size // width) * width for size in sizes)

        return lanes if padded(lanes) < padded(options.unroll * lanes) else options.unroll * lanes

    def emit(self, block: Expr, before: Expr) -> None:
        """The kernel: chunks of rows, one after the other. `before` is the number of the first item."""
        size = self.frame.size_of(block)
        rows = self.frame.size_of(self.found.rows)
        zero = index_constant(0)
        items = [arith.subi(i, self.frame.size_of(before)) for i in (self.frame.begin, self.frame.end)]
        begin, end = (arith.minui(arith.muli(arith.maxsi(i, zero), size), rows) for i in items)
        count = self._allocate()

        def chunk(first: ir.Value) -> None:
            self.first, self.past = first, arith.minui(arith.addi(first, index_constant(count)), end)
            self.shift = arith.subi(index_constant(0), first)
            self._start()
            self._iterate()

        for_range(begin, end, chunk, index_constant(count))

    # ---- memory -----------------------------------------------------------------------------------------------------

    def _allocate(self) -> int:
        """Make the scratch buffers; returns how many rows they hold."""
        values = [v for step in self.plan.steps for v in step.values if v in self.plan.scratch]
        places = {v: self.found.row_axis.get(v, 0) for v in values}
        row = sum((product(row_dims(v, a)).constant or 0) * bytes_of(element_type_of(v)) for v, a in places.items())
        count = max(1, min(MOST_ROWS, SCRATCH_BYTES // max(row, 1)) // HEIGHT) * HEIGHT
        self.scratch: dict[ir.Value, Scratch] = {}
        for value, axis in places.items():
            dims = tuple(Expr.const(count) if i == axis else d for i, d in enumerate(dims_of(value)))
            sizes = [d.constant or 0 for d in dims]
            type_ = ir.MemRefType.get(sizes, element_of(value.type).memory())
            self.scratch[value] = Scratch(memref.AllocaOp(type_, [], [], alignment=64).memref, axis, dims)
        return count

    def _in_scratch(self, scratch: Scratch, positions: Positions) -> Positions:
        moved = list(positions)
        moved[scratch.axis] = self.elements.math.add(positions[scratch.axis], self.shift)
        return tuple(moved)

    def _reader(self, value: ir.Value) -> Callable[[Positions], ir.Value]:
        scratch = self.scratch[value]

        def read(positions: Positions) -> ir.Value:
            place = self._in_scratch(scratch, positions)
            return self.elements.load(scratch.buffer, place, element_of(value.type), scratch.dims)

        return read

    # ---- loop nests -------------------------------------------------------------------------------------------------

    def _nest(self, dims: Dims, axis: int, body: Callable[[Positions], None]) -> None:
        """Call `body` for all indices over `dims`, of the chunk's rows along `axis`, lanes along the last size."""
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

    def _places(self, value: ir.Value, positions: Positions) -> Positions:
        """The index of a value's element at a place of the loop nest over its sizes other than 1."""
        axis = self.found.row_axis.get(value, 0)
        given = iter(positions)
        zero = Position(index_constant(0))
        return tuple(next(given) if i == axis or d.constant != 1 else zero for i, d in enumerate(dims_of(value)))

    # ---- the loop ---------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Put initial values where the loop works on them."""
        found = self.found
        windows = found.windows()
        starts = dict.fromkeys(found.states, 0)
        starts |= {i: found.row_axis[windows[i]] for i in found.stacks if i not in found.covered}
        for i, axis in starts.items():
            value, buffer = found.loop.operands[i], self.buffers[i]

            def copy(positions: Positions, value: ir.Value = value, buffer: ir.Value = buffer) -> None:
                store(buffer, self.elements.at(value, positions), positions, element_of(value.type), self.elements)

            self._nest(dims_of(value), axis, copy)

    def _iterate(self) -> None:
        found, elements = self.found, self.elements
        starts = [elements.at(found.loop.operands[i], ()) for i in found.scalars]
        types = [v.type for v in starts]
        loop = scf.WhileOp(types, starts)
        before = loop.before.blocks.append(*types)
        with ir.InsertionPoint(before), elements.scope():
            self._bind(found.condition, before.arguments)
            goes_on = elements.at(_returned(found.condition)[0], ())
            scf.condition(goes_on, list(before.arguments))
        after = loop.after.blocks.append(*types)
        with ir.InsertionPoint(after), elements.scope():
            self._bind(found.body, after.arguments)
            for step in self.plan.steps:
                self._step(step)
            self._finish()
            scf.yield_([elements.at(found.returned[i], ()) for i in found.scalars])

    def _bind(self, block: ir.Block, values: Sequence[ir.Value]) -> None:
        arguments = [block.arguments[i] for i in self.found.scalars]
        self.elements.bound.update(zip(arguments, values, strict=True))

    def _step(self, step: Step) -> None:
        if step.dot is not None:
            (value,) = step.values
            self.dot.emit(step.dot.opview, self.scratch[value].buffer, self.first, self.past)
        else:
            self._nest(step.dims, step.axis, lambda positions: self._write(step, positions))
        inside = [
            v for v in step.values if not isinstance(v.owner, ir.Block) and v.owner.operation.block == self.found.body
        ]
        for value in inside:
            state = next((i for i in self.plan.in_place if self.found.returned[i] == value), None)
            if value in self.scratch:
                self.elements.cached[value] = self._reader(value)
            elif state is not None:
                self.elements.memory[value] = self.buffers[state]

    def _write(self, step: Step, positions: Positions) -> None:
        """Compute the step's values at one place, then write them wherever they have to be."""
        elements, found = self.elements, self.found
        places = [self._places(v, positions) for v in step.values]
        values = [elements.at(v, p) for v, p in zip(step.values, places, strict=True)]
        windows = found.windows()
        for value, place, register in zip(step.values, places, values, strict=True):
            element = element_of(value.type)
            if value in self.scratch:
                scratch = self.scratch[value]
                store(scratch.buffer, register, self._in_scratch(scratch, place), element, elements)
            for i in sorted(self.plan.in_place):
                if found.returned[i] == value:
                    store(self.buffers[i], register, place, element, elements)
            for i, window in windows.items():
                if window == value:
                    store(self.buffers[i], register, self._in_stack(i, place), element, elements)

    def _in_stack(self, number: int, place: Positions) -> Positions:
        update = self.found.stacks[number]
        whole, window, *starts = update.operands
        first = scalar_starts(self.elements, starts, dims_of(whole), dims_of(window))
        return tuple(self.elements.math.add(p, s) for p, s in zip(place, first, strict=True))

    def _finish(self) -> None:
        """Copy the states that could not be overwritten before."""
        for i in self.found.states:
            if i in self.plan.in_place:
                continue
            value, buffer = self.found.returned[i], self.buffers[i]
            read = self._reader(value)

            def copy(
                positions: Positions, value: ir.Value = value, buffer: ir.Value = buffer, read: Callable = read
            ) -> None:
                store(buffer, read(positions), positions, element_of(value.type), self.elements)

            self._nest(dims_of(value), 0, copy)


def _returned(block: ir.Block) -> list[ir.Value]:
    return list(block.operations[len(block.operations) - 1].operands)
