# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The row kernel that finds, for each row of a mask, the first column that it sees and the one behind the last.

The mask's ops are built again over the axes that it has: a mask that is the same for all heads is computed once for
them. A row that sees nothing ends before it begins.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.fusion import RowReduce, set_fusion
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops import ELEMENTWISE, GENERATORS, IOTAS
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.transforms.fusion.matrix_product import strides_of
from shlo_disc.transforms.fusion.shared_functions import SharedFunctions
from shlo_disc.transforms.fusion.visible_columns import Mask, Masks, Place, read_by

_ZERO, _ONE = Expr.const(0), Expr.const(1)
_NOWHERE = (1 << 31) - 1
"""Behind the last column of any row."""


@dataclass(frozen=True)
class ColumnRanges:
    """A kernel with two results, for each row of a mask. arguments: those of the attention's row kernel that it reads.

    strides: from row to row of the results, for each axis of rows of the scores.
    """

    function: func.FuncOp
    arguments: tuple[int, ...]
    strides: tuple[Expr, ...]


@dataclass(frozen=True)
class CalledRanges:
    """The first column that each row sees, and the one behind the last; their strides and the bound of the scores."""

    values: tuple[ir.Value, ...]
    strides: tuple[Expr, ...]
    magnitude: int


def called_ranges(
    masks: Masks, ranges: ColumnRanges, operands: list[ir.Value], shared: SharedFunctions, before: ir.Operation
) -> CalledRanges:
    """The results of the kernel for an attention's row kernel that reads `operands`, of a call before an op."""
    function = shared.add(ranges.function)
    values = shared.results(function, [operands[i] for i in ranges.arguments], before)
    return CalledRanges(values, ranges.strides, masks.magnitude)


def column_ranges(masks: Masks, rows: Dims, name: str) -> ColumnRanges | None:
    """The kernel for some masks of an attention's row kernel, at the insertion point; `rows` are the scores' sizes
    besides the columns. None where the kernel's rows are other ones."""
    block = masks.scores.function.entry_block
    whole = dims_of(block.arguments[masks.scores.argument])
    slice_ = _Slice(masks)
    for mask in masks.masks:
        slice_.visit(mask.value, place_of(masks, mask))
    axes = sorted(slice_.axes - {len(whole) - 1})
    strides = _of_rows(rows, whole[:-1], axes)
    if strides is None or not slice_.is_known:
        return None
    domain = (*(whole[axis] for axis in axes), whole[-1]) if axes else (_ONE, whole[-1])
    arguments = sorted(slice_.arguments)
    result = tensor_type(domain[:-1], ir.IntegerType.get_signless(32))
    type_ = ir.FunctionType.get([block.arguments[i].type for i in arguments], [result, result])
    function = func.FuncOp(name, type_, visibility="private")
    inputs = {block.arguments[i]: v for i, v in zip(arguments, function.add_entry_block().arguments, strict=True)}
    maker = defining_op(masks.masks[0].value)
    with function.location if maker is None else maker.location, ir.InsertionPoint(function.entry_block):
        positions = {axis: i for i, axis in enumerate(axes)} | {len(whole) - 1: len(domain) - 1}
        built = _Built(masks, inputs, domain, positions)
        func.ReturnOp(_first_and_end(built, masks.masks, domain))
    set_fusion(function, RowReduce(columns=1))
    return ColumnRanges(function, tuple(arguments), strides)


def _first_and_end(built: _Built, masks: tuple[Mask, ...], domain: Dims) -> list[ir.Value]:
    integer = ir.IntegerType.get_signless(32)
    values = [(mask, built.of(mask.value, place_of(built.masks, mask))) for mask in masks]
    sees = functools.reduce(build.and_, [build.not_(value) if mask.hides else value for mask, value in values])
    column = build.iota(domain, integer, len(domain) - 1)
    behind = build.add(column, build.constant(1, integer, domain))
    first = build.select(sees, column, build.constant(_NOWHERE, integer, domain))
    end = build.select(sees, behind, build.constant(0, integer, domain))
    axes = [len(domain) - 1]
    return [build.reduce(first, axes, "minimum", _NOWHERE), build.reduce(end, axes, "maximum", 0)]


