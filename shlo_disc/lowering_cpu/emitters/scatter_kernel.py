# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scatter kernels: combine the updates into the operands one after the other.

The results' buffers hold the operands when the kernel starts; only what it computes itself it writes there first.
Zeros are not computed: memory is cleared faster in whole blocks than in the slices below.

Updates that hit the same element are combined in program order. Work is divided over an axis that updates and operands
share, a batch or a window that no index moves: every thread takes a slice of it through all updates, so no two threads
meet. Where that is the operand's last axis, the slices are blocks of columns, which are worked on in vectors. As in
XLA, an update whose window does not lie inside the operand is dropped as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shlo_disc.lowering.element_types import element_of
from shlo_disc.lowering.elements import Positions
from shlo_disc.lowering.index_rules import nest
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.scatter import ScatterNumbers, combine_where, scatter_in, target_of
from shlo_disc.lowering_cpu.emitters.frame import CpuFrame, store
from shlo_disc.lowering_cpu.emitters.loops import column_blocks, columns_of_items, over_lanes
from shlo_disc.lowering_cpu.emitters.vector_elements import VectorElements
from shlo_disc.shape_dialect.dialect.fusion import updates_of
from shlo_disc.shape_dialect.dialect.types import Dims, product
from shlo_disc.shape_dialect.mlir import arith, ir, scf
from shlo_disc.shape_dialect.symbolic.expr import Expr

_COST_OF_VISIT = 4
"""The cost of an access to a place that an index says, in simple vector ops."""


def build_scatter(frame: CpuFrame) -> tuple[Expr, Expr]:
    """Emit the body; returns the number of work items and the cost of one."""
    op = scatter_in(frame.fusion)
    numbers = ScatterNumbers(op, len(op.results))
    buffers = [frame.output_buffers[frame.outputs.index(r)] for r in op.results]
    if not numbers.has_columns:
        return _scalar_version(frame, op, numbers, buffers)
    elements = frame.elements(frame.width())
    own = int(_has_own_operands(frame))
    if own:
        _copy_columns(frame, elements, op, numbers, buffers)
    _update_columns(frame, elements, op, numbers, buffers)
    items, length = column_blocks(numbers.operand[-1], elements.width)
    vectors = length // frame.lanes
    updates = _COST_OF_VISIT * (vectors + 2) * product(numbers.update[:-1])
    return items, updates + vectors * own * product(numbers.operand[:-1])


def _has_own_operands(frame: CpuFrame) -> bool:
    """Some operand is computed in the kernel, not passed to it."""
    return -1 in updates_of(frame.fusion) and not frame.buffers.are_zero


def _scalar_version(
    frame: CpuFrame, op: ir.OpView, numbers: ScatterNumbers, buffers: Sequence[ir.Value]
) -> tuple[Expr, Expr]:
    """Element by element, one part of an independent axis a thread; returns that axis' size, or 1 when there is none,
    and the cost of a part.

    An axis of the updates that is an axis of the operands divides both. Where indices are unique, any axis of the
    updates divides them, provided that the buffers hold the operands already.
    """
    elements = frame.elements(1)
    own = int(_has_own_operands(frame))
    pairs = sorted(numbers.shared_axes(), key=lambda pair: -frame.facts.estimate(numbers.operand[pair[1]]))
    update_axis, operand_axis = pairs[0] if pairs else (None, None)
    total = Expr.const(1) if operand_axis is None else numbers.operand[operand_axis]
    if not pairs and numbers.is_unique and numbers.update and not own:
        update_axis, total = 0, numbers.update[0]

    def copy(indices: list[ir.Value]) -> None:
        _copy(elements, op, tuple(Position(i) for i in indices), buffers)

    def update(indices: list[ir.Value]) -> None:
        _combine(frame, elements, numbers, tuple(Position(i) for i in indices), buffers)

    def part() -> None:
        if own:
            _nest(frame, elements, numbers.operand, operand_axis, copy)
        _nest(frame, elements, numbers.update, update_axis, update)

    dims = _without(numbers.update, update_axis), _without(numbers.operand, operand_axis)
    cost = _COST_OF_VISIT * product(dims[0]) + own * product(dims[1])
    if update_axis is not None:
        part()
        return total, cost
    loop = scf.ForOp(frame.begin, frame.end, index_constant(1), [])
    with ir.InsertionPoint(loop.body), elements.scope():
        part()
        scf.yield_([])
    return total, cost


def _without(dims: Dims, axis: int | None) -> Dims:
    return tuple(d for number, d in enumerate(dims) if number != axis)


def _nest(
    frame: CpuFrame, elements: VectorElements, dims: Dims, divided: int | None, body: Callable[[list[ir.Value]], None]
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
    frame: CpuFrame, elements: VectorElements, op: ir.OpView, numbers: ScatterNumbers, buffers: Sequence[ir.Value]
) -> None:
    begin, end = columns_of_items(elements, frame.begin, frame.end, numbers.operand[-1])

    def row(indices: list[ir.Value], _: list[ir.Value]) -> list[ir.Value]:
        def lanes(column: Position, carried: list[ir.Value], mask: ir.Value | None) -> list[ir.Value]:
            _copy(elements, op, (*(Position(i) for i in indices), column), buffers)
            return []

        return over_lanes(elements, begin, end, False, [], lanes)

    nest(elements, [frame.size_of(d) for d in numbers.operand[:-1]], [], row)


def _update_columns(
    frame: CpuFrame, elements: VectorElements, op: ir.OpView, numbers: ScatterNumbers, buffers: Sequence[ir.Value]
) -> None:
    begin, end = columns_of_items(elements, frame.begin, frame.end, numbers.operand[-1])

    def row(indices: list[ir.Value], _: list[ir.Value]) -> list[ir.Value]:
        def lanes(column: Position, carried: list[ir.Value], mask: ir.Value | None) -> list[ir.Value]:
            where = (*(Position(i) for i in indices), column)
            _combine(frame, elements, numbers, where, buffers)
            return []

        return over_lanes(elements, begin, end, False, [], lanes)

    nest(elements, [frame.size_of(d) for d in numbers.update[:-1]], [], row)


def _copy(elements: VectorElements, op: ir.OpView, positions: Positions, buffers: Sequence[ir.Value]) -> None:
    for operand, buffer in zip(op.operands, buffers, strict=False):
        if isinstance(operand.owner, ir.Block):
            continue
        store(buffer, elements.at(operand, positions), positions, element_of(operand.type), elements)


def _combine(
    frame: CpuFrame, elements: VectorElements, numbers: ScatterNumbers, update: Positions, buffers: Sequence[ir.Value]
) -> None:
    """One update element, or one vector of them along the last axis."""
    target, inside = target_of(elements, numbers, update)
    combine_where(frame, elements, numbers, update, target, inside, buffers)
