# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of results as text, Markdown and HTML, and numbers as people read them. Needs Python alone."""

from __future__ import annotations

import html
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1200px; margin: 2em auto; padding: 0 1em; color: #222 }
table { border-collapse: collapse; margin: 0.5em 0 1.5em; font-variant-numeric: tabular-nums; display: block;
  overflow-x: auto }
th, td { padding: 0.15em 0.7em; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left }
.lost { color: #c00; font-weight: bold }
img { max-width: 100% }
summary { cursor: pointer }
"""


@dataclass(frozen=True)
class Table:
    """A titled table; `lost` has the (row, column) of the cells in which ours loses."""

    title: str
    note: str
    head: list[str]
    rows: list[list[str]]
    lost: set[tuple[int, int]] = field(default_factory=set)


def geometric_mean(values: Iterable[float]) -> float:
    """The geometric mean of positive numbers; NaN for none."""
    logs = [math.log(value) for value in values]
    return math.exp(statistics.fmean(logs)) if logs else math.nan


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Text columns, right-aligned under their heads."""
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def duration(value: float) -> str:
    """Seconds as text of three digits or so in s, ms or us."""
    if value >= 1.0:
        return f"{value:.2f} s"
    return f"{value * 1e3:.2f} ms" if value >= 1e-3 else f"{value * 1e6:.2f} us"


def markdown_table(table: Table) -> str:
    """The rows alone; what is lost is bold."""
    lines = [f"| {' | '.join(table.head)} |", f"|{'--|' * len(table.head)}"]
    for number, row in enumerate(table.rows):
        cells = [f"**{cell}**" if (number, column) in table.lost else cell for column, cell in enumerate(row)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def html_table(table: Table) -> str:
    """With title and note; what is lost is red."""

    def cell(row: int, column: int, text: str) -> str:
        mark = " class=lost" if (row, column) in table.lost else ""
        return f"<td{mark}>{html.escape(text)}</td>"

    head = "".join(f"<th>{html.escape(text)}</th>" for text in table.head)
    body = "".join(
        f"<tr>{''.join(cell(number, column, text) for column, text in enumerate(row))}</tr>\n"
        for number, row in enumerate(table.rows)
    )
    title = f"<h2>{html.escape(table.title)}</h2>" if table.title else ""
    return f"{title}<p>{html.escape(table.note)}</p><table><tr>{head}</tr>\n{body}</table>"


def html_list(lines: list[str], kind: str) -> str:
    """Lines of a class of the style."""
    items = "".join(f"<li class='{kind}'>{html.escape(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if lines else "<p>None.</p>"
