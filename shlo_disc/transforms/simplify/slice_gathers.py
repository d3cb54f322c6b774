# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gathers of one slice, and those at evenly spaced positions, are slices.

JAX writes `x[:, :h]` of symbolic sizes as a gather of one slice, and `x[:, ::-1]` and `x[:, 1::2]` as gathers at
computed indices. Where these are `start + factor * i`, and all of them are known to lie inside of the axis, the result
is a slice with a stride, reversed for a negative factor. Kernels read slices by vectors, and compute them where they
are read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from shlo_disc.shape_dialect.build import create, reverse, shape_tensor, view, window
from shlo_disc.shape_dialect.dialect.types import (
    Dims,
    bits_of,
    dims_of,
    dims_of_attr,
    element_type_of,
    tensor_type,
)
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.ops import BROADCASTS, GATHERS, IOTAS, RESHAPES
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.ops.values import known_elements
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.transforms.decisions import Decisions, Pattern

SLICE: Pattern[EvenGather] = Pattern("slice-gather", "a gather at evenly spaced positions is a slice")

MOST_FACTOR = 1 << 15
"""The largest distance of positions that is followed."""

ZERO, ONE = Expr.const(0), Expr.const(1)


class Even(NamedTuple):
    """The elements `start + factor * i` of a list."""

    start: Expr
    factor: int = 0


@dataclass
class EvenGather:
    """A gather, and what is known of it. sizes: those of a slice. positions: None where they are not even."""

    op: ir.OpView
    facts: Facts
    numbers: stablehlo.GatherDimensionNumbers = field(init=False)
    whole: Dims = field(init=False)
    sizes: Dims | None = field(init=False)
    positions: Even | None = field(init=False)

    def __post_init__(self) -> None:
        self.numbers = stablehlo.GatherDimensionNumbers(self.op.attributes["dimension_numbers"])
        self.whole = dims_of(self.op.operands[0])
        self.sizes = slice_sizes(self.op)
        self.positions = _even(self.op.operands[1])

    @property
    def axis(self) -> int:
        """The axis that is gathered along."""
        return int(self.numbers.start_index_map[0])

    @property
    def count(self) -> Expr:
        """The number of indices."""
        return dims_of(self.op.operands[1])[0]

    @property
    def ends(self) -> tuple[Expr, Expr]:
        """The first of the positions in the order of the axis, and the one behind the last."""
        if self.positions is None:
            return ZERO, ZERO
        start, factor = self.positions
        last = start + factor * (self.count - 1)
        return (start, last + 1) if factor > 0 else (last, start + 1)

    def slice(self) -> ir.Value:
        """The result as a slice with a stride, reversed for a negative factor, at the insertion point."""
        whole, axis = self.whole, self.axis
        factor = 0 if self.positions is None else self.positions.factor
        first, end = self.ends
        starts = [first if a == axis else ZERO for a in range(len(whole))]
        ends = [end if a == axis else d for a, d in enumerate(whole)]
        strides = [Expr.const(abs(factor)) if a == axis else ONE for a in range(len(whole))]
        sizes = tuple(self.count if a == axis else d for a, d in enumerate(whole))
        type_ = tensor_type(sizes, element_type_of(self.op.results[0]))
        operands = [self.op.operands[0], *(shape_tensor(part) for part in (starts, ends, strides))]
        part = create("real_dynamic_slice", operands, type_)
        return view(reverse(part, [axis]) if factor < 0 else part, dims_of(self.op.results[0]))


@SLICE.requires("single elements of one axis are gathered, in the place of that axis")
def _gathers_elements(found: EvenGather) -> bool:
    numbers, rank = found.numbers, len(found.whole)
    axes = [list(numbers.start_index_map), list(numbers.collapsed_slice_dims)]
    batching = [*numbers.operand_batching_dims, *numbers.start_indices_batching_dims]
    if len(axes[0]) != 1 or axes[0] != axes[1] or batching:
        return False
    return list(numbers.offset_dims) == [a for a in range(rank) if a != found.axis]


