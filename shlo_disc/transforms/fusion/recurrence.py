# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops whose rows do not depend on each other, such as a recurrent network over a batch.

Row i of everything that such a loop carries depends on row i of what it carried before, on values from outside and on
counters, but on no other row. So the whole loop can run for some rows on one thread and for others on another, and
nobody waits for anybody between two iterations. What a loop carries is of three kinds:

* scalars, which every thread computes for itself: the counter above all;
* states, whose axis 0 is the rows;
* stacks, of which an iteration writes a window and reads nothing: what a scan returns for each step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from shlo_disc.mlir import ir, stablehlo
from shlo_disc.shape_dialect.expr import Expr
from shlo_disc.shape_dialect.op_sets import ELEMENTWISE
from shlo_disc.shape_dialect.propagation import integers
from shlo_disc.shape_dialect.regions import nested_blocks, terminator_of
from shlo_disc.shape_dialect.types import Dims, bytes_of, dims_of, element_type_of, product
from shlo_disc.transforms.counted_loops import affine, count_of
from shlo_disc.transforms.fusion.access import BROADCASTS, GENERATORS, RESHAPES, defining_op

MAX_WEIGHTS = 5 << 18
"""Bytes of the matrices that states are multiplied by: each thread reads all of them in every iteration."""

MAX_ROW = 1 << 15
"""Elements of one row of all values of an iteration together."""

_SLICES = frozenset({"stablehlo.dynamic_slice", "stablehlo.real_dynamic_slice", "stablehlo.slice"})


@dataclass
class Recurrence:
    """A loop of independent rows.

    `scalars`, `states` and `stacks` are positions among the carried values. `row_axis` has an entry for each value of
    the body that depends on the row: the axis that the rows lie along. `trip` is the number of iterations if it is
    known from the sizes; `covered` are the stacks of which every element is written.
    """

    loop: ir.OpView
    rows: Expr
    scalars: list[int] = field(default_factory=list)
    states: list[int] = field(default_factory=list)
    stacks: dict[int, ir.Operation] = field(default_factory=dict)
    row_axis: dict[ir.Value, int] = field(default_factory=dict)
    trip: Expr | None = None
    covered: set[int] = field(default_factory=set)

    @property
    def body(self) -> ir.Block:
        """The block that an iteration runs."""
        return nested_blocks(self.loop)[1]

    @property
    def condition(self) -> ir.Block:
        """The block that decides whether there is another iteration."""
        return nested_blocks(self.loop)[0]

    @property
    def returned(self) -> list[ir.Value]:
        """The carried values after an iteration."""
        return list(terminator_of(self.body).operands)

    def windows(self) -> dict[int, ir.Value]:
        """What is written into each stack."""
        return {i: op.operands[1] for i, op in self.stacks.items()}


def find_recurrence(op: ir.Operation | ir.OpView) -> Recurrence | None:
    """The rows of a loop; None when it has none that are independent, or when they are not worth a kernel."""
    if op.operation.name != "stablehlo.while":
        return None
    loop = op.operation.opview
    condition, body = nested_blocks(loop)
    found = Recurrence(loop, Expr.const(0))
    for position, (argument, value) in enumerate(zip(body.arguments, found.returned, strict=True)):
        if not isinstance(argument.type, ir.RankedTensorType):
            return None
        update = _stack_update(argument, value, condition.arguments[position])
        if not dims_of(argument):
            found.scalars.append(position)
        elif update is not None:
            found.stacks[position] = update
        else:
            found.states.append(position)
    if not found.states:
        return None
    found.rows = dims_of(body.arguments[found.states[0]])[0]
    if not (_is_walkable(found) and _RowAnalysis(found).run() and _is_worth_it(found)):
        return None
    _count(found)
    return found


def _stack_update(argument: ir.Value, value: ir.Value, in_condition: ir.Value) -> ir.Operation | None:
    """The op that writes a window of a carried value, when nothing else reads it and nothing else reads the result."""
    op = defining_op(value)
    if op is None or op.name != "stablehlo.dynamic_update_slice" or op.operands[0] != argument:
        return None
    uses = [list(v.uses) for v in (argument, value, in_condition)]
    return op if [len(u) for u in uses] == [1, 1, 0] else None


def _is_walkable(found: Recurrence) -> bool:
    """Whether scalars stay inside of the loop and the condition depends on nothing else, and states have equal rows."""
    if any(list(found.loop.results[i].uses) for i in found.scalars):
        return False
    others = [*found.states, *found.stacks]
    if any(list(found.condition.arguments[i].uses) for i in others):
        return False
    return all(dims_of(found.body.arguments[i])[0] == found.rows for i in found.states)


