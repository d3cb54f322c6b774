# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One self-contained HTML page of a run, losses in red; with pictures where matplotlib is installed."""

from __future__ import annotations

import base64
import html
from pathlib import Path

from benchmarks import figures
from benchmarks.backends import BACKENDS
from benchmarks.figures import Result
from benchmarks.report import lost_lines, refusals, tables
from benchmarks.tables import STYLE, Table, duration, html_list, html_table


def write_page(result: Result, file: Path) -> list[Path]:
    """Writes the page, and a PNG picture of each work, beside the JSON file; returns what was written."""
    pictures = _pictures(result, file)
    page = file.with_suffix(".html")
    page.write_text(render(result, pictures))
    return [page, *pictures.values()]


def _pictures(result: Result, file: Path) -> dict[str, Path]:
    try:
        from benchmarks import pictures
    except ImportError:  # matplotlib is part of the extra: without it the page has its tables
        return {}
    return pictures.write(result, file)


def render(result: Result, pictures: dict[str, Path]) -> str:
    """The page's text; pictures by work, that of all works under ""."""
    parts = [
        "<h1>shlo_disc and its peers</h1>",
        f"<p>{html.escape(result['machine']['environment'])}</p>",
        "<p class=lost>A small run: a smoke test, no measurement.</p>" if result["small"] else "",
        "<p>One compile of ours serves all shapes. What it loses is <span class=lost>red</span>.</p>",
        _image(pictures.get("")),
        *(html_table(table) for table in tables(result)),
        f"<h2>Losses</h2>{html_list(lost_lines(result), 'lost')}",
        f"<h2>Refusals</h2>{html_list(refusals(result), '')}",
    ]
    for name, work in result["works"].items():
        parts.append(f"<h2 id={name}>{html.escape(work['title'])}</h2>{_image(pictures.get(name))}")
        parts.append(f"<details><summary>Every shape</summary>{html_table(shapes_table(work))}</details>")
    head = f"<meta charset=utf-8><title>shlo_disc and its peers</title><style>{STYLE}</style>"
    return f"<!doctype html>\n<html lang=en><head>{head}</head><body>\n" + "\n".join(parts) + "\n</body></html>\n"


def shapes_table(work: Result) -> Table:
    """Warm medians at each shape; a peer's is red where ours is slower."""
    ran = {name: row for name, row in figures.ran(work).items() if row["warm_seconds"]}
    rows: list[list[str]] = []
    lost = set()
    for index, shape in enumerate(work["shapes"]):
        row = [", ".join(map(str, shape))]
        seconds = {n: r["warm_seconds"][r["shapes"].index(index)] for n, r in ran.items() if index in r["shapes"]}
        for column, name in enumerate(ran, start=1):
            row.append(duration(seconds[name]) if name in seconds else "")
            if not BACKENDS[name].ours and seconds[name] < seconds.get(figures.rival(work, name), 0.0):
                lost.add((index, column))
        rows.append(row)
    return Table("", "Medians of the warm calls.", [work["dims"], *map(figures.title, ran)], rows, lost)


def _image(path: Path | None) -> str:
    if path is None:
        return ""
    return f"<img alt='' src='data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}'>"