@SLICE.requires("the indices are one list")
def _is_one_list(found: EvenGather) -> bool:
    dims, vectors = dims_of(found.op.operands[1]), int(found.numbers.index_vector_dim)
    return vectors == 1 and (len(dims) == 1 or (len(dims) == 2 and dims[1] == ONE))


@SLICE.requires("each slice is as large as the operand along all other axes")
def _takes_whole_axes(found: EvenGather) -> bool:
    wanted = tuple(ONE if a == found.axis else d for a, d in enumerate(found.whole))
    return found.sizes == wanted


@SLICE.requires("the positions are evenly spaced")
def _is_even(found: EvenGather) -> bool:
    return found.positions is not None and 0 < abs(found.positions.factor) <= MOST_FACTOR


@SLICE.requires("there is a position, if they are not neighbours")
def _is_not_empty(found: EvenGather) -> bool:
    is_near = found.positions is not None and abs(found.positions.factor) == 1
    return is_near or found.facts.prove(Relation.ge(found.count, 1)) is True


@SLICE.requires("all of them lie inside of the axis, so that none is clamped")
def _lies_inside(found: EvenGather) -> bool:
    first, end = found.ends
    relations = (Relation.ge(first, 0), Relation.le(end, found.whole[found.axis]))
    return all(found.facts.prove(relation) is True for relation in relations)


ONE_SLICE: Pattern[OneSlice] = Pattern("slice-of-one", "a gather of one slice at known indices is a slice")


@dataclass
class OneSlice:
    """A gather, and what is known of it. sizes: those of a slice. starts: where it begins, None if that is data."""

    op: ir.OpView
    facts: Facts
    sizes: Dims | None = field(init=False)
    starts: Dims | None = field(init=False)

    def __post_init__(self) -> None:
        numbers = stablehlo.GatherDimensionNumbers(self.op.attributes["dimension_numbers"])
        axes = list(numbers.start_index_map)
        is_one = dims_of(self.op.operands[1]) == (Expr.const(len(axes)),)
        found = _known(self.op.operands[1]) if is_one else None
        self.sizes = slice_sizes(self.op)
        self.starts = None
        if found is not None:
            at = dict(zip(axes, found, strict=True))
            self.starts = tuple(at.get(a, ZERO) for a in range(len(dims_of(self.op.operands[0]))))

    def slice(self) -> ir.Value:
        """The result as a slice, at the insertion point."""
        part = window(self.op.operands[0], self.starts or (), self.sizes or ())
        return view(part, dims_of(self.op.results[0]))


@ONE_SLICE.requires("its indices and its sizes are known")
def _is_known(found: OneSlice) -> bool:
    return found.starts is not None and found.sizes is not None


@ONE_SLICE.requires("the slice lies inside, so that it is not moved")
def _is_inside(found: OneSlice) -> bool:
    places = zip(found.starts or (), found.sizes or (), dims_of(found.op.operands[0]), strict=True)
    relations = [r for start, size, whole in places for r in (Relation.ge(start, 0), Relation.le(start + size, whole))]
    return all(found.facts.prove(relation) is True for relation in relations)


def slice_gathers(block: ir.Block, facts: Facts, decisions: Decisions) -> None:
    """Replace the gathers of a block, and of what is nested in it, that are slices."""
    for inner in list(all_blocks(block)):
        for op in [op for op in inner.operations if op.operation.name in GATHERS]:
            _replace(op, facts, decisions)


def _replace(op: ir.OpView, facts: Facts, decisions: Decisions) -> None:
    one = ONE_SLICE.match(lambda op: OneSlice(op, facts), op)
    even = SLICE.match(lambda op: EvenGather(op, facts), op) if one is None else None
    found, pattern = (one, ONE_SLICE) if even is None else (even, SLICE)
    if found is not None and decisions.take(pattern.name, op.operation):
        with ir.InsertionPoint(op), op.location:
            op.results[0].replace_all_uses_with(found.slice())
        op.operation.erase()


