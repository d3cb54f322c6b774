# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Joins relocatable ELF64 objects into one, as `ld -r` does: code that is compiled once is then part of many programs.

Sections of one name and kind are put one behind the other, and a relocation that another object's definition answers
names that. Layout and meaning of the tables: System V ABI, chapters 4 and 5, and its AMD64 supplement.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from shlo_disc.errors import CompilerError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")  # offset, type, symbol, addend

_PROGBITS, _SYMTAB, _STRTAB, _RELA = 1, 2, 3, 4
_ALLOC, _INFO_LINK = 0x2, 0x40
_LOCAL, _GLOBAL = 0, 1
_SECTION_SYMBOL, _FILE_SYMBOL = 3, 4
_VISIBILITY = 3
_UNDEFINED, _RESERVED = 0, 0xFF00


class _Header(NamedTuple):
    """A section header, as the file has it."""

    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int


class _Kind(NamedTuple):
    """Sections of which one is made."""

    name: bytes
    type: int
    flags: int
    entry: int


@dataclass
class _Section:
    """A section that is made: its bytes, and its relocations, which name symbols by their numbers."""

    data: bytearray = field(default_factory=bytearray)
    alignment: int = 1
    relocations: list[tuple[int, int, int, int]] = field(default_factory=list)

    def append(self, data: bytes, alignment: int) -> int:
        """Put bytes at the end; returns their offset."""
        alignment = max(alignment, 1)
        self.alignment = max(self.alignment, alignment)
        self.data += bytes(-len(self.data) % alignment) + data
        return len(self.data) - len(data)


class _Symbol(NamedTuple):
    """A symbol that is made. section: the kind that it is in, None where it is undefined."""

    name: bytes
    info: int
    other: int
    section: _Kind | None
    value: int
    size: int


class _Object:
    """The tables of an object that is read."""

    def __init__(self, data: bytes):
        self.data = data
        fields = _HEADER.unpack_from(data)
        if not fields[0].startswith(b"\x7fELF\x02\x01"):
            raise CompilerError("codegen: an object is not ELF64 little-endian")
        start, count = fields[6], fields[12]
        self.headers = [_Header(*_SECTION.unpack_from(data, start + i * _SECTION.size)) for i in range(count)]
        self.names = self.headers[fields[13]].offset

    def kind(self, header: _Header) -> _Kind:
        return _Kind(self._string(self.names + header.name), header.type, header.flags, header.entry)

    def contents(self, header: _Header) -> bytes:
        return self.data[header.offset : header.offset + header.size]

    def symbols(self) -> list[tuple[bytes, int, int, int, int, int]]:
        """Name, info, other, section, value and size of each."""
        tables = [header for header in self.headers if header.type == _SYMTAB]
        found = []
        for table in tables:
            strings = self.headers[table.link].offset
            for name, *rest in _SYMBOL.iter_unpack(self.contents(table)):
                found.append((self._string(strings + name), *rest))
        return found

    def _string(self, at: int) -> bytes:
        return self.data[at : self.data.index(b"\0", at)]


def join_objects(objects: Sequence[bytes], exported: Collection[str] | None = None) -> bytes:
    """One relocatable object of several.

    exported: the symbols that stay global where the objects define them; the others become local. None: all stay as
    they are. Raises CompilerError where two objects define one name.
    """
    joined = _Joined(exported)
    for data in objects:
        joined.add(_Object(data))
    return joined.written()


