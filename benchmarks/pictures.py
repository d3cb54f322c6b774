# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PNG pictures of a run by matplotlib: one of all works, and one of each."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from benchmarks import figures
from benchmarks.backends import BACKENDS
from benchmarks.figures import Result

LOST = "#cc0000"
_TABLE: Any = matplotlib.colormaps["tab20"]
COLOURS = dict(zip(BACKENDS, _TABLE.colors, strict=False))


def write(result: Result, file: Path) -> dict[str, Path]:
    """Writes the pictures beside the JSON file; by work, that of all works under ""."""
    written = {"": file.with_suffix(".png")}
    _overview(result).savefig(written[""], dpi=110)
    for name, work in result["works"].items():
        written[name] = file.with_name(f"{file.stem}-{name}.png")
        _work(work).savefig(written[name], dpi=110)
    return written


def _overview(result: Result) -> Figure:
    """Warm latency of all backends in all works, as ratios to jax.jit."""
    works = list(result["works"].values())
    figure = Figure(figsize=(11, 1 + 0.9 * len(works)), layout="constrained")
    axes = figure.subplots()
    names = [name for name in BACKENDS if any(figures.ratios(work, name, figures.REFERENCE) for work in works)]
    names = [name for name in names if name != "ours_static"]
    height = 0.85 / max(1, len(names))
    for row, name in enumerate(names):
        places = [number + row * height for number in range(len(works))]
        values = [figures.mean_ratio(work, name) for work in works]
        bars = axes.barh(places, values, height, color=COLOURS[name], label=figures.title(name))
        for bar, work in zip(bars, works, strict=True):
            _mark(bar, work, name)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_yticks([number + 0.42 for number in range(len(works))], [work["title"] for work in works])
    axes.invert_yaxis()
    axes.set_xlim(0.0, 3.0)
    axes.set_xlabel("warm latency over jax.jit's, geometric mean; a red edge is a loss of ours")
    figure.legend(fontsize=8, loc="outside right upper")
    return figure


def _mark(bar: Any, work: Result, name: str) -> None:
    """A red edge around ours where a peer that it is compared with is faster."""
    rivals = [peer for peer in figures.peers(work) if figures.rival(work, peer) == name]
    if any(figures.mean_ratio(work, name, peer) > 1.0 for peer in rivals):
        bar.set_edgecolor(LOST)
        bar.set_linewidth(2)


def _work(work: Result) -> Figure:
    """Latency over size, cold start, cost of a new shape, peak memory."""
    figure = Figure(figsize=(12, 7), layout="constrained")
    figure.suptitle(work["title"])
    latency, cold, extra, memory = figure.subplots(2, 2).flat
    _latency(latency, work)
    ran = {name: row for name, row in figures.ran(work).items() if name != "ours_static"}
    _bars(cold, "cold start, s", {name: row["cold_seconds"] for name, row in ran.items()})
    _bars(extra, "new shape: first call less a repeated one, s", _positive(ran))
    _bars(memory, "peak memory, MB", {name: row["peak_bytes"] / 1e6 for name, row in ran.items()}, scale="linear")
    return figure


def _positive(ran: dict[str, Result]) -> dict[str, float]:
    extra = {name: figures.new_shape_seconds(row) for name, row in ran.items()}
    return {name: max(value, 1e-7) for name, value in extra.items() if not math.isnan(value)}


def _latency(axes: Any, work: Result) -> None:
    for name, row in figures.ran(work).items():
        points = sorted(
            (figures.size(work["shapes"][index]), seconds)
            for index, seconds in zip(row["shapes"], row["warm_seconds"], strict=False)
        )
        if not points:
            continue
        width = 2.2 if BACKENDS[name].ours else 1.0
        axes.plot(*zip(*points, strict=True), ".-", color=COLOURS[name], linewidth=width, label=figures.title(name))
    lost = {loss.shape for loss in figures.losses(work)}
    ours = figures.ran(work).get("ours")
    for shape, seconds in zip(work["shapes"], ours["warm_seconds"] if ours else [], strict=False):
        if tuple(shape) in lost:
            axes.plot(figures.size(shape), seconds, "o", markersize=9, fillstyle="none", color=LOST)
    axes.set(xscale="log", yscale="log", xlabel=f"product of {work['dims']}", title="warm latency, s (red: a loss)")
    axes.legend(fontsize=7)


def _bars(axes: Any, title: str, values: dict[str, float], scale: str = "log") -> None:
    names = list(values)
    axes.barh([figures.title(name) for name in names], list(values.values()), color=[COLOURS[name] for name in names])
    axes.set(xscale=scale, title=title)
    axes.invert_yaxis()