def slice_sizes(op: ir.OpView) -> Dims | None:
    """The sizes of the slices of a gather, where they are known."""
    if op.operation.name == "stablehlo.gather":
        return tuple(map(Expr.const, integers(op.attributes["slice_sizes"])))
    shape = defining_op(op.operands[2])
    return dims_of_attr(shape.attributes["dims"]) if shape is not None and shape.name == "disc.shape" else None


def _known(value: ir.Value) -> Dims | None:
    """The elements of a list of integers that are constants or sizes.

    None for data, and for sizes where they might wrap around: in other than signed integers of 32 or 64 bits.
    """
    type_, op = element_type_of(value), defining_op(value)
    is_wide = isinstance(type_, ir.IntegerType) and not type_.is_unsigned and type_.width in (32, 64)
    if not is_wide and (op is None or op.name != "stablehlo.constant" or bits_of(type_) < 8):
        return None
    if op is not None and op.name in BROADCASTS and not dims_of(op.operands[0]) and dims_of(value) == (ONE,):
        value = op.operands[0]
    try:
        return known_elements(value)
    except ValueError:
        return None


def _even(value: ir.Value) -> Even | None:
    """The elements of a list of integers as start and distance; None where they are anything else.

    Only signed integers of 32 and 64 bits are followed, whose arithmetic cannot wrap around for sizes.
    """
    type_, op = element_type_of(value), defining_op(value)
    is_wide = isinstance(type_, ir.IntegerType) and not type_.is_unsigned and type_.width in (32, 64)
    if op is None or not is_wide:
        return None
    if not dims_of(value):
        return _of_scalar(value)
    if op.name in IOTAS:
        is_list = ir.IntegerAttr(op.attributes["iota_dimension"]).value == 0
        return Even(ZERO, 1) if is_list else None
    if op.name in BROADCASTS and not dims_of(op.operands[0]):
        return _of_scalar(op.operands[0])
    if op.name == "stablehlo.constant":
        attribute = ir.DenseElementsAttr(op.attributes["value"])
        return Even(Expr.const(int(attribute.get_splat_value()))) if attribute.is_splat else None
    if op.name in RESHAPES | BROADCASTS:
        source = op.operands[0]
        is_same = dims_of(source)[:1] == dims_of(value)[:1] and all(d == ONE for d in dims_of(value)[1:])
        moves = op.name in BROADCASTS and integers(op.attributes["broadcast_dimensions"])[0] != 0
        return _even(source) if is_same and not moves else None
    return _of_arithmetic(op)


def _of_scalar(value: ir.Value) -> Even | None:
    found = _known(value)
    return None if found is None else Even(found[0])


def _of_arithmetic(op: ir.Operation) -> Even | None:
    """The elements of a result of arithmetic."""
    if op.name not in ("stablehlo.add", "stablehlo.subtract", "stablehlo.multiply", "stablehlo.negate",
                       "stablehlo.reverse", "stablehlo.convert"):  # fmt: skip
        return None
    parts = [_even(v) for v in op.operands]
    if any(part is None for part in parts):
        return None
    first, *rest = (part for part in parts if part is not None)
    match op.name:
        case "stablehlo.negate":
            return Even(-1 * first.start, -first.factor)
        case "stablehlo.reverse":
            return Even(first.start + first.factor * (dims_of(op.results[0])[0] - 1), -first.factor)
        case "stablehlo.convert":
            return first if first == Even(ZERO, 1) or first.factor == 0 else None
        case "stablehlo.multiply":
            return _product(first, rest[0])
    sign = -1 if op.name == "stablehlo.subtract" else 1
    return Even(first.start + sign * rest[0].start, first.factor + sign * rest[0].factor)


def _product(a: Even, b: Even) -> Even | None:
    if a.factor:
        a, b = b, a
    number = a.start.constant
    if a.factor or number is None or abs(number) > MOST_FACTOR:
        return None
    return Even(number * b.start, number * b.factor)


__all__ = ["slice_gathers"]