class _Joined:
    """The sections and symbols of the objects so far."""

    def __init__(self, exported: Collection[str] | None):
        self.exported = None if exported is None else {name.encode() for name in exported}
        self.sections: dict[_Kind, _Section] = {}
        self.symbols: list[_Symbol] = []
        self.of_section: dict[_Kind, int] = {}
        self.by_name: dict[bytes, int] = {}

    def add(self, read: _Object) -> None:
        """Take an object's sections, symbols and relocations over."""
        places: dict[int, tuple[_Kind, int]] = {}
        for index, header in enumerate(read.headers):
            if not header.flags & _ALLOC:
                continue
            kind = read.kind(header)
            if header.type != _PROGBITS:
                raise CompilerError(f"codegen: the section {kind.name.decode()} is of the type {header.type}")
            section = self.sections.setdefault(kind, _Section())
            places[index] = kind, section.append(read.contents(header), header.alignment)
        symbols = [self._symbol(symbol, places) for symbol in read.symbols()]
        for header in read.headers:
            if header.type == _RELA and header.info in places:
                kind, base = places[header.info]
                for offset, type_, symbol, addend in _RELOCATION.iter_unpack(read.contents(header)):
                    number, shift = symbols[symbol]
                    self.sections[kind].relocations.append((base + offset, type_, number, addend + shift))

    def _symbol(
        self, symbol: tuple[bytes, int, int, int, int, int], places: dict[int, tuple[_Kind, int]]
    ) -> tuple[int, int]:
        """The number of the symbol that takes the place of one of an object's, and what is added to its addends."""
        name, info, other, index, value, size = symbol
        binding, type_ = info >> 4, info & 15
        if type_ == _SECTION_SYMBOL and index in places:
            kind, base = places[index]
            if kind not in self.of_section:
                self.of_section[kind] = self._new(_Symbol(b"", info, 0, kind, 0, 0))
            return self.of_section[kind], base
        if index == _UNDEFINED:
            if name and name not in self.by_name:
                self.by_name[name] = self._new(_Symbol(name, _GLOBAL << 4, 0, None, 0, 0))
            return self.by_name.get(name, -1), 0
        if type_ == _FILE_SYMBOL or index not in places:
            return -1, 0
        kind, base = places[index]
        made = _Symbol(name, info, other, kind, base + value, size)
        return (self._new(made) if binding == _LOCAL else self._define(made)), 0

    def _define(self, symbol: _Symbol) -> int:
        """Add a definition that other objects may name, which may have been named before."""
        if self.exported is not None and symbol.name not in self.exported:
            symbol = symbol._replace(info=_LOCAL << 4 | symbol.info & 15, other=symbol.other & ~_VISIBILITY)
        number = self.by_name.get(symbol.name)
        if number is None:
            self.by_name[symbol.name] = number = self._new(symbol)
        elif self.symbols[number].section is None:
            self.symbols[number] = symbol
        else:
            raise CompilerError(f"codegen: two objects define {symbol.name.decode()}")
        return number

    def _new(self, symbol: _Symbol) -> int:
        self.symbols.append(symbol)
        return len(self.symbols) - 1

    # ---- the file ---------------------------------------------------------------------------------------------------

    def written(self) -> bytes:
        """The object's bytes."""
        order = sorted(range(len(self.symbols)), key=lambda i: self.symbols[i].info >> 4 != _LOCAL)
        numbers = {old: new for new, old in enumerate(order, 1)} | {-1: 0}
        sections = {kind: index for index, kind in enumerate(self.sections, 1)}
        strings = _Strings()
        table = bytearray(_SYMBOL.size)
        for old in order:
            s = self.symbols[old]
            index = _UNDEFINED if s.section is None else sections[s.section]
            table += _SYMBOL.pack(strings.add(s.name), s.info, s.other, index, s.value, s.size)
        local = 1 + sum(symbol.info >> 4 == _LOCAL for symbol in self.symbols)
        related = [kind for kind, section in self.sections.items() if section.relocations]
        symtab = len(sections) + len(related) + 2
        file = _File()
        for kind, section in self.sections.items():
            name = strings.add(kind.name)
            file.add(name, kind.type, kind.flags, bytes(section.data), section.alignment, entry=kind.entry)
        for kind in related:
            rows = b"".join(
                _RELOCATION.pack(offset, type_, numbers[number], addend)
                for offset, type_, number, addend in self.sections[kind].relocations
            )
            name = strings.add(b".rela" + kind.name)
            file.add(name, _RELA, _INFO_LINK, rows, 8, symtab, sections[kind], _RELOCATION.size)
        file.add(strings.add(b".note.GNU-stack"), _PROGBITS, 0, b"", 1)
        file.add(strings.add(b".symtab"), _SYMTAB, 0, bytes(table), 8, symtab + 1, local, _SYMBOL.size)
        name = strings.add(b".strtab")
        file.add(name, _STRTAB, 0, bytes(strings.data), 1)
        return file.written()


class _Strings:
    """A table of strings that end in a zero."""

    def __init__(self) -> None:
        self.data = bytearray(1)
        self.places = {b"": 0}

    def add(self, text: bytes) -> int:
        """The place of a string."""
        if text not in self.places:
            self.places[text] = len(self.data)
            self.data += text + b"\0"
        return self.places[text]


class _File:
    """A header, sections in their order, and their headers. The last one has the strings."""

    def __init__(self) -> None:
        self.data = bytearray(_HEADER.size)
        self.headers = [_Header(*[0] * 10)]

    def add(
        self,
        name: int,
        type_: int,
        flags: int,
        data: bytes,
        alignment: int,
        link: int = 0,
        info: int = 0,
        entry: int = 0,
    ) -> None:
        """Put a section at the end."""
        self.data += bytes(-len(self.data) % alignment)
        self.headers.append(_Header(name, type_, flags, 0, len(self.data), len(data), link, info, alignment, entry))
        self.data += data

    def written(self) -> bytes:
        """The bytes, for x86-64."""
        self.data += bytes(-len(self.data) % 8)
        count = len(self.headers)
        if count >= _RESERVED:
            raise CompilerError("codegen: an object has too many sections")
        identity = b"\x7fELF\x02\x01\x01" + bytes(9)
        header = _HEADER.pack(
            identity, 1, 62, 1, 0, 0, len(self.data), 0, _HEADER.size, 0, 0, _SECTION.size, count, count - 1
        )
        self.data[: len(header)] = header
        return bytes(self.data) + b"".join(_SECTION.pack(*section) for section in self.headers)


__all__ = ["join_objects"]
