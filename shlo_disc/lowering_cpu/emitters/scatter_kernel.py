# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scatter kernels: combine the updates into the operands one after the other.

The results' buffers hold the operands when the kernel starts; only what it computes itself it writes there first.
Zeros are not computed: memory is cleared faster in whole blocks than in the slices below.

Updates that hit the same element are combined in program order. Work is divided over an axis that updates and operands
share, a batch or a window that no index moves: every thread takes a slice of it through all updates, so no two threads
meet. Where that is the operand's last axis, the slices are worked on in vectors. As in XLA, an update whose window does
not lie inside the operand is dropped as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shlo_disc.dense import array_of
from shlo_disc.lowering.element_types import element_of
from shlo_disc.lowering.elements import Elements, Positions
from shlo_disc.lowering.index_rules import nest
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.reduction import Combiner
from shlo_disc.lowering_cpu.emitters.frame import CpuFrame, store
from shlo_disc.lowering_cpu.emitters.loops import over_lanes
from shlo_disc.mlir import arith, func, ir, scf, stablehlo
from shlo_disc.shape_dialect.dialect.fusion import updates_of
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.transforms.fusion.access import defining_op, resolve


@dataclass
class ScatterNumbers:
    """The dimension numbers of a scatter, over `rank` operand axes and `update_rank` update axes."""

    op: ir.OpView
    count: int

    def __post_init__(self) -> None:
        numbers = stablehlo.ScatterDimensionNumbers(self.op.attributes["scatter_dimension_numbers"])
        self.operand = dims_of(self.op.operands[0])
        self.indices = self.op.operands[self.count]
        self.updates = list(self.op.operands)[self.count + 1 :]
        self.update = dims_of(self.updates[0])
        self.window_axes = list(numbers.update_window_dims)
        self.scatter_axes = [a for a in range(len(self.update)) if a not in self.window_axes]
        dropped = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
        self.window_targets = [a for a in range(len(self.operand)) if a not in dropped]
        self.index_targets = list(numbers.scattered_dims_to_operand_dims)
        self.vector_axis = numbers.index_vector_dim
        self.batch = list(zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True))
        self.is_unique = "unique_indices" in self.op.attributes and self.op.attributes["unique_indices"].value

    @property
    def has_columns(self) -> bool:
        """The windows run along the operand's last axis, and so do the updates' last axes."""
        if not self.window_axes or not self.operand:
            return False
        last = len(self.operand) - 1
        is_last = self.window_axes[-1] == len(self.update) - 1 and self.window_targets[-1] == last
        return is_last and last not in self.index_targets and self.update[-1] == self.operand[-1]

    def shared_axes(self) -> list[tuple[int, int]]:
        """Axes of the updates that are axes of the operands, whatever the indices: (update axis, operand axis)."""
        windows = zip(self.window_axes, self.window_targets, strict=True)
        batches = ((self.scatter_axes[self.place(axis)], target) for target, axis in self.batch)
        return [*((a, t) for a, t in windows if t not in self.index_targets), *batches]

    def place(self, indices_axis: int) -> int:
        """Where an axis of the indices stands among those that are not the vector of components."""
        return indices_axis - (indices_axis > self.vector_axis)

    def window(self, axis: int) -> Expr:
        """The window's size along an operand axis."""
        if axis not in self.window_targets:
            return Expr.const(1)
        return self.update[self.window_axes[self.window_targets.index(axis)]]