# ---- which axis the rows are --------------------------------------------------------------------------------------


class _Dependent(Exception):
    """A row would depend on another one, or on something that a kernel cannot compute for a row."""


class _RowAnalysis:
    """Follows the rows from the states through the body."""

    def __init__(self, found: Recurrence):
        self.found = found
        self.axis = found.row_axis

    def run(self) -> bool:
        """Fill in `row_axis`; False when a row depends on another one."""
        found = self.found
        self.axis.update({found.body.arguments[i]: 0 for i in found.states})
        updates = set(found.stacks.values())
        try:
            for op in list(found.condition.operations)[:-1]:
                self._visit(op.operation)
            for op in list(found.body.operations)[:-1]:
                if op.operation not in updates:
                    self._visit(op.operation)
        except _Dependent:
            return False
        return self._returns_rows() and all(self._writes_rows(op) for op in updates)

    def _returns_rows(self) -> bool:
        found, returned = self.found, self.found.returned
        states = all(self.axis.get(returned[i], 0) == 0 for i in found.states)
        return states and not any(returned[i] in self.axis for i in found.scalars)

    def _writes_rows(self, update: ir.Operation) -> bool:
        """A window has all rows; where its values depend on none, each thread still writes those of its own."""
        window = update.operands[1]
        sizes = zip(dims_of(update.operands[0]), dims_of(window), strict=True)
        whole = [axis for axis, (a, b) in enumerate(sizes) if a == b == self.found.rows]
        if whole:
            self.axis.setdefault(window, whole[0])
        return self.axis.get(window) in whole

    def _visit(self, op: ir.Operation) -> None:
        rule = _RULES.get(op.name)
        if op.name in ELEMENTWISE:
            rule = _elementwise
        if rule is None or len(op.results) != 1:
            raise _Dependent
        if op.name == "stablehlo.dot_general":
            _check_dot(op, self.found)
            self.axis[op.results[0]] = 0
            return
        axes = [self.axis.get(v) for v in op.operands]
        if any(a is not None for a in axes):
            axis = rule(op, axes)
            if axis is None or dims_of(op.results[0])[axis] != self.found.rows:
                raise _Dependent
            self.axis[op.results[0]] = axis


Axes = list[int | None]


def _elementwise(op: ir.Operation, axes: Axes) -> int | None:
    different = {a for a in axes if a is not None}
    return different.pop() if len(different) == 1 else None


def _first(op: ir.Operation, axes: Axes) -> int | None:
    """The axis of operand 0, when no other operand depends on the row."""
    return axes[0] if not any(a is not None for a in axes[1:]) else None


def _broadcast(op: ir.Operation, axes: Axes) -> int | None:
    axis = _first(op, axes)
    return None if axis is None else integers(op.attributes["broadcast_dimensions"])[axis]


def _reshape(op: ir.Operation, axes: Axes) -> int | None:
    axis = _first(op, axes)
    if axis is None:
        return None
    source, result = dims_of(op.operands[0]), dims_of(op.results[0])
    before = product(source[:axis])
    places = (i for i, d in enumerate(result) if d == source[axis] and product(result[:i]) == before)
    return next(places, None)


def _slice(op: ir.Operation, axes: Axes) -> int | None:
    """A slice that takes all rows."""
    axis = _first(op, axes)
    if axis is None or dims_of(op.operands[0])[axis] != dims_of(op.results[0])[axis]:
        return None
    return axis


def _pad(op: ir.Operation, axes: Axes) -> int | None:
    axis = _first(op, axes)
    amounts = ("edge_padding_low", "edge_padding_high", "interior_padding")
    if axis is None or any(integers(op.attributes[name])[axis] for name in amounts):
        return None
    return axis


def _transpose(op: ir.Operation, axes: Axes) -> int | None:
    axis = _first(op, axes)
    return None if axis is None else integers(op.attributes["permutation"]).index(axis)


def _concatenate(op: ir.Operation, axes: Axes) -> int | None:
    axis = _elementwise(op, axes)
    return None if axis == ir.IntegerAttr(op.attributes["dimension"]).value else axis


def _reverse(op: ir.Operation, axes: Axes) -> int | None:
    axis = _first(op, axes)
    return None if axis in integers(op.attributes["dimensions"]) else axis


