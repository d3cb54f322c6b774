# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions in a text: LLVM IR, assembly or PTX."""

from __future__ import annotations

import re

_NAME = r"[\w.$-]+"

_FIRST_LINES = {
    "llvm": re.compile(rf'^define [^@]*@"?({_NAME})"?\('),
    "asm": re.compile(rf"^\s*\.type\s+({_NAME}),@function"),
    "ptx": re.compile(rf"^(?:\.(?:visible|weak)\s+)?\.(?:entry|func)\s+(?:\([^)]*\)\s*)?({_NAME})\s*\("),
}
_LAST_LINES = {"llvm": re.compile(r"^}"), "asm": re.compile(r"^\s*\.size\s"), "ptx": re.compile(r"^}")}
_SAME = {"optimized-llvm": "llvm", "host-llvm": "llvm"}


def functions_in(text: str, view: str) -> dict[str, str]:
    """The text of each function by its name. view: "llvm", "asm", "ptx", or another view of LLVM IR.

    A function that is only declared is left out, and so is what stands between functions.
    """
    syntax = _SAME.get(view, view)
    first, last = _FIRST_LINES[syntax], _LAST_LINES[syntax]
    found: dict[str, str] = {}
    name, lines = "", list[str]()
    for line in text.splitlines():
        start = first.match(line)
        if start is not None:
            name, lines = start[1], []
        if name:
            lines.append(line)
        if name and last.match(line):
            found[name] = "\n".join(lines)
            name = ""
    return found


__all__ = ["functions_in"]
