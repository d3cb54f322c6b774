# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The findings of a run on a GPU as lines, tables and one self-contained page, with our losses in red."""

from __future__ import annotations

import html
import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.gpu.backends import BACKENDS, OURS
from benchmarks.gpu.bundle import Program
from benchmarks.tables import STYLE, Table, duration, geometric_mean, html_list, html_table, markdown_table

Result = dict[str, Any]

TOO_FAR = 1e-3
"""Results of backends that differ by more, relative to the largest, are not of the same program."""


# ---- checks ---------------------------------------------------------------------------------------------------------


def wrong_lines(checks: Sequence[Result]) -> list[str]:
    """The errors: a line for each wrong result, and for each program that did not run."""
    lines = []
    for row in checks:
        name = f"{row['name']} ({row['title']})" if row["title"] != row["name"] else row["name"]
        lines += [f"{name}: {text}" for text in row.get("wrong", [])]
        if "refused" in row and not is_skipped(row):
            lines.append(f"{name}: {row['refused']}")
    return lines


def is_skipped(row: Result) -> bool:
    """Tells whether a program was not run because ml_dtypes is not installed here."""
    return "ml_dtypes" in row.get("refused", "")


def family_line(result: Result, family: str, count: int) -> str:
    """One family's checks in a line."""
    rows = [row for row in result["checks"] if row["family"] == family]
    right = [row for row in rows if not wrong_lines([row]) and not is_skipped(row)]
    calls = sum(row["calls"] for row in right)
    refused = sum(row["family"] == family for row in result["refused"])
    parts = [f"{family}: {len(right)} of {count} programs right ({calls} calls)"]
    skipped = sum(map(is_skipped, rows))
    parts += [f"{skipped} not run, for ml_dtypes is not installed"] if skipped else []
    parts += [f"{refused} refused when they were compiled"] if refused else []
    return ", ".join(parts)


def checks_table(result: Result) -> Table:
    """A row a family."""
    rows, lost = [], set()
    families = dict.fromkeys(row["family"] for row in (*result["checks"], *result["refused"]))
    for number, family in enumerate(families):
        own = [row for row in result["checks"] if row["family"] == family]
        wrong = [row for row in own if wrong_lines([row])]
        ran = [row for row in own if "calls" in row]
        worst = max((row["error"] for row in ran), default=math.nan)
        rows.append([
            family, str(len(own)), str(sum(row["calls"] for row in ran)), str(len(wrong)),
            str(sum(map(is_skipped, own))), str(sum(row["family"] == family for row in result["refused"])),
            "" if math.isnan(worst) else f"{worst:.2f}", str(sum(bool(row["unsteady"]) for row in ran)),
        ])  # fmt: skip
        if wrong:
            lost.add((number, 3))
    head = ["family", "programs", "calls", "wrong", "not run", "refused", "largest error", "unsteady"]
    note = (
        "Calls of recorded programs against XLA's results on a processor. Refused: when they were compiled, and so not "
        "in the bundle. Errors are shares of what is allowed. Unsteady: programs whose bits differ from run to run."
    )
    return Table("Checks", note, head, rows, lost)


def refusals(result: Result) -> list[str]:
    """The reasons for which the compiler refused programs, and how many; the most frequent first."""
    reasons = Counter(row["reason"] for row in result["refused"])
    return [f"{count} x {reason}" for reason, count in reasons.most_common()]


# ---- times ----------------------------------------------------------------------------------------------------------


def _stream(work: Result, name: str, index: int) -> float:
    """Seconds of a call among many; NaN where there are none."""
    return float(work["backends"].get(name, {}).get("stream", {}).get(str(index), math.nan))


def share_of_copy(work: Result, index: int) -> float:
    """The time of a copy of as many bytes, over our time; NaN where one of both is not known."""
    return (work["copy_seconds"].get(str(index)) or math.nan) / _stream(work, OURS, index)


def share_text(work: Result, index: int) -> str:
    """The share in words."""
    share = share_of_copy(work, index)
    return "" if math.isnan(share) else f"{share:.0%} of a copy's speed"


