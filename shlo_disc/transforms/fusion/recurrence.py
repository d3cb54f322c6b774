# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds loops whose rows do not depend on each other, such as a recurrent network over a batch.

The whole loop can run for some rows on one thread and for others on another, and nobody waits for anybody between two
iterations. `shape_dialect/ops/recurrences.py` says what such a loop carries, and reads what is found here.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.fusion import RecurrentLoop
from shlo_disc.shape_dialect.dialect.types import Dims, bytes_of, dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks, symbols_read_in
from shlo_disc.shape_dialect.ops.recurrences import LoopOfRows, row_dims
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import terminator_of
from shlo_disc.transforms.control_flow.counted_loops import Affine, affine, count_of
from shlo_disc.transforms.decisions import Pattern
from shlo_disc.transforms.fusion.rows import RowAnalysis


@dataclass
class _Candidate(LoopOfRows):
    """A loop that may be one of independent rows, and the ops that speak against it, as `RowAnalysis` finds them."""

    crossing: ir.Operation | None = None
    mixing: ir.Operation | None = None


def find_recurrence(op: ir.Operation | ir.OpView) -> LoopOfRows | None:
    """The rows of a loop; None when it has none that are independent, or when they are not worth a kernel."""
    if op.operation.name != "stablehlo.while":
        return None
    found = RECURRENCE.match(_candidate, op.operation.opview)
    if found is None or not _is_worth_it(found):
        return None
    _count(found)
    return found


def described(op: ir.OpView) -> RecurrentLoop:
    """The description, for later stages, of a loop that is a recurrence. Raises CompilerError of any other."""
    found = find_recurrence(op)
    if found is None:
        raise CompilerError("fuse: a fusion of kind recurrence holds a loop whose rows are not independent")
    windows = tuple(found.row_axis[window] for window in found.windows().values())
    covered = tuple(sorted(found.covered))
    return RecurrentLoop(tuple(found.states), tuple(found.scalars), tuple(found.stacks), windows, covered, found.trip)


# ---- what has to hold ---------------------------------------------------------------------------------------------

RECURRENCE: Pattern[_Candidate] = Pattern("recurrence", "a loop over independent rows is one kernel")


def _candidate(loop: ir.OpView) -> _Candidate | None:
    """The values that the loop carries, and its rows, which are those of its first state; None when it has no state."""
    condition, body = nested_blocks(loop)
    scalars: list[int] = []
    states: list[int] = []
    stacks: dict[int, ir.Operation] = {}
    for position, (argument, value) in enumerate(zip(body.arguments, terminator_of(body).operands, strict=True)):
        if not isinstance(argument.type, ir.RankedTensorType):
            return None
        update = _stack_update(argument, value, condition.arguments[position])
        if not dims_of(argument):
            scalars.append(position)
        elif update is not None:
            stacks[position] = update
        else:
            states.append(position)
    if not states:
        return None
    carried = [body.arguments[i] for i in states]
    analysis = RowAnalysis(body, dims_of(carried[0])[0], dict.fromkeys(carried, 0))
    updates = set(stacks.values())
    analysis.run(list(condition.operations)[:-1])
    analysis.run([op for op in list(body.operations)[:-1] if op.operation not in updates])
    found = _Candidate(loop, analysis.rows, analysis.axis, scalars, states, stacks)
    found.crossing, found.mixing = analysis.crossing, analysis.mixing
    _give_windows_rows(found)
    return found


def _stack_update(argument: ir.Value, value: ir.Value, in_condition: ir.Value) -> ir.Operation | None:
    """The op that writes a window of a carried value, when nothing else reads it and nothing else reads the result."""
    op = defining_op(value)
    if op is None or op.name != "stablehlo.dynamic_update_slice" or op.operands[0] != argument:
        return None
    uses = [list(v.uses) for v in (argument, value, in_condition)]
    return op if [len(u) for u in uses] == [1, 1, 0] else None


def _whole_axes(found: _Candidate, update: ir.Operation) -> list[int]:
    """The axes of a stack along which a window has all rows."""
    sizes = zip(dims_of(update.operands[0]), dims_of(update.operands[1]), strict=True)
    return [axis for axis, (a, b) in enumerate(sizes) if a == b == found.rows]


def _give_windows_rows(found: _Candidate) -> None:
    """Give rows to windows whose values depend on no row: each thread still writes those of its own rows."""
    for update in found.stacks.values():
        for axis in _whole_axes(found, update)[:1]:
            found.row_axis.setdefault(update.operands[1], axis)


@RECURRENCE.requires("all states have the same number of rows")
def _states_have_the_same_rows(found: _Candidate) -> bool:
    return all(dims_of(found.body.arguments[i])[0] == found.rows for i in found.states)


