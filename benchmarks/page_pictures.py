# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pictures of docs/benchmarks.md, README.md and docs/guides/ragged.md, drawn from the tables of the first.

    python -m benchmarks.page_pictures      # writes docs/pictures/*.svg; needs matplotlib

They have no background, and lines and letters of a grey that reads on white and on black. Each holds the figures that
it was drawn from, so that a test can tell when the page has others.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
FOLDER = ROOT / "docs" / "pictures"
GREY = "#7d7d7d"
COLOURS = {
    "shlo_disc": "#6fa8dc", "shlo_disc, bound": "#1c6fc4", "shlo_disc, cached": "#74c2b8", "jax.jit": "#e0a030",
    "torch eager": "#c8743c", "ONNX Runtime": "#9a76c4", "OpenVINO": "#c46f9f",
}  # fmt: skip

Figures = dict[str, dict[str, float]]
"""By work, and by backend; without those that refused the work."""


@dataclass(frozen=True)
class Picture:
    """A picture of a table: `marker` begins the sentence before it, `columns` are its backends.

    A row of it is a work and a dot a backend. With `curves`, the x axis's label, a row of the table is a place on it.
    """

    name: str
    marker: str
    columns: tuple[str, ...]
    label: str
    curves: str = ""

    def figures(self, page: str) -> Figures:
        """The table's figures. Raises ValueError where the page has no such table."""
        _, found, rest = page.partition(f"\n{self.marker}")
        if not found:
            raise ValueError(f"docs/benchmarks.md has no sentence that begins with {self.marker!r}")
        rows = [line.strip("| ").split(" | ") for line in rest.split("\n\n")[1].splitlines()]
        columns = {name: rows[0].index(name) for name in self.columns}
        found_figures: Figures = {}
        for row in rows[2:]:
            values = {name: row[place].strip("*") for name, place in columns.items()}
            found_figures[row[0]] = {name: float(value) for name, value in values.items() if value != "refused"}
        return found_figures


_PEERS = ("jax.jit", "torch eager", "ONNX Runtime", "OpenVINO")
PICTURES = (
    Picture("headline", "Each program of the corpus ", ("shlo_disc", "jax.jit"), "processor seconds, less is better"),
    Picture(
        "warm", "Warm: ", ("shlo_disc", "shlo_disc, bound", *_PEERS), "time of a call, jax.jit = 1, less is better"
    ),
    Picture(
        "cold", "Cold: ", ("shlo_disc", "shlo_disc, cached", *_PEERS), "seconds to the last answer, less is better"
    ),
    Picture(
        "memory", "Peak memory ", ("shlo_disc, bound", "shlo_disc, cached", *_PEERS), "peak memory, MB, less is better"
    ),
    *(
        Picture(
            f"padding-{name.split()[-1].lower()}",
            "As padding grows: ",
            (f"{name}, shlo_disc", f"{name}, jax.jit"),
            f"{name}: milliseconds of a call, less is better",
            "size of the padded batch, ragged = 1",
        )
        for name in ("packed BERT", "experts", "molecules", "recommender")
    ),
)


def draw(picture: Picture, figures: Figures, path: Path) -> None:
    """The picture as SVG whose letters are text."""
    import matplotlib

    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": picture.name, "font.family": "sans-serif"})
    figure = (_curves if picture.curves else _dots)(picture, figures)
    metadata = {"Date": None, "Title": picture.label, "Description": described(figures)}
    figure.savefig(path, transparent=True, metadata=metadata)


def _curves(picture: Picture, figures: Figures) -> Any:
    """A curve a column over the rows of the table, whose names are numbers."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 3.4), layout="constrained")
    axes = figure.subplots()
    for column in picture.columns:
        backend = column.partition(", ")[2]
        width = 2.4 if backend.startswith("shlo_disc") else 1.2
        points = [values[column] for values in figures.values()]
        axes.plot([float(row) for row in figures], points, ".-", linewidth=width, color=COLOURS[backend], label=backend)
    axes.set_xscale("log", base=2)
    axes.set_xticks([float(row) for row in figures], list(figures))
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.tick_params(axis="y", which="minor", labelsize=7, labelcolor=GREY)
    axes.set_xlabel(picture.curves, color=GREY)
    axes.set_ylabel(picture.label.partition(": ")[2].partition(",")[0], color=GREY)
    _in_grey(axes, "y", ("bottom", "left"))
    figure.legend(loc="outside upper center", ncols=2, frameon=False, labelcolor=GREY, fontsize=9)
    return figure


def _dots(picture: Picture, figures: Figures) -> Any:
    """A row a work and a dot a backend. Rows without ours are left out."""
    from matplotlib.figure import Figure

    works = {work: values for work, values in figures.items() if picture.columns[0] in values}
    figure = Figure(figsize=(8.2, 1.3 + 0.34 * len(works)), layout="constrained")
    axes = figure.subplots()
    for row, values in enumerate(works.values()):
        axes.plot([min(values.values()), max(values.values())], [row, row], color=GREY, linewidth=0.8, zorder=1)
    for name in reversed(picture.columns):
        rows = [row for row, values in enumerate(works.values()) if name in values]
        places = [values[name] for values in works.values() if name in values]
        size = 80 if name.startswith("shlo_disc") else 38
        axes.scatter(places, rows, size, color=COLOURS[name], label=name, zorder=2)
    _finish(axes, list(works), picture.label)
    figure.legend(loc="outside upper center", ncols=3, frameon=False, labelcolor=GREY, fontsize=9, reverse=True)
    return figure


def _finish(axes: Any, works: list[str], label: str) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yticks(range(len(works)), works)
    axes.invert_yaxis()
    axes.set_xlabel(label, color=GREY)
    axes.xaxis.set_major_formatter("{x:g}")
    _in_grey(axes, "x", ("bottom",))


def _in_grey(axes: Any, grid: str, sides: tuple[str, ...]) -> None:
    axes.tick_params(which="both", colors=GREY, labelsize=9)
    axes.grid(axis=grid, color=GREY, alpha=0.25, linewidth=0.6)
    for side, spine in axes.spines.items():
        spine.set_visible(side in sides)
        spine.set_color(GREY)


def described(figures: Figures) -> str:
    """The figures as one line of text."""
    return json.dumps(figures, separators=(",", ":"))


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    page = PAGE.read_text()
    for picture in PICTURES:
        draw(picture, picture.figures(page), FOLDER / f"{picture.name}.svg")


if __name__ == "__main__":
    main()
