# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slices of all kinds as what they cut out of an array: where they begin along each axis, and how large they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from shlo_disc.shape_dialect.dense import array_of
from shlo_disc.shape_dialect.dialect.types import Dims, bytes_of, dims_of, dims_of_attr, element_type_of, product
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.ops import GATHERS
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.symbolic.expr import ZERO, Expr
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.shape_dialect.utils.regions import is_constant
from shlo_disc.transforms.simplify.slice_gathers import slice_sizes

CUTS = frozenset({"stablehlo.slice", "stablehlo.dynamic_slice", "stablehlo.real_dynamic_slice"}) | GATHERS


class Element(NamedTuple):
    """An element of a list of integers, or a scalar."""

    value: ir.Value
    number: int = 0


class Start(NamedTuple):
    """The beginning of a piece along an axis, element `element` of `value`: clamped to 0 and `most`, it counts `step`
    elements of the array."""

    value: ir.Value
    element: int
    most: Expr
    step: Expr


@dataclass(frozen=True)
class Cut:
    """A piece of the array `source`. starts, sizes: of each axis of the array."""

    source: ir.Value
    starts: tuple[Expr | Element, ...]
    sizes: Dims

    @property
    def whole(self) -> Dims:
        """The sizes of the array."""
        return dims_of(self.source)

    @property
    def width(self) -> int:
        """The bytes of an element."""
        return bytes_of(element_type_of(self.source))

    @property
    def last(self) -> int:
        """The last axis that is cut; -1 where none is."""
        return max((axis for axis, size in enumerate(self.sizes) if size != self.whole[axis]), default=-1)

    @property
    def is_dense(self) -> bool:
        """Tells whether the elements lie side by side: along axes before the last that is cut there is one place."""
        return all(size.constant == 1 for size in self.sizes[: max(self.last, 0)])

    @property
    def data(self) -> list[Start]:
        """The beginnings that are data, of axes that are cut."""
        places = [(axis, at) for axis, at in enumerate(self.starts[: self.last + 1]) if isinstance(at, Element)]
        return [Start(*at, self.whole[axis] - self.sizes[axis], self._step(axis)) for axis, at in places]

    @property
    def offset(self) -> Expr:
        """The elements of the array before the piece, besides those that `data` counts."""
        known = [(axis, at) for axis, at in enumerate(self.starts[: self.last + 1]) if isinstance(at, Expr)]
        return sum((at * self._step(axis) for axis, at in known), ZERO)

    @property
    def distances(self) -> list[Expr]:
        """The distances in bytes between the places where the piece may begin, and from the beginning of the array."""
        return [self.offset * self.width, *(start.step * self.width for start in self.data)]

    def _step(self, axis: int) -> Expr:
        return product(self.whole[axis + 1 :])


def cut_of(op: ir.Operation) -> Cut | None:
    """The piece that a slice cuts out; None for one with strides, and for a gather of more than one slice."""
    source = op.operands[0]
    if op.name in GATHERS:
        return _of_gather(op)
    if op.name == "stablehlo.slice":
        starts = tuple(map(Expr.const, integers(op.attributes["start_indices"])))
        return Cut(source, starts, dims_of(op.results[0])) if set(integers(op.attributes["strides"])) <= {1} else None
    if op.name == "stablehlo.dynamic_slice":
        return Cut(source, tuple(_scalar(value) for value in list(op.operands)[1:]), dims_of(op.results[0]))
    rank, strides = len(dims_of(source)), _known(op.operands[3])
    if strides is None or any(stride.constant != 1 for stride in strides):
        return None
    return Cut(source, _list(op.operands[1], rank), dims_of(op.results[0]))


def _of_gather(op: ir.Operation) -> Cut | None:
    """One slice, whose axes are in their order."""
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    axes, collapsed = list(numbers.start_index_map), list(numbers.collapsed_slice_dims)
    rank = len(dims_of(op.operands[0]))
    sizes = slice_sizes(op.opview)
    is_one = dims_of(op.operands[1]) == (Expr.const(len(axes)),) and not list(numbers.operand_batching_dims)
    if not is_one or sizes is None or list(numbers.offset_dims) != list(range(rank - len(collapsed))):
        return None
    at = dict(zip(axes, _list(op.operands[1], len(axes)), strict=True))
    return Cut(op.operands[0], tuple(at.get(axis, ZERO) for axis in range(rank)), sizes)


def _scalar(value: ir.Value) -> Expr | Element:
    known = _known(value)
    return Element(value) if known is None else known[0]


def _list(value: ir.Value, count: int) -> tuple[Expr | Element, ...]:
    known = _known(value)
    return tuple(Element(value, number) for number in range(count)) if known is None else known


def _known(value: ir.Value) -> Dims | None:
    """The integers of a scalar or a list that are numbers or sizes; None for data."""
    op = defining_op(value)
    if op is not None and op.name == "disc.shape":
        return dims_of_attr(op.attributes["dims"])
    if op is None or not is_constant(op):
        return None
    return tuple(Expr.const(int(number)) for number in array_of(op).ravel())


__all__ = ["CUTS", "Cut", "Element", "Start", "cut_of"]
