# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over independent rows, such as a recurrent network over a batch, as their description tells (`RecurrentLoop`).

Row i of everything that such a loop carries depends on row i of what it carried before, on values from outside and on
counters, but on no other row. What a loop carries is of three kinds:

* scalars, which every thread computes for itself: the counter above all. They depend on no row, for what does has rows;
* states, whose axis 0 is the rows;
* stacks, of which an iteration writes a window and reads nothing: what a scan returns for each step.

A stack is covered when the windows of all iterations together are the whole of it. What it starts from is never read
then, and a kernel does not write it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.dialect.fusion import RecurrentLoop
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks
from shlo_disc.shape_dialect.ops.row_axes import row_axis_of
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import terminator_of

DOT = "stablehlo.dot_general"


@dataclass
class LoopOfRows:
    """A loop of `rows` independent rows.

    `row_axis` has an entry for each value of the body that depends on the row, or is written row by row: the axis of
    the rows. `scalars`, `states` and `stacks` are positions among the carried values. `trip` is the number of
    iterations if it is known from the sizes; `covered` are the stacks of which every element is written.
    """

    loop: ir.OpView
    rows: Expr
    row_axis: dict[ir.Value, int]
    scalars: list[int]
    states: list[int]
    stacks: dict[int, ir.Operation]
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

    @property
    def dots(self) -> list[ir.Operation]:
        """The products in the body."""
        return [op.operation for op in self.body.operations if op.operation.name == DOT]

    def windows(self) -> dict[int, ir.Value]:
        """The value that is written into each stack."""
        return {i: op.operands[1] for i, op in self.stacks.items()}


def loop_of_rows(loop: ir.OpView, said: RecurrentLoop) -> LoopOfRows:
    """A loop of a recurrence, whose description tells the roles of what it carries; rows are followed through the body.

    Raises CompilerError where rows meet, of which there is none in a recurrence.
    """
    body = nested_blocks(loop)[1]
    states = [body.arguments[i] for i in said.states]
    rows = dims_of(states[0])[0]
    returned = list(terminator_of(body).operands)
    stacks = {i: returned[i].owner.operation for i in said.stacks}
    axis = dict.fromkeys(states, 0)
    updates = set(stacks.values())
    for op in list(body.operations)[:-1]:
        if op.operation not in updates:
            _follow(op.operation, axis)
    for update, along in zip(stacks.values(), said.windows, strict=True):
        axis.setdefault(update.operands[1], along)
    return LoopOfRows(loop, rows, axis, list(said.scalars), list(said.states), stacks, said.trip, set(said.covered))


def _follow(op: ir.Operation, axis: dict[ir.Value, int]) -> None:
    """Add the axis of the rows of an op's result; a product is one of rows with a matrix from outside."""
    axes = [axis.get(v) for v in op.operands]
    if op.name == DOT:
        axis[op.results[0]] = 0
    elif any(a is not None for a in axes):
        found = row_axis_of(op, axes)
        if found is None:
            raise CompilerError("kernels: a fusion of kind recurrence holds a loop whose rows are not independent")
        axis[op.results[0]] = found


def row_dims(value: ir.Value, axis: int | None) -> Dims:
    """The sizes of one row of a value."""
    return tuple(d for i, d in enumerate(dims_of(value)) if i != axis)


__all__ = ["DOT", "LoopOfRows", "loop_of_rows", "row_dims"]
