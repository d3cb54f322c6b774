# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks recurrences: the row of what an iteration computes needs no other row of what the iteration before computed.

The body is read from its end to its beginning, where what fuses reads it forwards: the row of a state, or of a window
of a stack, is asked for, and each op says which part of its operands that needs. Whatever is not known to be the same
row is all of an operand. So nothing may come to a state but at its own row, or to a stack at all; and to neither of
them may lead what a scalar is computed from, the place of a window, or whether there is another iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NoReturn

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.dialect.fusion import Recurrence, RecurrentLoop, fusion_of
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.mlir import func, ir, stablehlo
from shlo_disc.shape_dialect.ops import BROADCASTS, ELEMENTWISE, GATHERS, PADS, RESHAPES, SLICES
from shlo_disc.shape_dialect.ops.index_maps import amounts
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import terminator_of

Part = tuple[ir.Value, int | None]
"""A value at the row in question, which lies along an axis; all of it where that is None."""


def verify_recurrence(function: func.FuncOp) -> None:
    """Check a fusion of kind "recurrence". Raises CompilerError on one that is wrong."""
    what = fusion_of(function)
    whiles = (op for op in function.entry_block.operations if op.operation.name == "stablehlo.while")
    for loop, said in zip(whiles, what.loops if isinstance(what, Recurrence) else (), strict=True):
        _Loop(function, loop, said).verify()


class _Loop:
    """A loop, and what is said of it."""

    def __init__(self, function: func.FuncOp, loop: ir.OpView, said: RecurrentLoop):
        self.function, self.said = function, said
        self.condition, self.body = nested_blocks(loop)
        self.returned = list(terminator_of(self.body).operands)
        self.states = {block.arguments[i] for block in (self.condition, self.body) for i in said.states}
        self.stacks = {block.arguments[i] for block in (self.condition, self.body) for i in said.stacks}
        self.rows = dims_of(self.body.arguments[said.states[0]])[0]

    def verify(self) -> None:
        """Check it."""
        self._follow((value, None) for value in terminator_of(self.condition).operands)
        self._follow((self.returned[i], None) for i in self.said.scalars)
        if self.rows.constant in (0, 1):
            return
        self._follow((self.returned[i], 0) for i in self.said.states)
        for stack, axis in zip(self.said.stacks, self.said.windows, strict=True):
            whole, window, *starts = self.returned[stack].owner.operation.operands
            if dims_of(whole)[axis] != self.rows:
                self._fail("the rows of a window are not those of its stack")
            self._follow([(window, axis), *((start, None) for start in starts)])

    def _follow(self, wanted: Iterator[Part] | list[Part]) -> None:
        """Follow parts of values to what they need of the iteration before."""
        pending, seen = list(wanted), set[Part]()
        while pending:
            part = pending.pop()
            value, axis = part
            if part in seen:
                continue
            seen.add(part)
            if value in self.stacks:
                self._fail("an iteration reads a stack")
            if value in self.states and axis != 0:
                self._fail("a row needs another one, or what is the same for all rows needs one")
            owner = value.owner
            if not isinstance(owner, ir.Block) and owner.operation.block in (self.condition, self.body):
                pending += _needed(owner.operation, axis)

    def _fail(self, text: str) -> NoReturn:
        raise CompilerError(f"fuse: the fusion @{self.function.name.value} is wrong: {text}")


# ---- ops ------------------------------------------------------------------------------------------------------------


def _needed(op: ir.Operation, axis: int | None) -> list[Part]:
    """The parts of its operands that an op needs for a part of its result."""
    name, operands = op.name, list(op.operands)
    if axis is None:
        return [(value, None) for value in operands]
    if name in ELEMENTWISE:
        return [(value, axis if dims_of(value) else None) for value in operands]
    rule = _RULES.get(name)
    axes = [] if rule is None else rule(op, axis)
    return [(value, axes[i] if i < len(axes) else None) for i, value in enumerate(operands)]


def _sizes(op: ir.Operation, axis: int) -> tuple[Dims, Expr]:
    return dims_of(op.operands[0]), dims_of(op.results[0])[axis]


