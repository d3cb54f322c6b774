# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of a scatter common to kernels of every target: an update's target, and its combination.

The results' buffers hold the operands when updates are combined into them. As in XLA, an update whose window does not
lie inside the operand is dropped as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shlo_disc.lowering.element_types import element_of
from shlo_disc.lowering.elements import Elements, Positions
from shlo_disc.lowering.frame import Frame
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.reduction import Combiner
from shlo_disc.shape_dialect.dense import array_of
from shlo_disc.shape_dialect.dialect.fusion import Scatter, kind_of, updates_of
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import arith, func, ir, scf, stablehlo
from shlo_disc.shape_dialect.ops.access import defining_op, resolve
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import is_constant


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
        """The position of an axis of the indices among those that are not the vector of components."""
        return indices_axis - (indices_axis > self.vector_axis)

    def window(self, axis: int) -> Expr:
        """The window's size along an operand axis."""
        if axis not in self.window_targets:
            return Expr.const(1)
        return self.update[self.window_axes[self.window_targets.index(axis)]]


def scatter_in(fusion: func.FuncOp) -> ir.OpView:
    """The scatter of a fusion of that kind."""
    return next(op for op in fusion.entry_block.operations if op.operation.name == "stablehlo.scatter")


# ---- what results start from ----------------------------------------------------------------------------------------


def results_from_zeros(fusion: func.FuncOp) -> tuple[int, ...]:
    """The results of a scatter that start from no operand, where zeros in every bit are what they start from."""
    if kind_of(fusion) != Scatter.kind or not _starts_from_zeros(fusion):
        return ()
    return tuple(i for i, number in enumerate(updates_of(fusion)) if number < 0)


def _starts_from_zeros(fusion: func.FuncOp) -> bool:
    """The operands that a fusion computes itself, one at least, are zeros in every bit."""
    op = scatter_in(fusion)
    own = [v for v in list(op.operands)[: len(op.results)] if not isinstance(v.owner, ir.Block)]
    return bool(own) and all(map(_is_zero, own))


def _is_zero(value: ir.Value) -> bool:
    producer = defining_op(resolve(value, None).value)
    if producer is None or not is_constant(producer):
        return False
    return not any(array_of(producer).tobytes())


# ---- one update -----------------------------------------------------------------------------------------------------


def target_of(elements: Elements, numbers: ScatterNumbers, update: Positions) -> tuple[Positions, ir.Value]:
    """The target of an update element, and whether its window lies inside the operand."""
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
        last = arith.subi(elements.size_of(numbers.operand[axis]), elements.size_of(numbers.window(axis)))
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


def combine_where(
    frame: Frame,
    elements: Elements,
    numbers: ScatterNumbers,
    update: Positions,
    target: Positions,
    condition: ir.Value,
    buffers: Sequence[ir.Value],
) -> None:
    """Combine, under a condition, one update element, or one vector of them along the last axis, into its target."""
    op = numbers.op
    guard = scf.IfOp(condition, [])
    with ir.InsertionPoint(guard.then_block), elements.scope():
        kinds = [element_of(r.type) for r in op.results]
        dims: Dims = numbers.operand
        old = [elements.load(b, target, k, dims) for b, k in zip(buffers, kinds, strict=True)]
        new = [elements.at(u, update) for u in numbers.updates]
        if elements.width > 1:
            old, new = ([elements.splat(v) for v in values] for values in (old, new))
        combiner = Combiner(op, elements.elementwise)
        for value, buffer, result in zip(combiner.combine(old, new, exact=True), buffers, op.results, strict=True):
            frame.store(buffer, value, target, result, elements, False)
        scf.yield_([])
