# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The symbols that an ELF64 little-endian relocatable object defines and needs."""

from __future__ import annotations

import struct
from typing import NamedTuple

from shlo_disc.errors import ArtifactError

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOL_TABLE = 2
_FUNCTION = 2


class Symbol(NamedTuple):
    """One row of the table: its section is 0 where it is undefined, its offset counts from that section's start."""

    name: str
    is_global: bool
    is_function: bool
    section: int
    offset: int
    bytes: int


def undefined_symbols(data: bytes) -> frozenset[str]:
    """Names that `data` refers to but does not define. Raises ArtifactError when it is not such an object."""
    return frozenset(symbol.name for symbol in symbols(data) if symbol.section == 0 and symbol.name)


def defined_symbols(data: bytes) -> frozenset[str]:
    """Names with global binding that `data` defines. Raises ArtifactError when it is not such an object."""
    return frozenset(symbol.name for symbol in symbols(data) if symbol.section != 0 and symbol.is_global)


def functions(data: bytes) -> dict[str, int]:
    """The bytes of each function that `data` defines, by name, in their order. Raises ArtifactError."""
    found = [symbol for symbol in symbols(data) if symbol.is_function and symbol.section]
    return {symbol.name: symbol.bytes for symbol in sorted(found, key=lambda s: (s.section, s.offset))}


def symbols(data: bytes) -> list[Symbol]:
    """Every symbol. Raises ArtifactError when `data` is not such an object."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ArtifactError("the object code is not ELF64 little-endian")
    try:
        return [symbol for header in _sections(data) for symbol in _table(data, header)]
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise ArtifactError(f"the object code is malformed: {error}") from error


def _sections(data: bytes) -> list[tuple[int, ...]]:
    (offset,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    return [_SECTION.unpack_from(data, offset + i * size) for i in range(count)]


def _table(data: bytes, header: tuple[int, ...]) -> list[Symbol]:
    if header[1] != _SYMBOL_TABLE:
        return []
    begin, size, strings = header[4], header[5], _sections(data)[header[6]][4]
    entries = [_SYMBOL.unpack_from(data, begin + at) for at in range(0, size, _SYMBOL.size)]
    return [
        Symbol(_string(data, strings + name), info >> 4 != 0, info & 15 == _FUNCTION, section, value, length)
        for name, info, _, section, value, length in entries
    ]


def _string(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()
