# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Text of MLIR, as far as it is looked at before it is parsed, and the strings of bytecode."""

from __future__ import annotations

import re

from shlo_disc.errors import ProgramError

MOST_NESTED = 256
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*+"|//[^\n]*+|->|[\[({<]|[\])}>]')
_PYTHON = re.compile(
    r'(?:\s|#[^\n]*+)*+(?:import [a-zA-Z_]|from [\w.]+ import |def \w+\(|class \w+[:(]|@\w+|r?"""|if __name__)'
)
_ZIP = b"PK\x03\x04"
_STRING = re.compile(r'"([^"\\\n]*+(?:\\.[^"\\\n]*+)++)"')  # with an escape
_ESCAPE = re.compile(r'\\(?:([0-9A-Fa-f]{2})|(["\\nt]))')
_POSITION = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')
_CHLO_OP = re.compile(r'^[^"\n]*=\s*"?chlo\.\w+', re.MULTILINE)


def decode(data: bytes, what: str) -> str:
    """The text that bytes are. Raises ProgramError."""
    if data.startswith(_ZIP):
        raise ProgramError(
            f"{what} is neither text nor MLIR bytecode, but a zip archive: if torch.export.save wrote it, call "
            "shlo_disc.compile(torch.export.load(file))"
        )
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ProgramError(
            f"{what} is neither text (byte {error.start} is not UTF-8) nor MLIR bytecode (it does not start with "
            "'ML\\xefR')"
        ) from None
    if _PYTHON.match(text):
        raise ProgramError(
            f"{what} is a Python script, which cannot be parsed as StableHLO: in the script, call "
            "shlo_disc.compile(function, args=...).explain(), or write function by jax.export.export(...)(...)"
            ".serialize() to a file for this command; `python -m shlo_disc watch` runs scripts"
        )
    return text


def mentions_chlo(text: str) -> bool:
    """Tells whether an op of the program is CHLO's; a composite that bears a CHLO name is none."""
    return _CHLO_OP.search(text) is not None


def position_of(location: str) -> str:
    """ "line 3, column 7: " for a place in text, the file before it when there is one, "" when unknown."""
    found = _POSITION.search(location)
    if found is None or found[2] == "0":
        return ""
    file = "" if found[1] == "-" else f"{found[1]}, "
    return f"{file}line {found[2]}, column {found[3]}: "


def check_nesting(text: str, what: str) -> None:
    """Raise ProgramError when brackets nest deeper than MLIR's recursive parser can follow on a small stack."""
    depth = 0
    for token in _TOKEN.finditer(text):
        first = token[0][0]
        if first in "[({<":
            depth += 1
        elif first in "])}>":
            depth = max(depth - 1, 0)
        if depth > MOST_NESTED:
            line = text.count("\n", 0, token.start()) + 1
            raise ProgramError(f"{what} cannot be parsed: line {line}: more than {MOST_NESTED} brackets are open")


def check_literals(text: str, what: str) -> None:
    """Raise ProgramError on a string that is not UTF-8, which Python could not show."""
    for found in _STRING.finditer(text):
        try:
            _unescape(found[1]).decode()
        except UnicodeDecodeError:
            line = text.count("\n", 0, found.start()) + 1
            raise ProgramError(f"{what} cannot be parsed: line {line}: a string is not UTF-8") from None


def _unescape(literal: str) -> bytes:
    plain = {"n": b"\n", "t": b"\t"}
    parts, end = [], 0
    for escape in _ESCAPE.finditer(literal):
        parts.append(literal[end : escape.start()].encode())
        parts.append(bytes.fromhex(escape[1]) if escape[1] else plain.get(escape[2], escape[2].encode()))
        end = escape.end()
    return b"".join([*parts, literal[end:].encode()])


def check_strings(bytecode: bytes, what: str) -> None:
    """As `check_literals`, for bytecode that MLIR has written, which has all its strings in one section."""
    try:
        _string_section(bytecode).decode()
    except UnicodeDecodeError:
        raise ProgramError(f"{what} cannot be parsed: a string is not UTF-8") from None


def _string_section(bytecode: bytes) -> bytes:
    """The strings one behind the other."""
    place = bytecode.index(0, 5) + 1  # behind the magic, the version and the name of who wrote it
    while True:
        kind = bytecode[place]
        size, place = _varint(bytecode, place + 1)
        if kind & 0x80:  # it is aligned
            _, place = _varint(bytecode, place)
            while bytecode[place] == 0xCB:
                place += 1
        if kind & 0x7F == 0:
            break
        place += size
    end = place + size
    count, place = _varint(bytecode, place)
    for _ in range(count):
        _, place = _varint(bytecode, place)
    return bytecode[place:end]


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number of MLIR's bytecode, and the place behind it. Zeros at the end of its first byte say how long it is."""
    first = data[place]
    more = (first & -first).bit_length() - 1 if first else 8
    end = place + 1 + more
    bits = int.from_bytes(data[place:end], "little")
    return bits >> min(more + 1, 8), end


__all__ = ["MOST_NESTED", "check_literals", "check_nesting", "check_strings", "decode", "mentions_chlo", "position_of"]
