# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""In which steps an iteration of a recurrence runs, and which values are kept in memory between the steps.

A product needs whole rows of what it multiplies, so the body falls into levels: what needs no product, the first
products, what needs those and nothing later, and so on. Kept are the products, what they multiply, what an iteration
returns, what a later level needs of an earlier one, and what is concatenated or reduced; all else is computed where it
is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import ELEMENTWISE, RESHAPES
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.ops.recurrences import LoopOfRows

_READ_ELSEWHERE = frozenset({"stablehlo.concatenate", "stablehlo.reduce"})
"""Ops that would compute what they read more than once if it were not kept."""


@dataclass
class Step:
    """A product, or values over the same sizes that one loop nest computes.

    `dims` are the sizes without those of 1 that are not the rows', `axis` is the place of the rows among them.
    """

    values: list[ir.Value]
    dims: Dims = ()
    axis: int = 0
    dot: ir.Operation | None = None


@dataclass
class IterationSchedule:
    """The steps of an iteration in order.

    `in_place` are the states that the step which computes their next value may overwrite; `scratch` are the values that
    are kept elsewhere, and that are copied to a state when the iteration ends if they are its next value.
    """

    steps: list[Step]
    in_place: set[int] = field(default_factory=set)
    scratch: set[ir.Value] = field(default_factory=set)


def schedule(found: LoopOfRows) -> IterationSchedule:
    """The steps of the body of a recurrence."""
    levels = _levels(found)
    scratch = _needed_later(found, levels)
    following = [found.returned[i] for i in found.states]
    kept = _in_order(found, {*scratch, *following, *found.windows().values()})
    steps: list[Step] = []
    for level in range(max(levels.values(), default=0) + 1):
        here = [v for v in kept if levels.get(v, 0) == level]
        dots = [v for v in here if _is_dot(v)]
        steps += [Step([v], dot=defining_op(v)) for v in dots]
        steps += _loops(found, [v for v in here if v not in dots])
    in_place = {i for i in found.states if _may_overwrite(found, steps, scratch, i)}
    scratch -= {found.returned[i] for i in in_place}
    scratch |= {found.returned[i] for i in found.states if i not in in_place}
    return IterationSchedule(steps, in_place, scratch)


def _body_op(found: LoopOfRows, value: ir.Value) -> ir.Operation | None:
    """The op of the body that defines a value."""
    op = defining_op(value)
    return op if op is not None and op.block == found.body else None


def _is_dot(value: ir.Value) -> bool:
    op = defining_op(value)
    return op is not None and op.name == "stablehlo.dot_general"


def _levels(found: LoopOfRows) -> dict[ir.Value, int]:
    """The number of products above each value of the body, itself included."""
    levels: dict[ir.Value, int] = {}
    for op in found.body.operations:
        level = max((levels.get(v, 0) for v in op.operands), default=0)
        for result in op.results:
            levels[result] = level + _is_dot(result)
    return levels


def _needed_later(found: LoopOfRows, levels: dict[ir.Value, int]) -> set[ir.Value]:
    """The products, what they multiply, what a later level needs of an earlier one and what is read elsewhere."""
    kept: set[ir.Value] = set()
    for dot in found.dots:
        kept.add(dot.results[0])
        if _body_op(found, dot.operands[0]) is not None:
            kept.add(dot.operands[0])
    for op in found.body.operations:
        level = max((levels[r] for r in op.results), default=0)
        for value in op.operands:
            is_later = levels.get(value, 0) < level and not any(_is_dot(r) for r in op.results)
            if is_later or op.name in _READ_ELSEWHERE:
                kept.update(_computed(found, value))
    return kept


def _in_order(found: LoopOfRows, values: set[ir.Value]) -> list[ir.Value]:
    """Values in the order in which they are computed; those from outside of the body come first."""
    inside = [r for op in found.body.operations for r in op.results if r in values]
    return [*(v for v in values if v not in inside), *inside]


def _computed(found: LoopOfRows, value: ir.Value) -> Iterator[ir.Value]:
    """The elementwise results for each row that a value is read from; looks through ops that only move data."""
    op = _body_op(found, value)
    if op is None or value not in found.row_axis or _is_dot(value):
        return
    if op.name in ELEMENTWISE:
        yield value
    else:
        for operand in op.operands:
            yield from _computed(found, operand)


# ---- loop nests -----------------------------------------------------------------------------------------------------


def shape_of_rows(found: LoopOfRows, value: ir.Value) -> tuple[Dims, int]:
    """The sizes of a value without those of 1 that are not the rows', and the place of the rows among them."""
    axis = found.row_axis.get(value, 0)
    kept = [i for i, d in enumerate(dims_of(value)) if i == axis or d.constant != 1]
    return tuple(dims_of(value)[i] for i in kept), kept.index(axis)


def _loops(found: LoopOfRows, values: list[ir.Value]) -> list[Step]:
    steps: dict[tuple[Dims, int], Step] = {}
    for value in values:
        dims, axis = shape_of_rows(found, value)
        steps.setdefault((dims, axis), Step([], dims, axis)).values.append(value)
    return list(steps.values())


def _may_overwrite(found: LoopOfRows, steps: list[Step], scratch: set[ir.Value], state: int) -> bool:
    """Tells whether the step that computes a state's next value may write it where the present one is.

    No later step may read the present value, and that step reads it at the index that it writes. Values that earlier
    steps left in scratch memory are read there; what they wrote into stacks only is computed again.
    """
    argument, following = found.body.arguments[state], found.returned[state]
    number = next(i for i, step in enumerate(steps) if following in step.values)

    def reads(step: int, *, moved: bool) -> bool:
        kept = scratch.intersection(v for earlier in steps[:step] for v in earlier.values)
        return _reads(found, steps, step, kept, argument, moved=moved)

    if steps[number].dot is not None or reads(number, moved=False):
        return False
    return not any(reads(later, moved=True) for later in range(number + 1, len(steps)))


def _reads(
    found: LoopOfRows, steps: list[Step], number: int, kept: set[ir.Value], argument: ir.Value, *, moved: bool
) -> bool:
    """Tells whether a step reads `argument` (with `moved`), or reads it at another index than its own.

    `kept` are the values that it finds in scratch memory.
    """
    read = steps[number].values if steps[number].dot is None else [steps[number].dot.operands[0]]  # type: ignore[union-attr]
    pending = [(value, moved) for value in read]
    seen: set[tuple[ir.Value, bool]] = set()
    while pending:
        current, elsewhere = pending.pop()
        if current == argument and elsewhere:
            return True
        op = _body_op(found, current)
        if (current, elsewhere) in seen or current in kept or op is None or current not in found.row_axis:
            continue
        seen.add((current, elsewhere))
        stays = op.name in ELEMENTWISE or (op.name in RESHAPES and _keeps_shape(found, op))
        pending += [(v, elsewhere or not stays) for v in op.operands if v in found.row_axis]
    return False


def _keeps_shape(found: LoopOfRows, op: ir.Operation) -> bool:
    return shape_of_rows(found, op.operands[0]) == shape_of_rows(found, op.results[0])