def difference(work: Result, name: str, index: int) -> float:
    """The difference of a backend's sample from ours, relative to the largest of each result."""
    own, other = (work["backends"].get(n, {}).get("sample", {}).get(str(index)) for n in (OURS, name))
    if own is None or other is None or len(own) != len(other):
        return math.nan
    return max((_apart(a, b) for a, b in zip(own, other, strict=True)), default=0.0)


def _apart(one: Sequence[float], other: Sequence[float]) -> float:
    if len(one) != len(other):
        return math.inf
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a != b and not (math.isnan(a) and math.isnan(b))]
    return max((abs(a - b) / max(abs(one[-1]), 1e-30) for a, b in pairs), default=0.0)


def others(work: Result) -> list[str]:
    """The other backends that ran."""
    return [name for name in BACKENDS if name != OURS and work["backends"].get(name, {}).get("stream")]


def against(work: Result, index: int) -> Iterator[str]:
    """Ours and the others at a shape, in words."""
    for name in (OURS, *others(work)):
        if not math.isnan(_stream(work, name, index)):
            yield f"{BACKENDS[name].title} {duration(_stream(work, name, index))}"


def shapes_table(work: Result) -> Table:
    """A row a shape."""
    names, rows, lost = others(work), [], set()
    for index, shape in enumerate(work["shapes"]):
        own = _stream(work, OURS, index)
        values = [_stream(work, name, index) for name in names]
        share = share_of_copy(work, index)
        copied = work["copy_seconds"].get(str(index)) or math.nan
        rows.append([
            ", ".join(map(str, shape)), f"{work['bytes'][index] / 1e6:.3f}", _text(copied), _text(own),
            "" if math.isnan(share) else f"{share:.2f}", _text(_own(work, "latency", index)),
            _text(_own(work, "first", index)), *map(_text, values),
            *(_apart_text(difference(work, name, index)) for name in names),
        ])  # fmt: skip
        lost |= {(index, 7 + column) for column, value in enumerate(values) if value < own}
    titles = [BACKENDS[name].title for name in names]
    head = [", ".join(work["symbols"]), "MB", "copy", "ours", "copy / ours", "ours, waited for", "ours, first call"]
    seconds = duration(work["compile_seconds"])
    note = f"{work['launches']} launches a call; compiled in {seconds}, where the bundle was made."
    return Table("", note, [*head, *titles, *(f"{title}, off by" for title in titles)], rows, lost)


def _own(work: Result, kind: str, index: int) -> float:
    return float(work["backends"].get(OURS, {}).get(kind, {}).get(str(index), math.nan))


def _text(value: float) -> str:
    return "" if math.isnan(value) else duration(value)


def _apart_text(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.0e}"


def ratios(work: Result, name: str) -> list[float]:
    """Ours over another's times at each shape that both ran, and at which they compute the same."""
    pairs = ((_stream(work, OURS, i), _stream(work, name, i), difference(work, name, i)) for i in _indices(work))
    return [own / other for own, other, apart in pairs if not math.isnan(own / other) and not apart > TOO_FAR]


def _indices(work: Result) -> range:
    return range(len(work["shapes"]))


def summary_table(result: Result) -> Table:
    """A row a work: ours over each of the others, geometric means over the shapes."""
    names = [name for name in BACKENDS if any(name in others(work) for work in result["works"].values())]
    rows, lost = [], set()
    for number, work in enumerate(result["works"].values()):
        means = [geometric_mean(ratios(work, name)) for name in names]
        shares = [share for share in (share_of_copy(work, i) for i in _indices(work)) if not math.isnan(share)]
        rows.append([
            work["title"], str(work["launches"]), f"{max(shares):.2f}" if shares else "",
            *("" if math.isnan(mean) else f"{mean:.2f}" for mean in means),
        ])  # fmt: skip
        lost |= {(number, 3 + column) for column, mean in enumerate(means) if mean > 1}
    titles = [f"ours / {BACKENDS[name].title}" for name in names]
    note = (
        "A call among many, geometric means over the shapes; above 1 is a loss. Best share: the largest over the "
        "shapes of the time that a copy of as many bytes takes over ours."
    )
    return Table("Times", note, ["work", "launches", "best share of a copy", *titles], rows, lost)


