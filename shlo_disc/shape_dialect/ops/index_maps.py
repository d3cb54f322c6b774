# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Index maps: which element of which operand an element of the result is, for ops that only move elements.

The counterpart of Linalg's indexing maps for ops that pad, cut, place and look up as well: a map is a list of reads, of
which the first whose coordinates lie inside of its operand holds. A coordinate is an affine function of one index of
the result, whose coefficients are sizes, or data where an op has them as operands. The lowerings emit loads from it,
fusion follows rows and axes through it, and a test evaluates it beside the reference interpreter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of_attr, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.values import constant_elements
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.attributes import integers


class Entry(NamedTuple):
    """An integer that is data: element `number` of an operand of rank 1, and `more`."""

    operand: int
    number: int
    more: int = 0


Amount = Expr | Entry
"""A number of elements."""

ZERO, ONE = Expr.const(0), Expr.const(1)


class Start(NamedTuple):
    """The beginning of a window that data places: an element of `operand`, clamped so that the window lies inside.

    at: the coordinates of the element. size: what the window lies in. extent, stride: its elements and their distance.
    """

    operand: int
    at: tuple[Coordinate, ...]
    size: Expr
    extent: Amount
    stride: Amount = ONE


@dataclass(frozen=True)
class Coordinate:
    """A position along an axis of an operand: (index * stride - minus + plus) / step.

    axis: the result's axis whose index this is; None: index 0.
    is_mirrored: the index counts from the last element of the operand.
    one: the operand's size where the index is 0 if that is 1, of a broadcast along a size that may be.
    step: only multiples of it are elements of the operand.
    """

    axis: int | None = None
    stride: Amount = ONE
    minus: Amount | Start = ZERO
    plus: Amount | Start = ZERO
    step: Amount = ONE
    is_mirrored: bool = False
    one: Expr | None = None

    @property
    def is_identity(self) -> bool:
        """Tells whether this is the index along `axis` itself."""
        return self == Coordinate(self.axis) and self.axis is not None


class Regrouped(NamedTuple):
    """A position along an axis of a reshape's operand, which holds the elements of the result in other axes.

    axes: the result's axes that hold the elements of the operand's `group`, row-major both. axis: the one of `group`.
    """

    axes: tuple[int, ...]
    group: tuple[int, ...]
    axis: int


class Read(NamedTuple):
    """A read of an operand.

    at: a coordinate for each of its axes. within: those of its axes along which the position may lie outside.
    until: the result's axis along which the operand ends, where the next read begins to count.
    """

    operand: int
    at: tuple[Coordinate | Regrouped, ...]
    within: tuple[int, ...] = ()
    until: int | None = None


IndexMap = tuple[Read, ...]
"""The reads of one element of the result: the first that lies inside of its operand; the last one always does."""


def identity(rank: int) -> tuple[Coordinate, ...]:
    """The result's own index."""
    return tuple(Coordinate(axis) for axis in range(rank))


def amounts(op: ir.OpView, attribute: str, operand: int) -> list[Amount]:
    """The numbers of an attribute or, in the dynamic form of an op, of an operand."""
    if attribute in op.attributes:
        return [Expr.const(n) for n in integers(op.attributes[attribute])]
    value = op.operands[operand]
    owner = value.owner
    if not isinstance(owner, ir.Block):
        if owner.operation.name == "disc.shape":
            return list(dims_of_attr(owner.attributes["dims"]))
        if owner.operation.name == "stablehlo.constant":
            return list(constant_elements(owner))
    return [Entry(operand, i) for i in range(ir.RankedTensorType(value.type).shape[0])]


def followed(read: Read) -> tuple[int | None, ...] | None:
    """For each axis of the operand the result's axis whose index it is read at, None for index 0.

    None where a read does more than that.
    """
    if any(isinstance(c, Regrouped) or not (c.is_identity or c == Coordinate()) for c in read.at):
        return None
    return tuple(c.axis for c in read.at if isinstance(c, Coordinate))


