# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layout of an array on a program's devices: for each dimension, the axes of the device grid that divide it.

Devices are numbers from 0 on. An axis is a digit of that number, so that axes of different meshes can be compared; it
has a prime size, for a sharding to have one form.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import NamedTuple


class MeshAxis(NamedTuple):
    """A digit of a device's number: `number // stride % size`.

    order: for a mesh with devices in another order than that of their numbers, the devices by position. The digit is
    one of the position then.
    """

    stride: int
    size: int
    order: tuple[int, ...] = ()

    def is_apart_from(self, other: MeshAxis) -> bool:
        """Tells whether the two say different things of a device."""
        low, high = sorted((self, other))
        return low.order == high.order and high.stride % (low.stride * low.size) == 0


Axes = tuple[MeshAxis, ...]
"""Axes that divide one dimension, the major one first."""


def prime_axes(stride: int, size: int, order: tuple[int, ...] = ()) -> Axes:
    """The axis of any size as axes of prime sizes."""
    axes, rest, factor = [], size, 2
    while rest > 1:
        while rest % factor:
            factor += 1
        rest //= factor
        axes.append(MeshAxis(stride * rest, factor, order))
    return tuple(axes)


def count(axes: Iterable[MeshAxis]) -> int:
    """Into how many parts the axes divide a dimension."""
    return prod(axis.size for axis in axes)


def are_apart(axes: Sequence[MeshAxis], others: Iterable[MeshAxis]) -> bool:
    """Tells whether no axis of one sequence depends on one of the other."""
    return all(axis.is_apart_from(other) for other in others for axis in axes)


def groups(axes: Axes, devices: int) -> list[list[int]]:
    """The devices that differ along `axes` only, in the order of the parts."""
    offsets = [sum(d * a.stride for d, a in zip(digits, axes, strict=True)) for digits in _digits(axes)]
    firsts = [n for n in range(devices) if all(n // a.stride % a.size == 0 for a in axes)]
    order = axes[0].order or range(devices)
    return [[order[first + offset] for offset in offsets] for first in firsts]


def _digits(axes: Axes) -> Iterable[tuple[int, ...]]:
    return product(*(range(axis.size) for axis in axes))


@dataclass(frozen=True)
class Sharding:
    """The axes of each dimension. Along the axes that are in none, devices have the same elements."""

    dims: tuple[Axes, ...]

    @classmethod
    def replicated(cls, rank: int) -> Sharding:
        """Every device has everything."""
        return cls(((),) * rank)

    @property
    def axes(self) -> Axes:
        """All axes in use."""
        return tuple(axis for dim in self.dims for axis in dim)

    def fits(self, shape: Sequence[int]) -> bool:
        """Tells whether every dimension can be divided evenly."""
        return all(size % count(axes) == 0 for size, axes in zip(shape, self.dims, strict=True))

    def fitted(self, shape: Sequence[int]) -> Sharding:
        """This sharding without the axes of dimensions that cannot be divided evenly."""
        pairs = zip(shape, self.dims, strict=True)
        return Sharding(tuple(axes if size % count(axes) == 0 else () for size, axes in pairs))

    def local(self, shape: Sequence[int]) -> list[int]:
        """The shape of a device's part."""
        return [size // count(axes) for size, axes in zip(shape, self.dims, strict=True)]

    def without(self, axes: Iterable[MeshAxis]) -> Sharding:
        """This sharding along other axes than these."""
        dropped = frozenset(axes)
        return Sharding(tuple(tuple(a for a in dim if a not in dropped) for dim in self.dims))

    def only(self, kept: Iterable[int]) -> Sharding:
        """This sharding of the dimensions `kept`, the others whole."""
        chosen = frozenset(kept)
        return Sharding(tuple(axes if i in chosen else () for i, axes in enumerate(self.dims)))


def common_prefix(a: Axes, b: Axes) -> Axes:
    """The major axes that two dimensions share."""
    length = 0
    while length < min(len(a), len(b)) and a[length] == b[length]:
        length += 1
    return a[:length]


def merged(shardings: Iterable[Sharding], rank: int) -> Sharding:
    """For each dimension the axes of the first sharding that has any, where they do not depend on those before."""
    dims: list[Axes] = [()] * rank
    for sharding in shardings:
        for i, axes in enumerate(sharding.dims):
            used = [axis for dim in dims for axis in dim]
            if not dims[i] and are_apart(axes, used):
                dims[i] = axes
    return Sharding(tuple(dims))
