# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A table as text, which is folded where it is wider than the terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

WIDTH = 100
"""The columns of text where there is no terminal."""

_GAP = "  "
_LEAST = 16


def text_width() -> int:
    """The columns of the terminal, or of the variable COLUMNS."""
    return shutil.get_terminal_size((WIDTH, 24)).columns


@dataclass(frozen=True)
class Table:
    """Rows of cells. right: columns aligned to the right. name: a column that may take several lines. below: columns
    that go below their row, each on a line with its heading, where the table is too wide; "-" is left out there."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Collection[int]
    name: int
    below: Sequence[int]

    def lines(self, width: int) -> list[str]:
        """The table in lines of at most this width, if it can be so narrow."""
        whole = self._aligned(range(len(self.headings)), None)
        if all(len(line) <= width for row in whole for line in row):
            return [line for row in whole for line in row]
        beside = [column for column in range(len(self.headings)) if column not in self.below]
        rest = sum(self._width(column) + len(_GAP) for column in beside if column != self.name)
        first, *others = self._aligned(beside, max(_LEAST, width - rest))
        folded = [
            line for row, lines in zip(self.rows, others, strict=True) for line in (*lines, *self._below(row, width))
        ]
        return [*first, *folded]

    def _width(self, column: int) -> int:
        return max(len(row[column]) for row in (self.headings, *self.rows))

    def _aligned(self, columns: Sequence[int], most: int | None) -> list[list[str]]:
        """The lines of the headings and of each row. most: columns of text that a name may take."""
        widths = {column: self._width(column) for column in columns}
        if most is not None:
            widths[self.name] = min(most, widths[self.name])
        return [[*self._row_lines(row, widths)] for row in (self.headings, *self.rows)]

    def _row_lines(self, row: Sequence[str], widths: dict[int, int]) -> Iterator[str]:
        first, *more = textwrap.wrap(row[self.name], widths[self.name]) or [""]
        cells = [
            cell.rjust(width) if column in self.right else cell.ljust(width)
            for column, width in widths.items()
            for cell in [first if column == self.name else row[column]]
        ]
        yield _GAP.join(cells).rstrip()
        before = sum(width + len(_GAP) for column, width in widths.items() if column < self.name)
        yield from (" " * before + part for part in more)

    def _below(self, row: Sequence[str], width: int) -> Iterator[str]:
        label = max(len(self.headings[column]) for column in self.below)
        indent = " " * 4
        for column in self.below:
            if row[column] in ("-", ""):
                continue
            start = f"{indent}{self.headings[column]:<{label}}{_GAP}"
            yield from textwrap.wrap(
                row[column], max(width, len(start) + _LEAST), initial_indent=start, subsequent_indent=" " * len(start)
            )


__all__ = ["WIDTH", "Table", "text_width"]
