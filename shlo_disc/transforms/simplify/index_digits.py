# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads of a tensor through reshapes, transposes and broadcasts, as digits of the indices of whoever reads.

An index along an axis is a number whose digits are parts of the reader's indices, as in a mixed-radix system: a reshape
regroups digits, and splits one where it cuts an axis; a transpose orders them, and a broadcast drops them. Where each
digit lies in memory follows from the sizes (layouts of tiles, such as those of Triton and CuTe, are written so).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import BROADCASTS, RESHAPES
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.utils.attributes import integers


class Digit(NamedTuple):
    """A part of an index of the reader's: the index that `name` names // step % size."""

    name: str
    step: int
    size: int


class Place(NamedTuple):
    """A digit, and the distance in elements from one value of it to the next."""

    digit: Digit
    distance: int


Coordinate = tuple[Digit, ...]
"""The digits of a position along one axis, the most significant first; those of size 1 are left out."""


class Read(NamedTuple):
    """A read of a value: a coordinate for each of its axes."""

    value: ir.Value
    at: tuple[Coordinate, ...]


def static_sizes(value: ir.Value) -> list[int] | None:
    """The sizes of a value; None where one is no number, or 0."""
    sizes = [size.constant for size in dims_of(value)]
    return None if not all(sizes) else [size for size in sizes if size is not None]


def whole(value: ir.Value, axes: Mapping[str, Sequence[int]]) -> Read | None:
    """The read of every element: the axes that are listed for an index make it up, row-major."""
    sizes = static_sizes(value)
    if sizes is None:
        return None
    at: list[Coordinate] = [()] * len(sizes)
    for name, own in axes.items():
        step = 1
        for axis in reversed(own):
            at[axis] = _digits(Digit(name, step, sizes[axis]))
            step *= sizes[axis]
    return Read(value, tuple(at))


def source_of(read: Read) -> Read | None:
    """The same read through all ops that only move elements; None where one cuts digits unevenly."""
    found: Read | None = read
    while found is not None and (op := defining_op(found.value)) is not None:
        if op.name in BROADCASTS:
            found = _through_broadcast(op, found.at)
        elif op.name in RESHAPES:
            found = _through_reshape(op, found.at)
        elif op.name == "stablehlo.transpose":
            order = integers(op.attributes["permutation"])
            found = Read(op.operands[0], tuple(found.at[order.index(axis)] for axis in range(len(order))))
        elif op.name == "stablehlo.convert" and element_type_of(op.operands[0]) == element_type_of(found.value):
            found = Read(op.operands[0], found.at)
        else:
            break
    return found


def split(coordinate: Coordinate, size: int) -> tuple[Coordinate, Coordinate] | None:
    """The digits above, and those that count to `size`; None where that cuts a digit unevenly."""
    high, low = list(coordinate), list[Digit]()
    while size > 1 and high:
        digit = high.pop()
        if size % digit.size == 0:
            low.insert(0, digit)
            size //= digit.size
        elif digit.size % size == 0:
            low.insert(0, digit._replace(size=size))
            high.append(Digit(digit.name, digit.step * size, digit.size // size))
            size = 1
        else:
            return None
    return None if size > 1 else (tuple(high), tuple(low))


def places(read: Read) -> list[Place] | None:
    """Each digit in memory, neighbours joined where their distances allow it; ordered by name and step."""
    sizes = static_sizes(read.value)
    if sizes is None:
        return None
    found: list[Place] = []
    distance = 1
    for size, coordinate in zip(reversed(sizes), reversed(read.at), strict=True):
        step = distance
        for digit in reversed(coordinate):
            found.append(Place(digit, step))
            step *= digit.size
        distance *= size
    joined: list[Place] = []
    for place in sorted(found):
        if joined and _continues(joined[-1], place):
            digit = joined[-1].digit
            joined[-1] = Place(digit._replace(size=digit.size * place.digit.size), joined[-1].distance)
        else:
            joined.append(place)
    return joined


def _continues(low: Place, high: Place) -> bool:
    """Tells whether two digits are one."""
    size = low.digit.size
    is_next = (low.digit.name, low.digit.step * size) == (high.digit.name, high.digit.step)
    return is_next and high.distance == low.distance * size


def _digits(digit: Digit) -> Coordinate:
    return () if digit.size == 1 else (digit,)


def _through_broadcast(op: ir.Operation, at: Sequence[Coordinate]) -> Read | None:
    source, result = static_sizes(op.operands[0]), static_sizes(op.results[0])
    if source is None or result is None:
        return None
    targets = integers(op.attributes["broadcast_dimensions"])
    found = [at[axis] if size > 1 else () for size, axis in zip(source, targets, strict=True)]
    return Read(op.operands[0], tuple(found))


def _through_reshape(op: ir.Operation, at: Sequence[Coordinate]) -> Read | None:
    """Every axis of the result is read at an index of all its elements, or has been broadcast from one of size 1."""
    source, result = static_sizes(op.operands[0]), static_sizes(op.results[0])
    if source is None or result is None or any(_extent(c) != size for c, size in zip(at, result, strict=True)):
        return None
    rest: Coordinate = tuple(digit for coordinate in at for digit in coordinate)
    found: list[Coordinate] = []
    for size in reversed(source):
        parts = split(rest, size)
        if parts is None:
            return None
        rest, own = parts
        found.insert(0, own)
    return Read(op.operands[0], tuple(found))


def _extent(coordinate: Coordinate) -> int:
    extent = 1
    for digit in coordinate:
        extent *= digit.size
    return extent


__all__ = ["Coordinate", "Digit", "Place", "Read", "places", "source_of", "split", "static_sizes", "whole"]
