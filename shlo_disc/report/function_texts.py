# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The positions of the functions in a text: MLIR, LLVM IR, assembly or PTX."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_NAME = r'"[^"]+"|[\w$.-]+'

_FIRST_LINES = {
    "mlir": re.compile(rf"\s*(?:func\.func|gpu\.func|llvm\.func) .*?@({_NAME})\("),
    "llvm": re.compile(rf"define [^@]*@({_NAME})\("),
    "asm": re.compile(rf"\s*\.type\s+({_NAME}),@function"),
    "ptx": re.compile(rf"(?:\.\w+ )*\.(?:entry|func)\s+(?:\([^)]*\)\s*)?({_NAME})\s*\("),
}
_LAST_LINES = {"llvm": re.compile(r"}"), "asm": re.compile(r"\s*\.size\s"), "ptx": re.compile(r"}")}
_SYNTAX = {"llvm": "llvm", "optimized-llvm": "llvm", "host-llvm": "llvm", "asm": "asm", "ptx": "ptx"}


def functions_of(lines: Sequence[str], view: str) -> Iterator[tuple[str, int, int]]:
    """Each function's name, the number of its first line, and that of the line behind its last.

    view: one of those that `stage_text` takes; what is none of LLVM IR, assembly or PTX is MLIR. Functions of LLVM IR
    and PTX that are only declared are left out.
    """
    syntax = _SYNTAX.get(view, "mlir")
    first = _FIRST_LINES[syntax]
    for number, line in enumerate(lines):
        match = first.match(line)
        end = None if match is None else _end(lines, number, syntax)
        if match is not None and end is not None:
            yield match[1].strip('"'), number, end


def functions_in(text: str, view: str) -> dict[str, str]:
    """The text of each function of `functions_of` by its name."""
    lines = text.splitlines()
    return {name: "\n".join(lines[first:end]) for name, first, end in functions_of(lines, view)}


def _end(lines: Sequence[str], first: int, syntax: str) -> int | None:
    """The number of the line behind a function that begins at a line; None for one that has no body."""
    line = lines[first]
    if syntax == "mlir":
        if not line.endswith("{"):
            return first + 1
        closing = line[: len(line) - len(line.lstrip())] + "}"
        return next((k + 1 for k in range(first + 1, len(lines)) if lines[k].startswith(closing)), len(lines))
    last, start = _LAST_LINES[syntax], _FIRST_LINES[syntax]
    for number in range(first + 1, len(lines)):
        if last.match(lines[number]):
            return number + 1
        if start.match(lines[number]):
            return None
    return None


__all__ = ["functions_in", "functions_of"]
