# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scatter kernels for GPUs: combine the updates into the operands, which the results' buffers hold already.

There are two kinds. Side by side, each element of the updates is combined by a thread. In order, each thread has some
elements of the result, and walks through all updates that may reach them, so updates are combined one after the other
as in XLA on a CPU, and the same bits come out at each run. It takes as many steps as there are indices.

* Unique indices: side by side, by plain accesses.
* Bodies in which the order of updates does not show, or in the rounding alone (sums, products, extremes, bits, a
  difference): side by side, by atomic operations. The last bits of sums and products of floats then change from run to
  run. With `Options(deterministic=True)` those are computed in order.
* Bodies in which the order shows (a replacement, or any computed body): in order up to SHORT steps, so that the last of
  equal indices is the one that stays. Beyond, side by side by atomic operations: each update is applied whole, in an
  order that StableHLO leaves open. With `Options(deterministic=True)`, always in order.
* Bodies with several results that depend on each other (complex products), and bodies that are loops: always in order,
  for no atomic operation is as wide.
"""

from __future__ import annotations

from collections.abc import Callable

from shlo_disc.lowering.element_types import element_of
from shlo_disc.lowering.elements import Positions, uniform
from shlo_disc.lowering.index_rules import nest
from shlo_disc.lowering.kernels import delinearize, op_cost
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.scatter import ScatterNumbers, combine_where, scatter_in, target_of
from shlo_disc.lowering_gpu.atomics import RELAXED, combine_atomically
from shlo_disc.lowering_gpu.grid import THREADS, each_thread
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.lowering_gpu.scatter_body import ScatterBody
from shlo_disc.shape_dialect.dialect.types import product
from shlo_disc.shape_dialect.mlir import arith, ir, scf
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.shape_dialect.symbolic.facts import Relation

SHORT = 1024
"""Steps up to which updates whose order shows are combined in order: some tens of microseconds."""

WALKERS = 1 << 15
"""Threads of a walk in order, about as many as a GPU runs at a time."""

PARTS = 1024
"""Parts, at most, that the elements of a result are divided into where updates share no axis with it."""

Combine = Callable[[Positions, Positions, ir.Value], None]
"""Combines the update element at a position into a target, where a condition holds."""


def build_scatter(frame: GpuFrame) -> tuple[Expr, int]:
    """Emit the body; returns how many blocks have work, and the cost of what one does."""
    cost = sum(op_cost(op) for op in frame.fusion.entry_block.operations)
    return ScatterKernel(frame).emit(), max(1, cost) * THREADS


class ScatterKernel:
    """The kernel of one scatter.

    rest: axes of the updates that are no axes of the operands, in the order in which they are walked through: windows
    of one index before those of the next. parts: a power of two.
    """

    def __init__(self, frame: GpuFrame):
        self.frame = frame
        self.op = scatter_in(frame.fusion)
        self.body = ScatterBody(self.op)
        self.numbers = ScatterNumbers(self.op, len(self.op.results))
        self.buffers = [frame.output_buffers[frame.outputs.index(r)] for r in self.op.results]
        self.elements = frame.elements()
        self.shared = self.numbers.shared_axes()
        taken = {axis for axis, _ in self.shared}
        self.rest = [a for a in (*self.numbers.scatter_axes, *self.numbers.window_axes) if a not in taken]
        reached = {target for _, target in self.shared}
        self.moved = [axis for axis in range(len(self.numbers.operand)) if axis not in reached]
        self.parts = self._parts()

    @property
    def steps(self) -> Expr:
        """The number of steps of a walk."""
        return product(self.numbers.update[axis] for axis in self.rest)

    def emit(self) -> Expr:
        """The kernel; returns how many blocks have work."""
        body, frame = self.body, self.frame
        if self.numbers.is_unique:
            return self._side_by_side(self._combine_plainly)
        must_walk = frame.deterministic and (body.shows_order or body.shows_rounding)
        if must_walk or not body.has_atomic_form:
            return self._in_order()
        if not body.shows_order:
            return self._side_by_side(self._combine_atomically)
        return self._in_order_if_short()

    def _in_order_if_short(self) -> Expr:
        limit = Relation.le(self.steps, SHORT)
        is_short = self.frame.facts.prove(limit)
        if is_short is not None:
            return self._in_order() if is_short else self._side_by_side(self._combine_atomically)
        self.frame.guard("in order", "by atomic operations", limit, of_size=True)
        condition = arith.cmpi(arith.CmpIPredicate.ule, self.frame.size_of(self.steps), index_constant(SHORT))
        choice = scf.IfOp(condition, [], has_else=True)
        with ir.InsertionPoint(choice.then_block), self.elements.scope():
            ordered = self._in_order()
            scf.yield_([])
        with ir.InsertionPoint(choice.else_block), self.elements.scope():
            unordered = self._side_by_side(self._combine_atomically)
            scf.yield_([])
        return Expr.maximum(ordered, unordered)

    # ---- side by side -----------------------------------------------------------------------------------------------

    def _side_by_side(self, combine: Combine) -> Expr:
        """Each element of the updates by a thread."""
        dims = self.numbers.update
        total = product(dims)

        def element(linear: ir.Value) -> None:
            with self.elements.scope():
                update = uniform(delinearize(linear, dims, self.frame.size_of))
                combine(update, *target_of(self.elements, self.numbers, update))

        each_thread(self.frame.size_of(total), element)
        return ceildiv(total, THREADS)

    def _combine_plainly(self, update: Positions, target: Positions, condition: ir.Value) -> None:
        combine_where(self.frame, self.elements, self.numbers, update, target, condition, self.buffers)

    def _combine_atomically(self, update: Positions, target: Positions, condition: ir.Value) -> None:
        self.frame.function.attributes[RELAXED] = ir.UnitAttr.get()
        guard = scf.IfOp(condition, [])
        with ir.InsertionPoint(guard.then_block), self.elements.scope():
            for combination, values in zip(self.body.combinations, self.numbers.updates, strict=True):
                self._combine_one(combination.index, combination.name, self.elements.at(values, update), target)
            scf.yield_([])

    def _combine_one(self, index: int, name: str | None, new: ir.Value, target: Positions) -> None:
        place, element = [p.base for p in target], element_of(self.op.results[index].type)

        def combine(old: ir.Value) -> ir.Value:
            return self.body.combined(index, old, new, self.elements.elementwise)

        combine_atomically(self.buffers[index], place, element, name, new, combine)

    # ---- in order ---------------------------------------------------------------------------------------------------

    def _parts(self) -> int:
        """The number of threads that have one place of the shared axes: each has a part of the elements there."""
        facts, numbers = self.frame.facts, self.numbers
        places = facts.estimate(product(numbers.update[axis] for axis, _ in self.shared))
        elements = facts.estimate(product(numbers.operand[axis] for axis in self.moved))
        wanted = min(elements, WALKERS // max(1, places), PARTS)
        return 1 << max(0, wanted - 1).bit_length()

    def _in_order(self) -> Expr:
        """Each place of the shared axes, and part of the elements there, by a thread."""
        update = self.numbers.update
        domain = (Expr.const(self.parts), *(update[axis] for axis, _ in self.shared))
        counts = [self.frame.size_of(update[axis]) for axis in self.rest]

        def walk(linear: ir.Value) -> None:
            with self.elements.scope():
                part, *places = delinearize(linear, domain, self.frame.size_of)
                at = dict(zip((axis for axis, _ in self.shared), places, strict=True))

                def step(indices: list[ir.Value], _: list[ir.Value]) -> list[ir.Value]:
                    self._step(part, at | dict(zip(self.rest, indices, strict=True)))
                    return []

                nest(self.elements, counts, [], step)

        each_thread(self.frame.size_of(product(domain)), walk)
        return ceildiv(product(domain), THREADS)

    def _step(self, part: ir.Value, at: dict[int, ir.Value]) -> None:
        """The update element at an index of each axis, if it goes to an element of this thread's."""
        update = tuple(Position(at[axis]) for axis in range(len(at)))
        target, inside = target_of(self.elements, self.numbers, update)
        if self.parts > 1:
            dims = tuple(self.numbers.operand[axis] for axis in self.moved)
            offset = self.elements.linear_offset(tuple(target[axis] for axis in self.moved), dims).base
            own = arith.andi(offset, index_constant(self.parts - 1))
            inside = arith.andi(inside, arith.cmpi(arith.CmpIPredicate.eq, own, part))
        self._combine_plainly(update, target, inside)