def result_axis(reads: IndexMap, axes: Sequence[int | None]) -> int | None:
    """The axis of the result along which element i depends on element i of the operands along `axes`, and no other.

    axes: for each operand the axis in question, None where the operand has none. None: where elements of several
    indices meet, or where that is not known.
    """
    found: set[int] = set()
    asked = {number for number, axis in enumerate(axes) if axis is not None}
    ended: set[int | None] = set()
    for read in reads:
        ended.add(read.until)
        places = [(read.operand, read.at), *((s.operand, s.at) for s in _starts(read))]
        for number, at in places:
            axis = axes[number]
            if axis is None:
                continue
            coordinate = at[axis] if axis < len(at) else None
            if not isinstance(coordinate, Coordinate) or not coordinate.is_identity or coordinate.axis in ended:
                return None
            asked.discard(number)
            found.add(coordinate.axis)  # type: ignore[arg-type]
    return found.pop() if len(found) == 1 and not asked else None


def _starts(read: Read) -> Iterator[Start]:
    for c in read.at:
        if isinstance(c, Coordinate):
            yield from (amount for amount in (c.minus, c.plus) if isinstance(amount, Start))


# ---- coordinates of reshapes and broadcasts ----------------------------------------------------------------------


def broadcast_coordinates(source: Dims, result: Dims, targets: Sequence[int]) -> tuple[Coordinate, ...]:
    """The coordinates of a broadcast's operand, whose axes are the result's `targets`."""
    found = []
    for size, target in zip(source, targets, strict=True):
        if size.constant == 1:
            found.append(Coordinate())
        else:
            found.append(Coordinate(target, one=None if size == result[target] else size))
    return tuple(found)


def reshape_coordinates(source: Dims, result: Dims) -> tuple[Coordinate | Regrouped, ...]:
    """The coordinates of a reshape's operand."""
    found: list[Coordinate | Regrouped] = [Coordinate()] * len(source)
    for source_axes, result_axes in _matched_groups(source, result):
        wanted = tuple(a for a in source_axes if source[a].constant != 1)
        given = tuple(a for a in result_axes if result[a].constant != 1)
        if [source[a] for a in wanted] == [result[a] for a in given]:
            for a, b in zip(wanted, given, strict=True):
                found[a] = Coordinate(b)
        else:
            for a in wanted:
                found[a] = Regrouped(given, wanted, a)
    return tuple(found)


def unit_axes(source: Dims, result: Dims) -> tuple[int | None, ...] | None:
    """For each axis of a reshape's operand the result's axis; None where the reshape does more than add and drop 1s."""
    return followed(Read(0, reshape_coordinates(source, result)))


def _matched_groups(source: Dims, result: Dims) -> list[tuple[range, range]]:
    """Pair runs of axes of the two shapes that hold equally many elements, cut where leading products agree.

    Behind an axis of size 0 all products are 0, which says nothing of the axes.
    """
    cuts = [(0, 0)]
    prefix_source = [product(source[:i]) for i in range(len(source) + 1)]
    prefix_result = [product(result[:j]) for j in range(len(result) + 1)]
    for i in range(1, len(source)):
        for j in range(cuts[-1][1] + 1, len(result)):
            if prefix_source[i] == prefix_result[j] and prefix_source[i].constant != 0:
                cuts.append((i, j))
                break
    cuts.append((len(source), len(result)))
    return [(range(a, c), range(b, d)) for (a, b), (c, d) in zip(cuts, cuts[1:], strict=False)]


def window_start(
    operand: int, at: Sequence[Coordinate], size: Expr, extent: Amount, stride: Amount = ONE
) -> Amount | Start:
    """A start that data gives: 0 where the window is as large as what it lies in."""
    return ZERO if extent == size and stride == ONE else Start(operand, tuple(at), size, extent, stride)


__all__ = [
    "ONE", "ZERO", "Amount", "Coordinate", "Entry", "IndexMap", "Read", "Regrouped", "Start", "amounts",
    "broadcast_coordinates", "followed", "identity", "reshape_coordinates", "result_axis", "unit_axes", "window_start",
]  # fmt: skip
