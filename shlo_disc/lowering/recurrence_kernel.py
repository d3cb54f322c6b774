# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The common part of recurrence kernels: a whole loop over independent rows, for some rows from start to end.

A target says how the elements of some rows are walked over, how rows are multiplied with a matrix, and where scratch
memory is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.element_types import element_of
from shlo_disc.lowering.elements import Elements, Positions
from shlo_disc.lowering.frame import Frame
from shlo_disc.lowering.index_rules.moves import window_starts
from shlo_disc.lowering.kernels import op_cost
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.recurrence_schedule import IterationSchedule, Step
from shlo_disc.shape_dialect.dialect.fusion import Recurrence, fusion_of
from shlo_disc.shape_dialect.dialect.types import Dims, bytes_of, dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import arith, func, ir, scf
from shlo_disc.shape_dialect.ops.recurrences import LoopOfRows, loop_of_rows, row_dims
from shlo_disc.shape_dialect.symbolic.expr import Expr

_UNKNOWN_TRIP = 8


def loops_of(fusion: func.FuncOp) -> list[LoopOfRows]:
    """The loops of a recurrence. Raises CompilerError for any other fusion."""
    whiles = [op for op in fusion.entry_block.operations if op.operation.name == "stablehlo.while"]
    said = fusion_of(fusion)
    if not isinstance(said, Recurrence):
        raise CompilerError(f"kernels: a {said.kind} is no recurrence")
    return [loop_of_rows(op, loop) for op, loop in zip(whiles, said.loops, strict=True)]


def row_cost(found: LoopOfRows) -> Expr:
    """The work on one row, from start to end."""
    return trip_cost(found) * (Expr.const(_UNKNOWN_TRIP) if found.trip is None else found.trip)


