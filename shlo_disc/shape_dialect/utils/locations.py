# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From an MLIR location to the user's own source line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shlo_disc.mlir import ir


def _files(location: Any) -> Iterator[str]:
    if isinstance(location, ir.FileLineColLoc):
        # MLIR calls a program that has no file "-".
        is_text = location.filename == "-"
        yield f"line {location.start_line}" if is_text else f"{location.filename}:{location.start_line}"
    elif isinstance(location, ir.NameLoc):
        yield from _files(location.child_loc)
    elif isinstance(location, ir.CallSiteLoc):
        yield from _files(location.callee)
        yield from _files(location.caller)
    elif isinstance(location, ir.FusedLoc):
        for part in location.locations:
            yield from _files(part)


def _names(location: Any) -> Iterator[str]:
    if isinstance(location, ir.NameLoc):
        yield location.name_str
    elif isinstance(location, ir.CallSiteLoc):
        yield from _names(location.callee)
    elif isinstance(location, ir.FusedLoc):
        for part in location.locations:
            yield from _names(part)


def source_line(location: ir.Location) -> str:
    """`file.py:12` of the innermost frame that is known, else the name that the producer gave, else "unknown"."""
    return next(_files(location), None) or next(_names(location), None) or "unknown"


def operation_name(location: ir.Location) -> str:
    """The producer's name for the operation, e.g. `jit(f)/dot_general`; "" when it gave none."""
    return next(_names(location), "")
