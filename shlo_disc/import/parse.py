# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parsing a program: StableHLO text, MLIR bytecode or a portable artifact.

MLIR's readers can end the process on malformed input, which no exception handler sees. Text is parsed here after a
check of how deep it nests, the one thing that overflows the parser's stack. Bytecode is read in a process of its own
(`bytecode_to_text`), which hands the program back as text: a damaged file ends that process only.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

from shlo_disc.errors import ProgramError
from shlo_disc.mlir import ir, load_chlo, stablehlo

from .chlo import mentions_chlo

BYTECODE_MAGIC = b"ML\xefR"
MOST_NESTED = 256
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[\[({<]|[\])}>]')
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*\\[89A-Fa-f][0-9A-Fa-f](?:[^"\\\n]|\\.)*)"')
_ESCAPE = re.compile(r'\\(?:([0-9A-Fa-f]{2})|(["\\nt]))')
_POSITION = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')


def parse_program(data: str | bytes, context: ir.Context, source: str = "") -> ir.Module:
    """Parse StableHLO text, MLIR bytecode or a portable artifact from outside; `source` is the path, for messages.

    Raises ProgramError with the position.
    """
    what = f"the program {source!r}" if source else "the program"
    if isinstance(data, bytes):
        data = bytecode_to_text(data, what) if data[:4] == BYTECODE_MAGIC else _decode(data, what)
    if not data.strip():
        raise ProgramError(f"{what} is empty")
    check_nesting(data, what)
    _check_strings(data, what)
    if mentions_chlo(data):
        load_chlo(context)
    return _parse(data, context, what)


def parse_trusted(data: bytes, context: ir.Context) -> ir.Module:
    """Parse a portable artifact that this process made, straight away. Raises ProgramError on a dialect we lack."""
    with context:
        try:
            return stablehlo.deserialize_portable_artifact(context, data)
        except ValueError:
            raise ProgramError(
                "the exported program uses ops or attributes outside of StableHLO (such as the sharding rules that JAX "
                "attaches to its custom calls); they have no lowering"
            ) from None


def _decode(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ProgramError(
            f"{what} is neither text (byte {error.start} is not UTF-8) nor MLIR bytecode (it does not start with "
            "'ML\\xefR')"
        ) from None


def _parse(text: str, context: ir.Context, what: str) -> ir.Module:
    try:
        return ir.Module.parse(text, context)
    except ir.MLIRError as error:
        found = [f"{position_of(d.location)}{d.message.strip()}" for d in error.error_diagnostics]
        raise ProgramError(f"{what} cannot be parsed: {'; '.join(found) or error}") from None
    except ValueError as error:  # a NUL inside the text
        raise ProgramError(f"{what} cannot be parsed: {error}") from None


def position_of(location: ir.Location) -> str:
    """ "line 3, column 7: " for a place in text, the file before it when there is one, "" when unknown."""
    found = _POSITION.search(str(location))
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


def _check_strings(text: str, what: str) -> None:
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


def bytecode_to_text(data: bytes, what: str = "the program") -> str:
    """Bytecode or a portable artifact as text with its locations, read in another process.

    Raises ProgramError when it is damaged, whether the reader says so, crashes or hangs.
    """
    is_read, text = _read_apart(data, what)
    if not is_read:
        raise ProgramError(f"{what} cannot be parsed: {text}")
    return text


def check_bytecode(data: bytes, source: str) -> None:
    """Raise ProgramError when a portable artifact is damaged. `source` is the path, for messages."""
    what = f"the program {source!r}" if source else "the program"
    is_read, text = _read_apart(data, what)
    # Sharding rules, which JAX attaches to its custom calls, are of a dialect that the reader lacks.
    if not is_read and b"sdy" not in data:
        raise ProgramError(f"{what} cannot be parsed: {text}")


def _read_apart(data: bytes, what: str) -> tuple[bool, str]:
    """Bytecode read in another process: its text, or the reason why there is none. Raises ProgramError when that
    process crashes or hangs."""
    limit = 60 + len(data) / 1e6  # seconds; reading takes far less
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-P", "-m", "shlo_disc.import.bytecode_reader"]
    try:
        # The command is fixed: this interpreter and a module of this package.
        done = subprocess.run(command, input=data, capture_output=True, timeout=limit, env=environment)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise ProgramError(f"{what} cannot be parsed: the bytecode is damaged (its reader does not end)") from None
    if done.returncode == 0:
        return True, done.stdout.decode()
    if done.returncode == 1:
        return False, done.stdout.decode(errors="replace").strip()
    name = signal.Signals(-done.returncode).name if done.returncode < 0 else f"exit status {done.returncode}"
    raise ProgramError(f"{what} cannot be parsed: the bytecode is damaged (its reader ended with {name})")


__all__ = [
    "BYTECODE_MAGIC", "bytecode_to_text", "check_bytecode", "check_nesting", "parse_program", "parse_trusted",
    "position_of",
]  # fmt: skip
