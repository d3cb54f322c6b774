# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The symbols that an ELF64 little-endian relocatable object defines and needs."""

from __future__ import annotations

import struct

from ..errors import CompilerError

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOL_TABLE = 2


def undefined_symbols(data: bytes) -> frozenset[str]:
    """Names that `data` refers to but does not define."""
    return frozenset(name for name, section, _ in _symbols(data) if section == 0 and name)


def defined_symbols(data: bytes) -> frozenset[str]:
    """Names with global binding that `data` defines."""
    return frozenset(name for name, section, binding in _symbols(data) if section != 0 and binding != 0)


def _symbols(data: bytes) -> list[tuple[str, int, int]]:
    """(name, section index, binding) of every symbol. Raises `CompilerError` when `data` is not such an object."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise CompilerError("codegen: the object is not ELF64 little-endian")
    try:
        return [symbol for header in _sections(data) for symbol in _table(data, header)]
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise CompilerError(f"codegen: malformed object: {error}") from error


def _sections(data: bytes) -> list[tuple[int, ...]]:
    (offset,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    return [_SECTION.unpack_from(data, offset + i * size) for i in range(count)]


def _table(data: bytes, header: tuple[int, ...]) -> list[tuple[str, int, int]]:
    if header[1] != _SYMBOL_TABLE:
        return []
    begin, size, strings = header[4], header[5], _sections(data)[header[6]][4]
    entries = [_SYMBOL.unpack_from(data, begin + at) for at in range(0, size, _SYMBOL.size)]
    return [(_string(data, strings + e[0]), e[3], e[1] >> 4) for e in entries]


def _string(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()
