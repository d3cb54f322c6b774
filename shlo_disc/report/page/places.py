# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Places in the user's program as a page shows them."""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterable

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.utils.locations import source_line

UNKNOWN = "unknown"


def place_text(location: ir.Location | None) -> str:
    """`model.py:12`, from the working directory on for files in it; "unknown" where there is none."""
    return UNKNOWN if location is None else shown(source_line(location))


def shown(line: str) -> str:
    """A line of a file as the page shows it."""
    file, colon, number = line.rpartition(":")
    below = os.path.relpath(file) if os.path.isabs(file) else file
    return f"{file if below.startswith('..') else below}{colon}{number}"


def sources_of(ops: Iterable[ir.OpView], most: int) -> tuple[tuple[str, str], ...]:
    """The user's lines, in the order of the ops, with the code where the file is at hand."""
    lines = dict.fromkeys(source_line(op.location) for op in ops if not op.operation.name.endswith(".return"))
    return tuple((shown(line), _code_of(line)) for line in [*lines][:most] if line != UNKNOWN)


def _code_of(line: str) -> str:
    file, _, number = line.rpartition(":")
    return linecache.getline(file, int(number)).strip() if file and number.isdecimal() else ""


__all__ = ["UNKNOWN", "place_text", "shown", "sources_of"]