def _gather(op: ir.Operation, axes: Axes) -> int | None:
    """Indices that depend on the row, into a table that does not."""
    axis = axes[1]
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    if axes[0] is not None or axis is None or axis == numbers.index_vector_dim:
        return None
    batch = [i for i in range(len(dims_of(op.results[0]))) if i not in list(numbers.offset_dims)]
    return batch[axis - (axis > numbers.index_vector_dim)]


def _reduce(op: ir.Operation, axes: Axes) -> int | None:
    """A reduction of one value along other axes."""
    axis = _first(op, axes)
    reduced = integers(op.attributes["dimensions"])
    return None if axis is None or axis in reduced else axis - sum(1 for a in reduced if a < axis)


_RULES: dict[str, Callable[[ir.Operation, Axes], int | None]] = {
    **dict.fromkeys(BROADCASTS, _broadcast),
    **dict.fromkeys(GENERATORS, _first),
    **dict.fromkeys(RESHAPES, _reshape),
    **dict.fromkeys(_SLICES, _slice),
    "stablehlo.concatenate": _concatenate,
    "stablehlo.dot_general": _first,
    "stablehlo.gather": _gather,
    "stablehlo.pad": _pad,
    "stablehlo.reduce": _reduce,
    "stablehlo.reverse": _reverse,
    "stablehlo.transpose": _transpose,
}


def _check_dot(op: ir.Operation, found: Recurrence) -> None:
    """A product of rows [rows, k] with a matrix [k, n] from outside."""
    lhs, rhs = op.operands
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    ranks = [len(dims_of(v)) for v in (lhs, rhs)]
    contracted = [list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)]
    if ranks != [2, 2] or contracted != [[1], [0]] or list(numbers.lhs_batching_dimensions):
        raise _Dependent
    types = {str(element_type_of(v)) for v in (lhs, rhs, op.results[0])}
    is_inside = rhs.owner == found.body or defining_op(rhs) is not None and rhs.owner.operation.block == found.body
    sizes = (*dims_of(rhs), *dims_of(op.results[0])[1:])
    if len(types) != 1 or not types <= {"f32", "f64"} or is_inside or any(d.constant in (None, 0) for d in sizes):
        raise _Dependent
    if found.row_axis.get(lhs, 0) != 0 or dims_of(lhs)[0] != found.rows:
        raise _Dependent


# ---- cost ---------------------------------------------------------------------------------------------------------


def dots_of(found: Recurrence) -> list[ir.Operation]:
    """The products in the body."""
    return [op.operation for op in found.body.operations if op.operation.name == "stablehlo.dot_general"]


def row_dims(value: ir.Value, axis: int | None) -> Dims:
    """The sizes of one row of a value."""
    return tuple(d for i, d in enumerate(dims_of(value)) if i != axis)


def _is_worth_it(found: Recurrence) -> bool:
    """Whether a row is of a fixed, moderate size, and the weights stay in a core's cache."""
    weights = sum(product(dims_of(op.operands[1])).constant or 0 for op in dots_of(found))
    width = max((bytes_of(element_type_of(op.results[0])) for op in dots_of(found)), default=0)
    kept = [found.body.arguments[i] for i in found.states]
    kept += [v for v in found.row_axis if v not in kept]
    sizes = [product(row_dims(v, found.row_axis[v])).constant for v in kept]
    known = [s for s in sizes if s is not None]
    return weights * width <= MAX_WEIGHTS and len(known) == len(sizes) and sum(known) <= MAX_ROW


# ---- the number of iterations -------------------------------------------------------------------------------------


def _count(found: Recurrence) -> None:
    """Fill in `trip` and `covered` for a loop that counts from 0 up to a size."""
    count = count_of(found.loop)
    if count is None:
        return
    found.trip = count.trip
    counter = found.body.arguments[count.position]
    found.covered = {number for number, op in found.stacks.items() if _covers(op, counter, count.trip)}


def _covers(update: ir.Operation, counter: ir.Value, trip: Expr) -> bool:
    """Whether the windows of all iterations together are the whole stack."""
    whole, window = dims_of(update.operands[0]), dims_of(update.operands[1])
    moving = [i for i, (a, b) in enumerate(zip(whole, window, strict=True)) if a != b]
    if len(moving) != 1:
        return not moving and trip.constant not in (None, 0)
    axis = moving[0]
    place = affine(update.operands[2 + axis], counter)
    return window[axis].constant == 1 and whole[axis] == trip and place in ((1, Expr.const(0)), (-1, trip - 1))


__all__ = ["Recurrence", "dots_of", "find_recurrence", "row_dims"]
