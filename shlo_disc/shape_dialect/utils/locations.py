# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From an MLIR location to the user's own source line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from shlo_disc.shape_dialect.mlir import ir

_OURS = (f"{Path(__file__).parents[2]}/", "/site-packages/shlo_disc/")
"""Folders of this package: here, and where an exported program may come from."""


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


class Frame(NamedTuple):
    """A line of a program in Python, and the qualified name of the function that it is in."""

    function: str
    file: str
    line: int


def frames(location: Any) -> Iterator[Frame]:
    """The calls that an operation came from, the innermost first, as JAX writes them."""
    if isinstance(location, ir.NameLoc):
        child: Any = location.child_loc
        if isinstance(child, ir.FileLineColLoc):
            yield Frame(location.name_str, child.filename, child.start_line)
        else:
            yield from frames(child)
    elif isinstance(location, ir.CallSiteLoc):
        yield from frames(location.callee)
        yield from frames(location.caller)
    elif isinstance(location, ir.FusedLoc):
        for part in location.locations:
            yield from frames(part)


def source_line(location: ir.Location) -> str:
    """`file.py:12` of the innermost frame that is known and not in this package; else the name that the producer gave,
    such as `jit(f)/add`; else "unknown"."""
    users = (line for line in _files(location) if not any(folder in line for folder in _OURS))
    return next(users, None) or next(_names(location), None) or "unknown"


def operation_name(location: ir.Location) -> str:
    """The producer's name for the operation, e.g. `jit(f)/dot_general`; "" when it gave none."""
    return next(_names(location), "")