@RECURRENCE.requires("no size is read from data in it")
def _reads_no_sizes(found: _Candidate) -> bool:
    return not symbols_read_in(found.loop)


@RECURRENCE.requires("the results of scalars are not used: no thread would be the one to write them")
def _scalars_stay_inside(found: _Candidate) -> bool:
    return not any(list(found.loop.results[i].uses) for i in found.scalars)


@RECURRENCE.requires("whether there is another iteration depends on scalars only")
def _condition_reads_scalars(found: _Candidate) -> bool:
    return not any(list(found.condition.arguments[i].uses) for i in (*found.states, *found.stacks))


@RECURRENCE.requires("no op lets rows meet, by a rule that is known for each")
def _rows_do_not_meet(found: _Candidate) -> bool:
    return found.crossing is None


@RECURRENCE.requires("products are of rows with matrices from outside, in floats")
def _products_are_of_rows(found: _Candidate) -> bool:
    return found.mixing is None


@RECURRENCE.requires("the next value of a state has its rows where the present one has them")
def _states_keep_their_rows(found: _Candidate) -> bool:
    return all(found.row_axis.get(found.returned[i], 0) == 0 for i in found.states)


@RECURRENCE.requires("a window of a stack has all rows, along the axis along which they lie in the stack")
def _windows_have_all_rows(found: _Candidate) -> bool:
    return all(found.row_axis.get(op.operands[1]) in _whole_axes(found, op) for op in found.stacks.values())


@RECURRENCE.requires("all sizes of a row are numbers: scratch memory is for as many rows as fit")
def _rows_have_a_fixed_size(found: _Candidate) -> bool:
    return all(product(row_dims(v, axis)).constant is not None for v, axis in found.row_axis.items())


# ---- cost ---------------------------------------------------------------------------------------------------------


def _is_worth_it(found: LoopOfRows) -> bool:
    """Tells whether a row is of a moderate size, and the weights stay in a core's cache."""
    weights = sum(product(dims_of(op.operands[1])).constant or 0 for op in found.dots)
    width = max((bytes_of(element_type_of(op.results[0])) for op in found.dots), default=0)
    kept = {found.returned[i]: 0 for i in found.states} | found.row_axis
    row = sum(product(row_dims(v, axis)).constant or 0 for v, axis in kept.items())
    return weights * width <= policy().recurrence_weights and row <= policy().recurrence_row


# ---- covered stacks -------------------------------------------------------------------------------------------------


@dataclass
class _Stack:
    """A stack of a loop of `trip` iterations: the axes along which windows move, and where, in terms of the counter."""

    whole: Dims
    window: Dims
    trip: Expr
    moving: list[int]
    place: Affine | None


COVERED_STACK: Pattern[_Stack] = Pattern("covered-stack", "what a stack starts from is not written")


def _count(found: LoopOfRows) -> None:
    """Fill in `trip` and `covered` for a loop that counts from 0 up to a size."""
    count = count_of(found.loop)
    if count is None:
        return
    found.trip = count.trip
    counter, trip = found.body.arguments[count.position], count.trip

    def stack(update: ir.Operation) -> _Stack:
        whole, window = dims_of(update.operands[0]), dims_of(update.operands[1])
        moving = [i for i, (a, b) in enumerate(zip(whole, window, strict=True)) if a != b]
        place = affine(update.operands[2 + moving[0]], counter) if moving else None
        return _Stack(whole, window, trip, moving, place)

    found.covered = {number for number, op in found.stacks.items() if COVERED_STACK.match(stack, op) is not None}


@COVERED_STACK.requires("windows move along one axis at most")
def _windows_move_along_one_axis(stack: _Stack) -> bool:
    return len(stack.moving) <= 1


@COVERED_STACK.requires("windows that move have one element along their axis")
def _windows_have_one_element(stack: _Stack) -> bool:
    return all(stack.window[axis].constant == 1 for axis in stack.moving)


@COVERED_STACK.requires("there are as many windows as places; a window that is the whole stack is written")
def _there_are_enough_windows(stack: _Stack) -> bool:
    if not stack.moving:
        return stack.trip.constant is not None and stack.trip.constant >= 1
    return stack.whole[stack.moving[0]] == stack.trip


@COVERED_STACK.requires("each iteration writes another place, forwards or backwards")
def _each_place_is_written(stack: _Stack) -> bool:
    return not stack.moving or stack.place in ((1, Expr.const(0)), (-1, stack.trip - 1))


__all__ = ["COVERED_STACK", "RECURRENCE", "described", "find_recurrence"]
