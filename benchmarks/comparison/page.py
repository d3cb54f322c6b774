# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the tables of docs/comparison.md from the committed results. Needs Python alone.

In the page each stands between `<!-- measured: NAME -->` and `<!-- end of NAME -->`.
"""

from __future__ import annotations

import json
import re
import statistics
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.backends import BACKENDS
from benchmarks.tables import Table, markdown_table

Result = dict[str, Any]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "comparison.md"
RESULTS = Path(__file__).with_name("results.json")

TOLERANCE = 1e-3
"""The largest relative error that is not called wrong: ten times what our own tests of models allow."""


def seconds(value: float) -> str:
    """Seconds with three digits or so."""
    if value < 0.1:
        return f"{value:.3f}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def milliseconds(row: Result) -> float:
    """The mean over the shapes of a call's median, in milliseconds."""
    return statistics.fmean(row["warm_seconds"]) * 1e3


def error(value: float) -> str:
    """One digit, and a word where it is too large."""
    return f"{value:.0e}".replace("e-0", "e-") + ("" if value <= TOLERANCE else ", wrong")


Column = tuple[str, Callable[[Result], float], Callable[[float], str]]
COLUMNS: tuple[Column, ...] = (
    ("first answer, s", lambda row: row["first_seconds"], seconds),
    ("all calls, s", lambda row: row["total_seconds"], seconds),
    ("compiles", lambda row: row["compiles"], str),
    ("peak memory, MB", lambda row: row["peak_bytes"] / 1e6, lambda value: f"{value:.0f}"),
    ("known shape, ms", milliseconds, lambda value: f"{value:.2f}"),
    ("error", lambda row: row["error"], error),
)
BEST = ("first answer, s", "all calls, s", "peak memory, MB", "known shape, ms")
"""The columns whose smallest figure is bold."""


def stream_table(stream: Result) -> str:
    """The rows of a stream's backends; the best figure of a column is bold."""
    rows = stream["backends"]
    ran = {name: row for name, row in rows.items() if "refused" not in row}
    best = {head: min(figure(row) for row in ran.values()) for head, figure, _ in COLUMNS if head in BEST}
    lines, marked = [], set()
    for number, (name, row) in enumerate(rows.items()):
        if name not in ran:
            reason = textwrap.shorten(row["refused"].replace("|", "/"), 120, placeholder="...")
            lines.append([BACKENDS[name].title, *["-"] * (len(COLUMNS) - 1), f"refused: {reason}"])
            continue
        lines.append([BACKENDS[name].title, *(shown(figure(row)) for _, figure, shown in COLUMNS)])
        for place, (head, figure, _) in enumerate(COLUMNS, start=1):
            if head in best and figure(row) == best[head]:
                marked.add((number, place))
    return markdown_table(Table("", "", ["", *(head for head, *_ in COLUMNS)], lines, marked))


def conditions(results: Result) -> str:
    """A sentence on when, on what and with which versions the streams were measured."""
    said = []
    for stream in results.values():
        versions = ", ".join(f"{name} {number}" for name, number in stream["versions"].items() if number != "absent")
        said.append(
            f"Measured on {stream['measured']}, {stream['threads']} cores of one {stream['processor']}, medians of "
            f"{stream['rounds']} rounds; {versions}. Errors are relative to {stream['reference']}."
        )
    return "\n\n".join(dict.fromkeys(said))


def padding_table(results: Result) -> str:
    """A table of the elements that padding adds to each stream, and of the resulting cost of calls."""
    lines = []
    for stream in results.values():
        plain, padded = (stream["backends"].get(name, {}) for name in ("jit", "jit_buckets"))
        if "warm_seconds" in plain and "warm_seconds" in padded:
            ratio = milliseconds(padded) / milliseconds(plain)
            lines.append([stream["title"], f"{stream['padded']:.2f}", f"{ratio:.2f}"])
    return markdown_table(
        Table("", "", ["", "elements, padded / given", "time at known shapes, padded / given"], lines)
    )


def tables(results: Result) -> dict[str, str]:
    """Everything of the page that is made, by name."""
    made = {name: stream_table(stream) for name, stream in results.items()}
    return made | {"padding": padding_table(results), "conditions": conditions(results)}


def with_tables(page: str, results: Result) -> str:
    """The page with its tables made anew. Raises ValueError when it has no place for one of them."""
    for name, text in tables(results).items():
        marks = rf"(?<=<!-- measured: {name} -->\n).*?(?=\n<!-- end of {name} -->)"
        found = re.findall(marks, page, flags=re.DOTALL)
        if len(found) != 1:
            raise ValueError(f"the page has {len(found)} places for {name!r}; one is needed")
        page = re.sub(marks, text.replace("\\", r"\\"), page, flags=re.DOTALL)
    return page


def read() -> Result:
    """The committed results."""
    results: Result = json.loads(RESULTS.read_text())
    return results
