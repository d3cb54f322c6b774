# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The mock driver's tensor maps, and shared memory that launches ask for, as strict as CUDA's manual.

A map holds in words what it was made from: the address, the rank, five sizes, four strides, the sizes of a box, and the
bytes of an element.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from tests.gpu.mock_streams import INVALID_VALUE, Refused, words_at

MAP_WORDS = 16
MOST_SHARED = 227 << 10
UNASKED_SHARED = 48 << 10

_MAGIC = 0x7E50_0000
_BYTES = {0: 1, 1: 2, 2: 4, 3: 4, 4: 8, 5: 8, 6: 2, 7: 4, 8: 8, 9: 2}
"""Sizes of the element types, by their numbers."""

_SWIZZLE_BYTES = {1: 32, 2: 64, 3: 128}
_MOST_SHARED_BYTES = 8


@dataclass(frozen=True)
class GivenMap:
    """The arguments of a map: sizes in elements, from that of neighbours on, and strides in bytes without theirs."""

    address: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_bytes: int = 2

    def words(self) -> list[int]:
        """The words of a map."""
        sizes, strides = [*self.sizes, *[0] * (5 - len(self.sizes))], [*self.strides, *[0] * (4 - len(self.strides))]
        box = sum(size << 10 * axis for axis, size in enumerate(self.box))
        found = [_MAGIC, self.address, len(self.sizes), *sizes, *strides, box, self.element_bytes]
        return found + [0] * (MAP_WORDS - len(found))

    @staticmethod
    def at(address: int) -> GivenMap:
        """The map that is there. Raises AssertionError where there is none."""
        magic, base, rank, *rest = words_at(address, MAP_WORDS)
        assert magic == _MAGIC, "a parameter is no tensor map"
        box = tuple(rest[9] >> 10 * axis & 0x3FF for axis in range(rank))
        return GivenMap(base, tuple(rest[:rank]), tuple(rest[5 : 4 + rank]), box, rest[10])


class TensorMaps:
    """The part of the driver for tensor maps and shared memory."""

    maps: list[GivenMap]
    allowed_shared: dict[int, int]
    mistakes: list[str]

    def begin_maps(self) -> None:
        """There are none."""
        self.maps, self.allowed_shared = [], {}

    def _refuse_unless(self, rules: dict[str, bool]) -> None:
        """Refuse what breaks a rule, and note its name as a mistake."""
        if broken := [name for name, holds in rules.items() if not holds]:
            self.mistakes += broken
            raise Refused(INVALID_VALUE)

    def cuTensorMapEncodeTiled(
        self, out: int, type_: int, rank: int, address: int, sizes: int, strides: int, box: int, steps: int,
        interleave: int, swizzle: int, promotion: int, fill: int,
    ) -> None:  # fmt: skip
        type_, rank, interleave, swizzle, promotion, fill = (
            ctypes.c_int(n & 0xFFFFFFFF).value for n in (type_, rank, interleave, swizzle, promotion, fill)
        )
        self._refuse_unless({"rank": 1 <= rank <= 5, "type": type_ in _BYTES, "modes": interleave == fill == 0})
        dims = tuple(words_at(sizes, rank, ctypes.c_uint64))
        rows = tuple(words_at(strides, rank - 1, ctypes.c_uint64))
        boxes = tuple(words_at(box, rank, ctypes.c_uint32))
        inner = boxes[0] * _BYTES[type_]
        self._refuse_unless(
            {
                "a map at a multiple of 64 bytes": out % 64 == 0,
                "a tensor at a multiple of 16 bytes": address % 16 == 0,
                "sizes": all(1 <= size <= 1 << 32 for size in dims),
                "strides": all(0 < step < 1 << 40 and step % 16 == 0 for step in rows),
                "rows that do not overlap": not rows or rows[0] >= dims[0] * _BYTES[type_],
                "sizes of a box": all(1 <= size <= 256 for size in boxes),
                "a box of whole pieces": inner % 16 == 0,
                "rows of a box as long as the swizzle": inner <= _SWIZZLE_BYTES.get(swizzle, inner),
                "element strides": all(step == 1 for step in words_at(steps, rank, ctypes.c_uint32)),
                "promotion": 0 <= promotion <= 3,
            }
        )
        found = GivenMap(address, dims, rows, boxes, _BYTES[type_])
        self.maps.append(found)
        for place, word in enumerate(found.words()):
            words_at(out, MAP_WORDS, ctypes.c_int64)[place] = word

    def cuFuncSetAttribute(self, function: int, attribute: int, value: int) -> None:
        attribute, value = (ctypes.c_int(n & 0xFFFFFFFF).value for n in (attribute, value))
        self._refuse_unless({"attribute": attribute == _MOST_SHARED_BYTES, "bytes": 0 <= value <= MOST_SHARED})
        self.allowed_shared[function] = value

    def check_shared(self, function: int, count: int) -> None:
        """Refuse a launch that asks for more shared memory than a kernel may have."""
        self._refuse_unless({"shared memory": count <= max(UNASKED_SHARED, self.allowed_shared.get(function, 0))})
