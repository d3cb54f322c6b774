# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations of a block of the emulated sm_90a that are under way: barriers, copies, products.

Descriptors, swizzles and the layout of sums are those of NVIDIA's PTX manual.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

WARPGROUP = 128
REGISTERS = 65536
FIRST = 1040
"""Start of the shared memory of a block: at no multiple of more than 16 bytes."""

BOX_ALIGNMENT = 1024
ELEMENTS = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "s8": np.int8, "u8": np.uint8}
DEPTH_BYTES = 32

PRODUCT_OF_ROWS = re.compile(
    r"wgmma\.mma_async\.sync\.aligned\.m64n(?P<n>\d+)k16\.f32\.(?P<a>\w+)\.(?P<b>\w+) "
    r".*, p, 1, 1, (?P<is_transposed>[01]);"
)

Lanes = np.ndarray


@dataclass(frozen=True)
class TensorMap:
    """A tensor and the boxes that copies take of it, the axis of neighbours first, whose pieces of 16 bytes are
    permuted in rows of 128 bytes. Strides count elements."""

    data: np.ndarray
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """The bytes of a box."""
        return self.data.itemsize * math.prod(self.box)

    def take(self, first: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """A box, its first axis last, with zeros outside of the tensor; and the places of the elements inside."""
        axes = [np.arange(start, start + count) for start, count in zip(first, self.box, strict=True)]
        inside, place = np.ones((), bool), np.zeros((), np.int64)
        for axis, size, stride in reversed(list(zip(axes, self.sizes, self.strides, strict=True))):
            inside = inside[..., None] & (axis >= 0) & (axis < size)
            place = place[..., None] + axis * stride
        values = np.zeros(inside.shape, self.data.dtype)
        values[inside] = self.data[place[inside]]
        return values, place[inside]


def swizzled(address: np.ndarray) -> np.ndarray:
    """The address of a byte of a box, in rows of 128 bytes."""
    return address ^ ((address >> 7 & 7) << 4)


@dataclass
class Barrier:
    """Ends a phase when nobody is missing and no byte is."""

    count: int
    missing: int
    bytes: int = 0
    phase: int = 0
    is_published: bool = False

    def arrive(self, times: int, announced: int = 0) -> None:
        assert self.is_published, "a barrier is used before copies know of it"
        assert times <= self.missing, "more arrive at a barrier than it waits for"
        self.missing -= times
        self.add(announced)

    def add(self, count: int) -> None:
        """Bytes that are to come, or less than none when they have."""
        self.bytes += count
        assert self.bytes >= 0, "more bytes come than were announced"
        if not self.missing and not self.bytes:
            self.missing, self.phase = self.count, self.phase + 1


@dataclass
class Copy:
    """A box that is under way."""

    target: int
    values: np.ndarray
    barrier: Barrier

    @property
    def end(self) -> int:
        return self.target + self.values.nbytes


@dataclass
class Sums:
    """Sums of all threads, [threads, sums of one]; `is_ready`: no product adds to them."""

    data: np.ndarray
    is_ready: bool = True


@dataclass
class Matrix:
    """The elements of a matrix in shared memory: [rows or columns, depth] addresses of their first bytes."""

    addresses: np.ndarray

    @staticmethod
    def of(descriptor: int, size: int, depth_inside: bool, bytes_: int) -> Matrix:
        """Decodes a descriptor of 64 bits."""
        start, across, down = ((descriptor >> low & 0x3FFF) << 4 for low in (0, 16, 32))
        assert descriptor >> 62 == 1, "another swizzle than that of the boxes"
        assert descriptor >> 49 & 7 == 0 and start >> 7 & 7 == 0, "a matrix begins amidst 1024 bytes"
        assert not any(descriptor >> low & 3 for low in (14, 30, 46)), "unused bits of a descriptor are set"
        place, depth = np.arange(size)[:, None], np.arange(DEPTH_BYTES // bytes_)[None, :]
        if depth_inside:
            return Matrix(swizzled(start + place % 8 * 128 + place // 8 * down + depth * bytes_))
        assert bytes_ == 2, "elements of a byte lie along the depth"
        at = start + place % 64 * 2 + place // 64 * across + depth % 8 * 128 + depth // 8 * down
        return Matrix(swizzled(at))


@dataclass
class Product:
    """One that is under way."""

    result: Sums
    sums: Sums
    sides: tuple[Matrix | Lanes, Matrix]
    element: Any
    adds: bool = True

    @property
    def matrices(self) -> list[Matrix]:
        """The sides that are in shared memory."""
        return [side for side in self.sides if isinstance(side, Matrix)]


@dataclass
class State:
    """The operations that a warpgroup has begun."""

    is_fenced: bool = False
    products: list[Product] = field(default_factory=list)
    groups: list[list[Product]] = field(default_factory=list)
    registers: int | None = None
    barriers: int = 0
    votes: list[bool] = field(default_factory=list)


class SharedBytes:
    """The shared memory that a launch asks for, as a tensor."""

    start = 0

    def __init__(self, count: int):
        self.data = np.full(count, 0xFF, np.uint8)

    def addresses(self, offsets: Lanes) -> Lanes:
        return FIRST + offsets


def rows_of(fragments: Lanes) -> Lanes:
    """64 rows of 16 elements, of which lane 4 g + t of a warp has pairs: those of rows g and g + 8 from column 2 t on,
    then those from column 2 t + 8 on."""
    pairs = fragments.reshape(4, 8, 4, 2, 2, 2)  # warp, g, t, columns of 8, rows of 8, pair
    return pairs.transpose(0, 4, 1, 3, 2, 5).reshape(64, 16).astype(np.float32)
