# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of cells as lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

Row = tuple[str, ...]


def aligned(rows: Sequence[Row], *, left: Collection[int] = (), indent: str = "  ") -> Iterator[str]:
    """The rows as lines whose columns are aligned at the right, those of `left` at the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if number in left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield indent + "  ".join(cells).rstrip()