def build_scatter(frame: CpuFrame) -> tuple[Expr, int]:
    """Emit the body; returns the number of work items and the cost of one."""
    op = next(o for o in frame.fusion.entry_block.operations if o.operation.name == "stablehlo.scatter")
    numbers = ScatterNumbers(op, len(op.results))
    buffers = [frame.output_buffers[frame.outputs.index(r)] for r in op.results]
    work = product(numbers.update) + product(numbers.operand)
    if not numbers.has_columns:
        total = _scalar_version(frame, op, numbers, buffers)
        return total, max(1, frame.facts.estimate(work) // max(1, frame.facts.estimate(total)))
    elements = frame.elements(frame.width())
    if _has_own_operands(frame):
        _copy_columns(frame, elements, op, numbers, buffers)
    _update_columns(frame, elements, op, numbers, buffers)
    columns = numbers.operand[-1]
    return columns, max(1, frame.facts.estimate(work) // max(1, frame.facts.estimate(columns)))


def starts_from_zeros(fusion: func.FuncOp) -> bool:
    """The operands that a fusion computes itself, one at least, are zeros in every bit."""
    op = next(o for o in fusion.entry_block.operations if o.operation.name == "stablehlo.scatter")
    own = [v for v in list(op.operands)[: len(op.results)] if not isinstance(v.owner, ir.Block)]
    return bool(own) and all(map(_is_zero, own))


def _is_zero(value: ir.Value) -> bool:
    producer = defining_op(resolve(value, None).value)
    if producer is None or producer.name != "stablehlo.constant":
        return False
    return not any(array_of(producer).tobytes())


def _has_own_operands(frame: CpuFrame) -> bool:
    """Some operand is computed in the kernel, not passed to it."""
    return -1 in updates_of(frame.fusion) and not frame.results.are_zero


def _scalar_version(frame: CpuFrame, op: ir.OpView, numbers: ScatterNumbers, buffers: Sequence[ir.Value]) -> Expr:
    """Element by element, one part of an independent axis a thread; returns that axis' size, or 1 when there is none.

    An axis of the updates that is an axis of the operands divides both. Where indices are unique, any axis of the
    updates divides them, provided that the buffers hold the operands already.
    """
    elements = frame.elements(1)
    own = _has_own_operands(frame)
    pairs = sorted(numbers.shared_axes(), key=lambda pair: -frame.facts.estimate(numbers.operand[pair[1]]))
    update_axis, operand_axis = pairs[0] if pairs else (None, None)
    total = Expr.const(1) if operand_axis is None else numbers.operand[operand_axis]
    if not pairs and numbers.is_unique and numbers.update and not own:
        update_axis, total = 0, numbers.update[0]

    def copy(indices: list[ir.Value]) -> None:
        _copy(elements, op, tuple(Position(i) for i in indices), buffers)

    def update(indices: list[ir.Value]) -> None:
        _combine(frame, elements, op, numbers, tuple(Position(i) for i in indices), buffers)

    def part() -> None:
        if own:
            _nest(frame, elements, numbers.operand, operand_axis, copy)
        _nest(frame, elements, numbers.update, update_axis, update)

    if update_axis is not None:
        part()
        return total
    loop = scf.ForOp(frame.begin, frame.end, index_constant(1), [])
    with ir.InsertionPoint(loop.body), elements.scope():
        part()
        scf.yield_([])
    return total


def _nest(
    frame: CpuFrame, elements: Elements, dims: Dims, divided: int | None, body: Callable[[list[ir.Value]], None]
) -> None:
    """Loops over `dims`, along the divided axis over the kernel's own range."""

    def level(indices: list[ir.Value]) -> None:
        axis = len(indices)
        if axis == len(dims):
            body(indices)
            return
        begin, end = index_constant(0), frame.size_of(dims[axis])
        if axis == divided:
            begin, end = frame.begin, arith.minui(frame.end, end)
        loop = scf.ForOp(begin, end, index_constant(1), [])
        with ir.InsertionPoint(loop.body), elements.scope():
            level([*indices, loop.induction_variable])
            scf.yield_([])

    level([])


def _copy_columns(
    frame: CpuFrame, elements: Elements, op: ir.OpView, numbers: ScatterNumbers, buffers: Sequence[ir.Value]
) -> None:
    def row(indices: list[ir.Value], _: list[ir.Value]) -> list[ir.Value]:
        def lanes(column: Position, carried: list[ir.Value], mask: ir.Value | None) -> list[ir.Value]:
            _copy(elements, op, (*(Position(i) for i in indices), column), buffers)
            return []

        return over_lanes(elements, frame.begin, frame.end, False, [], lanes)

    nest(elements, [frame.size_of(d) for d in numbers.operand[:-1]], [], row)


def _update_columns(
    frame: CpuFrame, elements: Elements, op: ir.OpView, numbers: ScatterNumbers, buffers: Sequence[ir.Value]
) -> None:
    def row(indices: list[ir.Value], _: list[ir.Value]) -> list[ir.Value]:
        def lanes(column: Position, carried: list[ir.Value], mask: ir.Value | None) -> list[ir.Value]:
            where = (*(Position(i) for i in indices), column)
            _combine(frame, elements, op, numbers, where, buffers)
            return []

        return over_lanes(elements, frame.begin, frame.end, False, [], lanes)

    nest(elements, [frame.size_of(d) for d in numbers.update[:-1]], [], row)


def _copy(elements: Elements, op: ir.OpView, positions: Positions, buffers: Sequence[ir.Value]) -> None:
    for operand, buffer in zip(op.operands, buffers, strict=False):
        if isinstance(operand.owner, ir.Block):
            continue
        store(buffer, elements.at(operand, positions), positions, element_of(operand.type), elements)


def _combine(
    frame: CpuFrame,
    elements: Elements,
    op: ir.OpView,
    numbers: ScatterNumbers,
    update: Positions,
    buffers: Sequence[ir.Value],
) -> None:
    """One update element, or one vector of them along the last axis."""
    target, inside = _target(frame, elements, numbers, update)
    guard = scf.IfOp(inside, [])
    with ir.InsertionPoint(guard.then_block), elements.scope():
        kinds = [element_of(r.type) for r in op.results]
        dims: Dims = numbers.operand
        old = [elements.load(b, target, k, dims) for b, k in zip(buffers, kinds, strict=True)]
        new = [elements.at(u, update) for u in numbers.updates]
        if elements.width > 1:
            old, new = ([elements.splat(v) for v in values] for values in (old, new))
        combiner = Combiner(op, elements.elementwise)
        for value, buffer, kind in zip(combiner.combine(old, new, exact=True), buffers, kinds, strict=True):
            store(buffer, value, target, kind, elements)
        scf.yield_([])


def _target(
    frame: CpuFrame, elements: Elements, numbers: ScatterNumbers, update: Positions
) -> tuple[Positions, ir.Value]:
    """Where an update element goes, and whether its window lies inside the operand."""
    scatter: list[Position] = [update[a] for a in numbers.scatter_axes]
    zero = index_constant(0)
    starts: dict[int, ir.Value] = {}
    for component, axis in enumerate(numbers.index_targets):
        where = list(scatter)
        if numbers.vector_axis < len(dims_of(numbers.indices)):
            where.insert(numbers.vector_axis, Position(index_constant(component)))
        index = elements.at(numbers.indices, tuple(where))
        starts[axis] = elements.as_index(index, element_of(numbers.indices.type)).base
    inside = arith.constant(ir.IntegerType.get_signless(1), 1)
    for axis, start in starts.items():
        last = arith.subi(frame.size_of(numbers.operand[axis]), frame.size_of(numbers.window(axis)))
        inside = arith.andi(inside, arith.cmpi(arith.CmpIPredicate.sge, start, zero))
        inside = arith.andi(inside, arith.cmpi(arith.CmpIPredicate.sle, start, last))
    target: list[Position] = []
    for axis in range(len(numbers.operand)):
        offset = Position(zero)
        if axis in numbers.window_targets:
            offset = update[numbers.window_axes[numbers.window_targets.index(axis)]]
        target.append(elements.math.add(offset, starts[axis]) if axis in starts else offset)
    for axis, indices_axis in numbers.batch:
        target[axis] = scatter[numbers.place(indices_axis)]
    return tuple(target), inside
