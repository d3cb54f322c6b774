# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a finished compilation to the document of its report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from shlo_disc.driver.compilation import Compilation
from shlo_disc.driver.stage_text import peak_memory, result_bytes
from shlo_disc.errors import DeviceError
from shlo_disc.lowering.launches import launches_in
from shlo_disc.report.explanation import KernelReport, explain, kernel_reports
from shlo_disc.report.page.arena import arena_of
from shlo_disc.report.page.document import SCHEMA, Call, Document, KernelRow, Overview, pack
from shlo_disc.report.page.facts import constraints_of, missing_of, record_of, rules_of, symbols_of
from shlo_disc.report.page.graph import graph_of, guard_texts
from shlo_disc.report.page.texts import Texts
from shlo_disc.runtime import Artifact, Client
from shlo_disc.runtime.dims import dim_values
from shlo_disc.shape_dialect.ops.variants import allocations_of
from shlo_disc.shape_dialect.symbolic.expr import Expr

_OP = re.compile(r'\s*(?:%[^=]* = )?"?(?:stablehlo|chlo)\.\w')

OnDevice = Callable[[], Client]
"""Gives the client that the program runs on. Raises DeviceError where there is none."""


def document_of(artifact: Artifact, c: Compilation, on: OnDevice, dims: Iterable[Mapping[str, int]] = ()) -> Document:
    """The report of a compilation whose stages have all run, with calls at each of `dims`, which are measured.

    A program without symbols has one call, whether it is asked for or not. Raises ShapeError where sizes are not
    admissible.
    """
    texts = Texts.of(c)
    record = record_of(c)
    nodes, edges = graph_of(c, texts)
    given = list(dims) or ([] if artifact.header["symbols"] else [{}])
    return Document(
        SCHEMA,
        _overview(artifact, c, texts),
        {name: pack("\n".join(lines)) for name, lines in texts.lines.items()},
        tuple(texts.diffs()),
        nodes,
        edges,
        tuple(symbols_of(c)),
        tuple(constraints_of(c)),
        tuple(missing_of(c, record)),
        tuple(rules_of(record)),
        tuple(_call(artifact, c, on, values) for values in given),
    )


def _overview(artifact: Artifact, c: Compilation, texts: Texts) -> Overview:
    launches = launches_in(c.snapshots["host"])
    ops = sum(_OP.match(line) is not None for line in texts.lines["import"])
    arena = c.facts.simplify(sum(allocations_of(c.snapshots["plan"]), Expr.const(0)))
    decisions = ", ".join(f"{d.taken} of {kind}" for kind, d in c.decisions.items() if d.taken)
    rows = (
        ("ops imported", str(ops)),
        ("kernels", f"{len({launch.name for launch in launches})} different, {len(launches)} launches"),
        ("decisions", decisions or "none"),
        ("arena", f"{arena} bytes"),
        ("arena and results", f"{peak_memory(c)} bytes"),
        ("arithmetic", f"{artifact.header.get('flops', 'unknown')} operations"),
        ("code", ", ".join(f"{name}: {len(data)} bytes" for name, data in artifact.sections.items() if len(data))),
        ("compiled in", f"{sum(c.timings.values()):.3f} s"),
    )
    arguments, results = (tuple(map(str, specs)) for specs in (c.signature.arguments, c.signature.results))
    target = artifact.header["target"]
    name = str(target.get("name") or target.get("cpu") or target.get("triple", ""))
    return Overview(str(artifact.header["name"]), name, arguments, results, rows, {**c.timings, **c.pass_timings})


def _call(artifact: Artifact, c: Compilation, on: OnDevice, dims: Mapping[str, int]) -> Call:
    """The program at given sizes: measured, or with the reason why not."""
    dims = dim_values([row["name"] for row in artifact.header["symbols"]], dims)
    arena = arena_of(c, dims)
    problem, about, reports = "", "", tuple[KernelReport, ...]()
    try:
        found = explain(artifact, on(), c, dims)
        reports, about = found.kernels, found.machine.name
    except DeviceError as error:
        problem, reports = f"not measured: {error.message}", kernel_reports(c, dims, (), None)
    launches = launches_in(c.snapshots["host"])
    kernels = tuple(
        KernelRow(launch.fusion, tuple(guard_texts(launch)), report.to_json())
        for launch, report in zip(launches, reports, strict=True)
    )
    results = result_bytes(c)
    known = results.evaluate(dims) if results.symbols() <= set(dims) else None
    return Call(dims, about, problem, arena.bytes, known, arena.commands, arena.rectangles, kernels)
