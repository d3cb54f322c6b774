# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of a run, as rows of text, and all of them as Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable

from benchmarks import figures
from benchmarks.figures import Result
from benchmarks.tables import Table, duration, markdown_table


def tables(result: Result) -> list[Table]:
    """All tables but those of single shapes."""
    return [
        _warm(result),
        _cold(result),
        _new_shape(result),
        _compiles(result),
        _memory(result),
        _held(result),
        _kernels(result),
        _dynamism(result),
        _errors(result),
    ]


def _names(result: Result) -> list[str]:
    return list(dict.fromkeys(name for work in result["works"].values() for name in work["backends"]))


def _grid(
    result: Result, caption: str, note: str, value: Callable[[Result, str], float], text: Callable[[float], str]
) -> Table:
    """A row a work and a column a backend; ours loses where a peer's value is smaller."""
    names = [name for name in _names(result) if name != "ours_static" and _measured(result, name, value)]
    rows, lost = [], set()
    for number, work in enumerate(result["works"].values()):
        values = {name: value(work, name) for name in names if name in figures.ran(work)}
        rows.append([work["title"], *(_text(values.get(name), text, work, name) for name in names)])
        for column, name in enumerate(names, start=1):
            rivals = [other for other in figures.peers(work) if figures.rival(work, other) == name]
            if name in values and any(values[other] < values[name] for other in rivals if other in values):
                lost.add((number, column))
    return Table(caption, note, ["work", *map(figures.title, names)], rows, lost)


def _measured(result: Result, name: str, value: Callable[[Result, str], float]) -> bool:
    """Tells whether a backend has a value at any of the works; one that refused all of them keeps its column."""
    rows = [(work, name in figures.ran(work)) for work in result["works"].values() if name in work["backends"]]
    return any(not ran or not math.isnan(value(work, name)) for work, ran in rows)


def _text(value: float | None, text: Callable[[float], str], work: Result, name: str) -> str:
    if value is None:
        return "refused" if name in work["backends"] else ""
    return "" if math.isnan(value) else text(value)


def _warm(result: Result) -> Table:
    note = "Geometric mean over the shapes, as ratios to jax.jit; then ours over the best peer and that of each shape."
    grid = _grid(result, "Warm latency", note, figures.mean_ratio, lambda value: f"{value:.2f}")
    head = [*grid.head, "jax.jit, mean", "best peer", "ours / best", "ours / best per shape"]
    lost = set(grid.lost)
    for number, (row, work) in enumerate(zip(grid.rows, result["works"].values(), strict=True)):
        best = figures.best_peer(work)
        jit = figures.ran(work).get("jit")
        mean = duration(sum(jit["warm_seconds"]) / len(jit["warm_seconds"])) if jit else ""
        row += [mean, figures.title(best) if best else ""]
        for value in (figures.against_best(work), figures.against_each_best(work)):
            row.append("" if math.isnan(value) else f"{value:.2f}")
            if value > 1.0:
                lost.add((number, len(row) - 1))
    return Table(grid.title, note, head, grid.rows, lost)


def _cold(result: Result) -> Table:
    note = "Seconds from libraries imported and weights read to the last first answer of the stream."
    return _grid(result, "Cold start", note, lambda work, name: _row(work, name)["cold_seconds"], _seconds)


def _new_shape(result: Result) -> Table:
    note = "A shape's first call less a repeated one: the median over all shapes but the first."
    return _grid(result, "New shape", note, lambda w, name: figures.new_shape_seconds(_row(w, name)), duration)


def _compiles(result: Result) -> Table:
    note = (
        "Programs compiled up to the end of the stream, where that is known. Those of torch.compile are graphs; with "
        "gradients, inductor's are one each and ours two, forwards and backwards."
    )
    table = _grid(result, "Compiles", note, lambda w, n: _row(w, n).get("compiles") or math.nan, lambda v: f"{v:.0f}")
    return Table(table.title, table.note, table.head, table.rows)


def _memory(result: Result) -> Table:
    note = "Peak of the process's memory in MB, from after the weights are read to the end of the stream."
    return _grid(result, "Peak memory", note, lambda w, name: _row(w, name)["peak_bytes"] / 1e6, lambda v: f"{v:.0f}")


def _held(result: Result) -> Table:
    note = "The process's memory in MB at the end of the stream."
    return _grid(result, "Memory held", note, lambda w, name: _row(w, name)["held_bytes"] / 1e6, lambda v: f"{v:.0f}")


def _kernels(result: Result) -> Table:
    note = (
        "Launches a call where they are known. PyTorch eager: ops that are no views; inductor: kernels generated for "
        "all variants, without the library calls; ONNX Runtime and OpenVINO: nodes of the optimised graph."
    )
    table = _grid(
        result, "Kernels", note, lambda w, n: figures.kernel_count(_row(w, n)) or math.nan, lambda v: f"{v:.0f}"
    )
    return Table(table.title, table.note, table.head, table.rows)


def _dynamism(result: Result) -> Table:
    rows, lost = [], set()
    for number, work in enumerate(result["works"].values()):
        price = figures.dynamism(work)
        rows.append([work["title"], "" if math.isnan(price) else f"{price:.3f}"])
        if price < 0.95:
            lost.add((number, 1))
    note = "Latency of our executable for one shape alone over that of the one for all shapes; below 0.95 is a loss."
    return Table("Price of dynamism", note, ["work", "one shape / all shapes"], rows, lost)


def _errors(result: Result) -> Table:
    note = "The largest over the shapes, relative to the largest magnitude of jax.jit's results."
    table = _grid(result, "Errors", note, lambda w, n: max(_row(w, n).get("errors", [math.nan])), lambda v: f"{v:.0e}")
    return Table(table.title, table.note, table.head, table.rows)


def _row(work: Result, name: str) -> Result:
    row: Result = work["backends"][name]
    return row


def _seconds(value: float) -> str:
    return f"{value:.2f}"


def refusals(result: Result) -> list[str]:
    """The works that were refused, each with the backend and its reason."""
    lines = []
    for work in result["works"].values():
        for name, row in work["backends"].items():
            if "refused" in row:
                lines.append(f"{work['title']}, {figures.title(name)}: {row['refused']}")
    return lines


def lost_lines(result: Result) -> list[str]:
    """For each work and peer that is faster at some shapes: at how many, and where by how much most."""
    lines = []
    for work in result["works"].values():
        found = figures.losses(work)
        for peer in dict.fromkeys(loss.peer for loss in found):
            own = [loss for loss in found if loss.peer == peer]
            worst = f"worst {own[0].ratio:.2f} at {work['dims']} = {', '.join(map(str, own[0].shape))}"
            lines.append(f"{work['title']}, {figures.title(peer)}: {len(own)} of {len(work['shapes'])} shapes, {worst}")
    return lines


def markdown(result: Result) -> str:
    """All tables as Markdown; what ours loses is in bold."""
    copies = result["machine"]["copy_bytes_per_second"].items()
    speeds = ", ".join(f"{int(size) >> 20} MB at {speed / 1e9:.1f} GB/s" for size, speed in copies)
    versions = ", ".join(f"{name} {version}" for name, version in result["machine"]["versions"].items())
    parts = [f"{result['machine']['environment']}", f"Versions: {versions}.", f"Copies, read plus written: {speeds}."]
    for table in tables(result):
        parts.append(f"### {table.title}\n\n{table.note}\n\n{markdown_table(table)}")
    parts.append("### Losses\n\n" + _list(lost_lines(result)))
    parts.append("### Refusals\n\n" + _list(refusals(result)))
    return "\n\n".join(parts)


def _list(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines) or "None."