def trip_cost(found: LoopOfRows) -> int:
    """The cost of one iteration."""
    elements = {v: product(row_dims(v, axis)).constant or 1 for v, axis in found.row_axis.items()}
    cost = sum(op_cost(v.owner) * n for v, n in elements.items() if not isinstance(v.owner, ir.Block))
    weights = sum(product(dims_of(op.operands[1])).constant or 0 for op in found.dots)
    return max(1, (cost + weights) // 4)


@dataclass(frozen=True)
class Scratch:
    """A buffer for a value of a chunk: the rows, along `axis`, are counted from the first one of the chunk."""

    buffer: ir.Value
    axis: int
    dims: Dims


class RecurrenceKernel:
    """One loop, at the insertion point. `first` and `past` tell the rows of the chunk that is worked on."""

    first: ir.Value
    past: ir.Value

    def __init__(self, frame: Frame, found: LoopOfRows, plan: IterationSchedule, elements: Elements):
        self.frame, self.found, self.plan, self.elements = frame, found, plan, elements
        self.scratch: dict[ir.Value, Scratch] = {}
        results = list(found.loop.results)
        self.buffers = {
            i: buffer
            for output, buffer in zip(frame.outputs, frame.output_buffers, strict=True)
            if output in results
            for i in (results.index(output),)
        }
        for i in found.states:
            self.elements.memory[found.body.arguments[i]] = self.buffers[i]

    def chunk(self, first: ir.Value, past: ir.Value) -> None:
        """All iterations for some rows."""
        self.first, self.past = first, past
        self.shift = arith.subi(index_constant(0), first)
        self._start()
        self._iterate()

    # ---- what a target says -----------------------------------------------------------------------------------------

    def nest(self, dims: Dims, axis: int, body: Callable[[Positions], None]) -> None:
        """Call `body` for all indices over `dims`, of the chunk's rows along `axis`."""
        raise NotImplementedError

    def multiply(self, dot: ir.OpView, target: ir.Value) -> None:
        """Write the chunk's rows of a product to `target`, whose row 0 is the first of the chunk."""
        raise NotImplementedError

    can_end = False
    """True if the run may end before a loop has."""

    def has_ended(self, trips: ir.Value) -> ir.Value:
        """Tells whether the run has, asked by a loop that has made so many trips."""
        raise NotImplementedError

    def synchronize(self) -> None:
        """Behind it, what the chunk's rows have been written to may be read, and what was read written."""

    # ---- scratch memory ---------------------------------------------------------------------------------------------

    def scratch_values(self) -> dict[ir.Value, int]:
        """The values kept in scratch memory, and the axis of the rows of each."""
        values = [v for step in self.plan.steps for v in step.values if v in self.plan.scratch]
        return {v: self.found.row_axis.get(v, 0) for v in values}

    def row_bytes(self) -> int:
        """The bytes of scratch memory that one row takes."""
        places = self.scratch_values().items()
        return sum((product(row_dims(v, a)).constant or 0) * bytes_of(element_type_of(v)) for v, a in places)

    def allocate(self, count: int, buffer: Callable[[ir.Value, list[int]], ir.Value]) -> None:
        """Make room for `count` rows; `buffer(value, sizes)` makes that of a value."""
        for value, axis in self.scratch_values().items():
            dims = tuple(Expr.const(count) if i == axis else d for i, d in enumerate(dims_of(value)))
            self.scratch[value] = Scratch(buffer(value, [d.constant or 0 for d in dims]), axis, dims)

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

    def _places(self, value: ir.Value, positions: Positions) -> Positions:
        """The index of a value's element at a place of the loop nest over its sizes other than 1."""
        axis = self.found.row_axis.get(value, 0)
        given = iter(positions)
        zero = Position(index_constant(0))
        return tuple(next(given) if i == axis or d.constant != 1 else zero for i, d in enumerate(dims_of(value)))

    def _store(self, buffer: ir.Value, register: ir.Value, place: Positions, value: ir.Value) -> None:
        self.frame.store(buffer, register, place, value, self.elements, False)

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
                self._store(buffer, self.elements.at(value, positions), positions, value)

            self.nest(dims_of(value), axis, copy)
        self.synchronize()

    def _iterate(self) -> None:
        found, elements = self.found, self.elements
        starts = [elements.at(found.loop.operands[i], ()) for i in found.scalars]
        counted = [index_constant(0)] if self.can_end else []  # the trips
        types = [v.type for v in (*starts, *counted)]
        loop = scf.WhileOp(types, [*starts, *counted])
        before = loop.before.blocks.append(*types)
        with ir.InsertionPoint(before), elements.scope():
            self._bind(found.condition, before.arguments)
            goes_on = elements.at(_returned(found.condition)[0], ())
            if counted:
                ended = self.has_ended(before.arguments[len(starts)])
                goes_on = arith.select(ended, arith.constant(goes_on.type, 0), goes_on)
            scf.condition(goes_on, list(before.arguments))
        after = loop.after.blocks.append(*types)
        with ir.InsertionPoint(after), elements.scope():
            self._bind(found.body, after.arguments)
            for step in self.plan.steps:
                self._step(step)
            self._finish()
            counted = [arith.addi(after.arguments[len(starts)], index_constant(1)) for _ in counted]
            scf.yield_([*(elements.at(found.returned[i], ()) for i in found.scalars), *counted])

    def _bind(self, block: ir.Block, values: Sequence[ir.Value]) -> None:
        arguments = [block.arguments[i] for i in self.found.scalars]
        self.elements.bound.update(zip(arguments, values, strict=False))

    def _step(self, step: Step) -> None:
        if step.dot is not None:
            (value,) = step.values
            self.multiply(step.dot.opview, self.scratch[value].buffer)
        else:
            self.nest(step.dims, step.axis, lambda positions: self._write(step, positions))
        self.synchronize()
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
            if value in self.scratch:
                scratch = self.scratch[value]
                self._store(scratch.buffer, register, self._in_scratch(scratch, place), value)
            for i in sorted(self.plan.in_place):
                if found.returned[i] == value:
                    self._store(self.buffers[i], register, place, value)
            for i, window in windows.items():
                if window == value:
                    self._store(self.buffers[i], register, self._in_stack(i, place), value)

    def _in_stack(self, number: int, place: Positions) -> Positions:
        update = self.found.stacks[number]
        whole, window, *starts = update.operands
        first = window_starts(self.elements, starts, dims_of(whole), dims_of(window))
        return tuple(self.elements.math.add(p, s) for p, s in zip(place, first, strict=True))

    def _finish(self) -> None:
        """Copy the states that could not be overwritten before."""
        others = [i for i in self.found.states if i not in self.plan.in_place]
        for i in others:
            value, buffer = self.found.returned[i], self.buffers[i]
            read = self._reader(value)

            def copy(
                positions: Positions, value: ir.Value = value, buffer: ir.Value = buffer, read: Callable = read
            ) -> None:
                self._store(buffer, read(positions), positions, value)

            self.nest(dims_of(value), 0, copy)
        if others:
            self.synchronize()


def _returned(block: ir.Block) -> list[ir.Value]:
    return list(block.operations[len(block.operations) - 1].operands)