def _of_rows(rows: Dims, merged: Dims, axes: list[int]) -> tuple[Expr, ...] | None:
    """The strides of the results for the axes of the scores' rows, which are `merged` in the kernel, some of whose axes
    the results have."""
    own = strides_of(tuple(merged[axis] for axis in axes))
    remaining, found = list(rows), list[Expr]()
    for number, size in enumerate(merged):
        stride = own[axes.index(number)] if number in axes else _ZERO
        group: list[Expr] = []
        while remaining and _product(group) != size:
            group.append(remaining.pop(0))
        if _product(group) != size:
            return None
        found += [stride * step for step in strides_of(tuple(group))]
    is_whole = all(size.constant == 1 for size in remaining)
    return (*found, *[_ZERO] * len(remaining)) if is_whole else None


def _product(sizes: list[Expr]) -> Expr:
    found = _ONE
    for size in sizes:
        found = found * size
    return found


def place_of(masks: Masks, mask: Mask) -> Place:
    """The place of a mask among the scores. Raises CompilerError where that is not one place."""
    place = masks.places[mask.value]
    if place is None:
        raise CompilerError("fuse: a mask is read in several places")
    return place


@dataclass
class _Slice:
    """The makers of masks: the arguments of the kernel, and the axes of the scores along which they change."""

    masks: Masks
    arguments: set[int] = field(default_factory=set)
    axes: set[int] = field(default_factory=set)
    is_known: bool = True
    seen: set[tuple[ir.Value, Place]] = field(default_factory=set)

    def visit(self, value: ir.Value, place: Place) -> None:
        """Note all that a value at a place is made of."""
        if (value, place) in self.seen:
            return
        self.seen.add((value, place))
        op = defining_op(value)
        if op is None:
            arguments = list(self.masks.scores.function.entry_block.arguments)
            self.arguments.add(arguments.index(value))
            self._note(place)
        elif op.name in IOTAS:
            self._note((place[_axis(op)],))
        elif op.name in GENERATORS:
            self.is_known &= not dims_of(value)
        else:
            read = read_by(op, place, self.masks.walks[0].rank)
            self.is_known &= read is not None and op.name != "stablehlo.reduce"
            for operand, there in read or []:
                self.visit(operand, there)

    def _note(self, place: Place) -> None:
        axes = [axis for axis in place if axis is not None]
        self.is_known &= axes == sorted(axes)
        self.axes.update(axes)


@dataclass
class _Built:
    """The ops that masks are made of, over a domain: `positions` has the place of each axis of the scores in it."""

    masks: Masks
    inputs: dict[ir.Value, ir.Value]
    domain: Dims
    positions: dict[int, int]
    known: dict[tuple[ir.Value, Place], ir.Value] = field(default_factory=dict)

    def of(self, value: ir.Value, place: Place) -> ir.Value:
        """A value at a place over the domain, or the scalar that it is."""
        key = value, place
        if key not in self.known:
            self.known[key] = self._build(value, place)
        return self.known[key]

    def _build(self, value: ir.Value, place: Place) -> ir.Value:
        op = defining_op(value)
        if op is None:
            return self._argument(value, place)
        if op.name in IOTAS:
            axis, element = place[_axis(op)], element_type_of(value)
            if axis is None:
                return build.constant(0, element, self.domain)
            return build.iota(self.domain, element, self.positions[axis])
        if op.name in GENERATORS:
            return op.clone().results[0]
        operands = [self.of(*read) for read in read_by(op, place, self.masks.walks[0].rank) or []]
        if op.name in ELEMENTWISE:
            return self._elementwise(op, operands)
        return operands[0] if dims_of(operands[0]) else build.broadcast_scalar(operands[0], self.domain)

    def _argument(self, value: ir.Value, place: Place) -> ir.Value:
        if not dims_of(value):
            return self.inputs[value]
        axes = [axis for axis in place if axis is not None]
        kept = [d for d, axis in zip(dims_of(value), place, strict=True) if axis is not None]
        return build.broadcast(
            build.view(self.inputs[value], kept), self.domain, [self.positions[axis] for axis in axes]
        )

    def _elementwise(self, op: ir.Operation, operands: list[ir.Value]) -> ir.Value:
        """The op over the domain, or of scalars."""
        dims: Dims = self.domain if dims_of(op.results[0]) else ()
        clone = op.clone()
        for number, operand in enumerate(operands):
            clone.operands[number] = operand if dims_of(operand) == dims else build.broadcast_scalar(operand, dims)
        clone.results[0].set_type(tensor_type(dims, element_type_of(op.results[0])))
        return clone.results[0]


def _axis(iota: ir.Operation) -> int:
    return int(ir.IntegerAttr(iota.attributes["iota_dimension"]).value)
