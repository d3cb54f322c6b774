# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of a process as lines of text, and as one HTML page that needs nothing else."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterable, Sequence

from .document import FunctionRow, ProgramRow

_HEADINGS = ("function", "defined at", "calls", "shapes", "programs", "seconds", "why")
_STYLE = """
:root { color-scheme: light dark; }
body { font: 14px/1.45 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; margin: 24px; max-width: 1200px; }
h1 { font-size: 20px; margin: 0 0 4px; }
p { margin: 4px 0 14px; opacity: .75; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 5px 10px; border-bottom: 1px solid #8884; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.many > td { background: #f6b6b033; }
code, td.mono { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 12.5px; }
summary { cursor: pointer; }
li { margin: 2px 0; }
"""
_LONGEST = 80  # characters of a text in the last column
_MOST = 2  # programs of a form that nobody wonders about


def lines(rows: Sequence[FunctionRow], *, own: bool = False) -> list[str]:
    """A line for each function of the user's, and one for all that JAX ran by itself, or with `own` one for each.

    Long texts of the last column are below the table, with a number that its line refers to.
    """
    shown = [row for row in rows if own or row.is_users]
    others = [row for row in rows if not own and not row.is_users]
    cells = [_HEADINGS, *(_cells(row) for row in shown)]
    if others:
        cells.append(_together(others))
    notes: list[str] = []
    for i, row in enumerate(cells):
        if len(row[-1]) > _LONGEST:
            first, rest = _divided(row[-1])
            notes.append(f"[{len(notes) + 1}] {row[0]}: {rest}")
            cells[i] = (*row[:-1], f"{first} [{len(notes)}]")
    widths = [max(len(row[i]) for row in cells) for i in range(len(_HEADINGS) - 1)]
    table = ["  ".join([*map(_padded, row, widths, range(len(widths))), row[-1]]).rstrip() for row in cells]
    return [*table, "", *notes] if notes else table


def _divided(text: str) -> tuple[str, str]:
    """The start of a long text, up to the end of a clause where there is one, and all of it."""
    ends = [found.start() for found in re.finditer(r"[:;,.] ", text[:_LONGEST])]
    return text[: ends[-1]] if ends else f"{text[:_LONGEST].rsplit(' ', 1)[0]} ...", text


def _padded(text: str, width: int, column: int) -> str:
    return text.rjust(width) if 2 <= column <= 5 else text.ljust(width)


def _cells(row: FunctionRow) -> tuple[str, ...]:
    counts = (row.calls, row.shape_count, len(row.programs))
    return (row.name, shown_place(row.place), *map(str, counts), f"{row.seconds:.2f}", row.why)


def _together(rows: Iterable[FunctionRow]) -> tuple[str, ...]:
    rows = list(rows)
    programs = sum(len(row.programs) for row in rows)
    counts = (sum(row.calls for row in rows), sum(row.shape_count for row in rows), programs)
    seconds = sum(row.seconds for row in rows)
    return (f"({len(rows)} of JAX's own)", "", *map(str, counts), f"{seconds:.2f}", "")


def shown_place(place: str) -> str:
    """A file and line, from the working directory on for files in it."""
    below = os.path.relpath(place) if os.path.isabs(place) else place
    return place if below.startswith("..") else below


def page(rows: Sequence[FunctionRow], command: str) -> str:
    """The page. command: what was run."""
    body = "\n".join(_row(row) for row in rows)
    numbers = {2, 3, 4, 5}
    heads = "".join(f"<th{' class=number' if i in numbers else ''}>{h}</th>" for i, h in enumerate(_HEADINGS))
    programs = sum(len(row.programs) for row in rows)
    seconds = sum(row.seconds for row in rows)
    said = f"{len(rows)} functions, {programs} programs, {seconds:.2f} s in compiles"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(command)}: programs</title><style>{_STYLE}</style></head>\n<body>"
        f"<h1><code>{html.escape(command)}</code></h1><p>{said}. Coloured: functions with more than {_MOST} programs "
        "for arguments of the same element types and ranks.</p>\n"
        f"<table><thead><tr>{heads}</tr></thead><tbody>\n{body}\n</tbody></table></body></html>\n"
    )


def _row(row: FunctionRow) -> str:
    name, place, *numbers, why = (html.escape(cell) for cell in _cells(row))
    many = " class=many" if len(row.programs) > _MOST * max(row.forms, 1) else ""
    kind = "" if row.is_users else " (JAX's own)"
    cells = "".join(f"<td class=number>{number}</td>" for number in numbers)
    listed = "".join(f"<li>{_program(program)}</li>" for program in row.programs)
    seen = "".join(f"<li><code>{html.escape(shapes)}</code></li>" for shapes in row.shapes)
    lists = f"programs<ol>{listed}</ol>shapes<ul>{seen}</ul>"
    more = f"<details><summary>{why or 'programs and shapes'}</summary>{lists}</details>"
    return f"<tr{many}><td><code>{name}</code>{kind}</td><td class=mono>{place}</td>{cells}<td>{more}</td></tr>"


def _program(program: ProgramRow) -> str:
    kind = "with symbols" if program.is_symbolic else "for one shape"
    why = f": {html.escape(program.why)}" if program.why else ""
    return f"{kind}, {program.seconds:.2f} s, at <code>{html.escape(program.shapes)}</code>{why}"


__all__ = ["lines", "page", "shown_place"]