def _broadcast(op: ir.Operation, axis: int) -> list[int | None]:
    source, size = _sizes(op, axis)
    targets = list(ir.DenseI64ArrayAttr(op.attributes["broadcast_dimensions"]))
    return [targets.index(axis) if axis in targets and source[targets.index(axis)] == size else None]


def _transpose(op: ir.Operation, axis: int) -> list[int | None]:
    return [list(ir.DenseI64ArrayAttr(op.attributes["permutation"]))[axis]]


def _reshape(op: ir.Operation, axis: int) -> list[int | None]:
    """An axis before which there is as much, and which is as long, has the same index."""
    source, size = _sizes(op, axis)
    before = product(dims_of(op.results[0])[:axis])
    return [next((i for i, d in enumerate(source) if d == size and product(source[:i]) == before), None)]


def _reverse(op: ir.Operation, axis: int) -> list[int | None]:
    return [None if axis in list(ir.DenseI64ArrayAttr(op.attributes["dimensions"])) else axis]


def _slice(op: ir.Operation, axis: int) -> list[int | None]:
    """As many elements as there are can only be all of them."""
    source, size = _sizes(op, axis)
    return [axis if source[axis] == size else None]


def _update(op: ir.Operation, axis: int) -> list[int | None]:
    return [axis, axis if dims_of(op.operands[1])[axis] == dims_of(op.operands[0])[axis] else None]


def _pad(op: ir.Operation, axis: int) -> list[int | None]:
    low, between = (amounts(op.opview, name, i)[axis] for name, i in (("edge_padding_low", 2), ("interior_padding", 4)))
    return [axis if low == between == Expr.const(0) else None]


def _concatenate(op: ir.Operation, axis: int) -> list[int | None]:
    along = ir.IntegerAttr(op.attributes["dimension"]).value
    return [None if axis == along else axis] * len(op.operands)


def _reduce(op: ir.Operation, axis: int) -> list[int | None]:
    along = list(ir.DenseI64ArrayAttr(op.attributes["dimensions"]))
    kept = [i for i in range(len(dims_of(op.operands[0]))) if i not in along]
    return [kept[axis]] * (len(op.operands) // 2)


def _dot(op: ir.Operation, axis: int) -> list[int | None]:
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    left, right = list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)
    if axis < len(left):
        return [left[axis], right[axis]]
    taken = {*left, *numbers.lhs_contracting_dimensions}
    free = [i for i in range(len(dims_of(op.operands[0]))) if i not in taken]
    return [free[axis - len(left)] if axis - len(left) < len(free) else None, None]


def _gather(op: ir.Operation, axis: int) -> list[int | None]:
    """An index of the rows of indices is one of them, and of what lies beside them in batches; windows may be whole."""
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    source, size = _sizes(op, axis)
    offsets, batching = list(numbers.offset_dims), list(numbers.operand_batching_dims)
    gone = {*numbers.collapsed_slice_dims, *batching}
    if axis in offsets:
        place = [i for i in range(len(source)) if i not in gone][offsets.index(axis)]
        return [place if source[place] == size else None, None]
    batch = [i for i in range(len(dims_of(op.results[0]))) if i not in offsets]
    indices = [i for i in range(len(dims_of(op.operands[1]))) if i != numbers.index_vector_dim]
    place = indices[batch.index(axis)]
    beside = list(numbers.start_indices_batching_dims)
    return [batching[beside.index(place)] if place in beside else None, place]


_RULES: dict[str, Callable[[ir.Operation, int], list[int | None]]] = {
    **dict.fromkeys(BROADCASTS, _broadcast),
    **dict.fromkeys(RESHAPES, _reshape),
    **dict.fromkeys((*SLICES, "stablehlo.dynamic_slice"), _slice),
    **dict.fromkeys(PADS, _pad),
    **dict.fromkeys(GATHERS, _gather),
    "stablehlo.transpose": _transpose,
    "stablehlo.reverse": _reverse,
    "stablehlo.dynamic_update_slice": _update,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.reduce": _reduce,
    "stablehlo.dot_general": _dot,
}
"""For each op the axis along which its first operands are read at the row; the others are read as a whole."""