def starts_table(result: Result) -> Table:
    """A row a work: what comes before the warm calls."""
    rows = []
    names = [name for name in BACKENDS if any(_ran(work, name) for work in result["works"].values())]
    for work in result["works"].values():
        values = [_starts(work["backends"][name]) if _ran(work, name) else ("", "") for name in names]
        rows.append([work["title"], *(cold for cold, _ in values), *(new for _, new in values)])
    titles = [BACKENDS[name].title for name in names]
    head = ["work", *(f"{title}, cold" for title in titles), *(f"{title}, new shape" for title in titles)]
    note = (
        "Cold: the program is loaded and called once; ours is compiled before, which took the seconds in the tables "
        "below. New shape: a shape's first call less a repeated one, the median over all shapes but the first."
    )
    return Table("Cold starts and new shapes", note, head, rows)


def _ran(work: Result, name: str) -> bool:
    return bool(work["backends"].get(name, {}).get("first"))


def _starts(row: Result) -> tuple[str, str]:
    first = list(row["first"])
    extra = [row["first"][index] - row["latency"][index] for index in first[1:]]
    cold = duration(row["start"] + row["first"][first[0]])
    return cold, duration(max(0.0, statistics.median(extra))) if extra else ""


# ---- all ------------------------------------------------------------------------------------------------------------


def environment(result: Result) -> list[str]:
    """The environment of the measurement."""
    lines = [f"Python {result['python']}"]
    for name, facts in result["facts"].items():
        lines.append(f"{BACKENDS[name].title}: " + ", ".join(f"{key} {value}" for key, value in facts.items()))
    lines += [f"{BACKENDS[name].title} is not measured: {why}" for name, why in result["absent"].items()]
    return lines


def header(result: Result, programs: Sequence[Program]) -> str:
    """The numbers of programs and calls, and the environment that they run in."""
    calls, timed = sum(len(p.calls) for p in programs), sum(p.timing is not None for p in programs)
    targets = ", ".join(sorted({p.target for p in programs}))
    lines = [f"{len(programs)} programs for {targets} with {calls} calls; {timed} programs are timed"]
    return "\n".join(
        [*environment(result), *lines, f"{len(result['refused'])} programs were refused when they were compiled"]
    )


def text(result: Result) -> str:
    """The tables of all works, as Markdown."""
    shown = [checks_table(result)]
    if result["works"]:
        shown += [summary_table(result), starts_table(result)]
    parts = [f"### {table.title}\n\n{table.note}\n\n{markdown_table(table)}" for table in shown]
    parts += [f"refused: {line}" for line in refusals(result)[:8]]
    if result["left_out"]:
        parts.append(f"left out, for the time was up: {len(result['left_out'])}")
    return "\n\n".join(parts)


def page(result: Result) -> str:
    """The page's text."""
    wrong, left_out = wrong_lines(result["checks"]), result["left_out"]
    unsteady = [f"{row['name']}: {line}" for row in result["checks"] for line in row.get("unsteady", [])]
    works = result["works"].values()
    parts = [
        "<h1>shlo_disc on a GPU</h1>",
        html_list(environment(result), ""),
        html_table(checks_table(result)),
        f"<h2>Wrong</h2>{html_list(wrong, 'lost')}",
        html_table(summary_table(result)) if works else "",
        html_table(starts_table(result)) if works else "",
        *(f"<h2>{html.escape(work['title'])}</h2>{html_table(shapes_table(work))}" for work in works),
        f"<h2>Backends that refused</h2>{html_list(_refused_works(result), '')}",
        f"<h2>Refused when they were compiled</h2>{html_list(refusals(result), '')}",
        f"<h2>Different from run to run</h2>{html_list(unsteady, '')}",
        f"<h2>Left out, for the time was up</h2>{html_list(left_out, '')}",
    ]
    head = f"<meta charset=utf-8><title>shlo_disc on a GPU</title><style>{STYLE}</style>"
    return f"<!doctype html>\n<html lang=en><head>{head}</head><body>\n" + "\n".join(parts) + "\n</body></html>\n"


def _refused_works(result: Result) -> list[str]:
    return [
        f"{work['title']}, {BACKENDS[name].title}: {row['refused']}"
        for work in result["works"].values()
        for name, row in work["backends"].items()
        if "refused" in row
    ]
