# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`Executable.explain`: each command of a program at given sizes, beside what the machine allows."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from shlo_disc.lowering.launches import Launched, launches_in
from shlo_disc.report.folded_table import Table, text_width
from shlo_disc.report.machine import Machine, machine
from shlo_disc.report.synthetic import synthetic_call
from shlo_disc.report.work import Work, work_of
from shlo_disc.runtime.described import count_text
from shlo_disc.runtime.dims import dim_values
from shlo_disc.shape_dialect.dialect.host import Guard
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.locations import source_line
from shlo_disc.shape_dialect.utils.regions import callee_of, entry_block

if TYPE_CHECKING:
    from shlo_disc.driver.compilation import Compilation
    from shlo_disc.runtime import Artifact, Client, CommandTime

RUNS = 7
"""Calls of which the fastest counts, for each command."""


@dataclass(frozen=True)
class KernelReport:
    """One command of a program at given sizes.

    `variant`: the variant chosen at run time; `missing`: the facts that would have decided it at compile time.
    `bytes_read`, `bytes_written` and `flops` are those of one run, None if sizes depend on data; a multiply-add counts
    as two. `runs`: how often it ran in the call; None for a command with a single work item, which the program calls
    directly and which is not timed. `estimated_seconds` is the least time that this machine allows for one run,
    `seconds` the measured time.
    """

    name: str
    kind: str
    ops: str
    variant: str
    missing: tuple[str, ...]
    bytes_read: int | None
    bytes_written: int | None
    flops: int | None
    runs: int | None
    estimated_seconds: float | None
    seconds: float | None
    source: str

    @property
    def times(self) -> int:
        """The number of runs in a call, such as the trips of a loop; 1 if it is not counted."""
        return 1 if self.runs is None else self.runs

    @property
    def share(self) -> float | None:
        """The ratio to the roofline: 1 is as fast as the machine allows.

        None if nothing was measured, or if the time is below the estimate (`is_below_estimate`).
        """
        if not self.seconds or self.estimated_seconds is None or self.is_below_estimate:
            return None
        return self.estimated_seconds / self.seconds

    @property
    def is_below_estimate(self) -> bool:
        """Tells whether it took less than the estimated least time, for example as its data stays in caches between
        calls."""
        if self.seconds is None or self.estimated_seconds is None:
            return False
        return self.seconds < self.estimated_seconds

    def to_json(self) -> dict[str, Any]:
        """The fields, and values derived from them."""
        return {**asdict(self), "share": self.share, "is_below_estimate": self.is_below_estimate}


@dataclass(frozen=True)
class Explanation:
    """The commands of a call at `dims`; prints as a table, also in notebooks. A row is of all runs of a command."""

    program: str
    dims: dict[str, int]
    machine: Machine
    kernels: tuple[KernelReport, ...]

    @property
    def seconds(self) -> float:
        """The time of all runs of all commands."""
        return sum((k.seconds or 0.0) * k.times for k in self.kernels)

    def to_json(self) -> dict[str, Any]:
        """All data as numbers, strings, lists and dicts."""
        kernels = [k.to_json() for k in self.kernels]
        return {"program": self.program, "dims": self.dims, "machine": self.machine.to_json(), "kernels": kernels}

    def __repr__(self) -> str:
        width = text_width()
        title, *notes = (textwrap.wrap(text, width) for text in [self._title(), *self._notes()])
        table = Table(_HEADINGS, self._rows(), _RIGHT, _HEADINGS.index("kernel"), _BELOW).lines(width)
        return "\n".join([*title, "", *table, *(line for note in notes for line in note)])

    def _repr_html_(self) -> str:
        from html import escape

        def cells(row: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) + "</tr>"

        body = "".join(cells(row, "td") for row in self._rows())
        notes = "".join(f"<p>{escape(note)}</p>" for note in self._notes())
        return f"<p>{escape(self._title())}</p><table>{cells(_HEADINGS, 'th')}{body}</table>{notes}"

    def _notes(self) -> list[str]:
        """Notes on the figures of the table."""
        below = [f"#{number}" for number, kernel in enumerate(self.kernels) if kernel.is_below_estimate]
        return [f"{', '.join(below)}: {BELOW_ESTIMATE}"] if below else []

    def _title(self) -> str:
        sizes = ", ".join(f"{name}={value}" for name, value in self.dims.items())
        us = self.seconds * 1e6
        largest = self.machine.copies[-1][1]
        rate = self.machine.product_rate("f32")
        return (
            f"{self.program} at {sizes or 'its one shape'}: {us:.{0 if us >= 10 else 1}f} us in "
            f"{count_text(len(self.kernels), 'command')}; {self.machine.name}, at most {rate / 1e9:.0f} GFLOP/s (f32) "
            f"and {largest / 1e9:.0f} GB/s from memory"
        )

    def _rows(self) -> list[list[str]]:
        rows = []
        for number, k in enumerate(self.kernels):
            moved = None if k.bytes_read is None or k.bytes_written is None else k.bytes_read + k.bytes_written
            rows.append(
                [
                    str(number),
                    k.name,
                    _number(k.seconds, 1e6 * k.times, 1) if k.runs != 0 else "not run",
                    _number(None if k.is_below_estimate else k.estimated_seconds, 1e6 * k.times, 1),
                    _number(k.share, 100, 0),
                    "-" if k.runs is None else str(k.runs),
                    _number(moved, 1e-6 * k.times, 3),
                    _number(k.flops, 1e-6 * k.times, 3),
                    k.variant or "-",
                    "; ".join(k.missing) or "-",
                    k.ops or "-",
                    k.source,
                ]
            )
        return rows


BELOW_ESTIMATE = "faster than was estimated, as where data stays in caches between calls; so without the least and %"
_HEADINGS = ["#", "kernel", "us", "least us", "%", "runs", "MB", "MFLOP", "variant", "missing facts", "ops", "source"]
_RIGHT = frozenset({0, 2, 3, 4, 5, 6, 7})
_BELOW = (8, 9, 10, 11)


def explain(artifact: Artifact, on: Client, compilation: Compilation, dims: Mapping[str, int]) -> Explanation:
    """Run a program, whose compilation has its host program, on a client at synthetic arguments, command by command.

    Raises ShapeError when the values are not admissible.
    """
    values = dim_values([row["name"] for row in artifact.header["symbols"]], dims)
    dims = {name: values[name] for name in dims}
    times = _measure(artifact, on, dims)
    limits = machine(on, compilation.target)
    return Explanation(artifact.header["name"], dict(dims), limits, kernel_reports(compilation, dims, times, limits))


def kernel_reports(
    compilation: Compilation, dims: Mapping[str, int], times: Sequence[CommandTime], limits: Machine | None
) -> tuple[KernelReport, ...]:
    """Each command of a program at given sizes, with the times of a run, none where nothing was measured."""
    module = compilation.snapshots["plan"]
    functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
    sources = _sources(module)
    works: dict[str, Work] = {}
    kernels = []
    for number, launched in enumerate(launches_in(compilation.snapshots["host"])):
        if launched.fusion and launched.fusion not in works:
            works[launched.fusion] = work_of(functions[launched.fusion], functions)
        time = times[number] if number < len(times) else None
        kernels.append(_report(launched, works.get(launched.fusion), dims, time, limits, sources))
    return tuple(kernels)


def _report(
    launched: Launched,
    work: Work | None,
    dims: Mapping[str, int],
    time: CommandTime | None,
    limits: Machine | None,
    sources: Mapping[str, str],
) -> KernelReport:
    read, written, flops = (
        (work.bytes_read, work.bytes_written, work.flops) if work else (launched.bytes, Expr.const(0), Expr.const(0))
    )
    bytes_read, bytes_written, operations = (_evaluate(e, dims) for e in (read, written, flops))
    if limits is None or bytes_read is None or bytes_written is None or operations is None:
        estimated = None
    else:
        estimated = limits.seconds(bytes_read + bytes_written, operations, work.element if work else "f32")
    choices = [guard.choice(dims) for guard in launched.guards if _is_known(guard.conditions, dims)]
    way = [] if time is None or time.way is None else [time.way]
    return KernelReport(
        launched.name,
        launched.kind,
        work.ops if work else "",
        ", ".join([*way, *choices]),
        missing_facts(launched.guards),
        bytes_read,
        bytes_written,
        operations,
        None if launched.is_direct else 0 if time is None else time.calls,
        estimated,
        time.seconds / time.calls if time is not None and time.calls else None,
        sources.get(launched.fusion, ""),
    )


def missing_facts(guards: Sequence[Guard]) -> tuple[str, ...]:
    """The facts that would have made choices of kernels when compiling. No fact decides a condition without symbols."""
    conditions = (c for guard in guards for c in guard.conditions if not guard.of_size)
    return tuple(str(c) for c in conditions if c.symbols())


def _measure(artifact: Artifact, on: Client, dims: Mapping[str, int]) -> list[CommandTime]:
    """The fastest of several runs of each command."""
    bound, arguments = synthetic_call(artifact, on, dims)
    runs = [bound.profile(arguments) for _ in range(RUNS)]
    return [min(command, key=lambda time: time.seconds) for command in zip(*runs, strict=True)]


def _sources(module: ir.Module) -> dict[str, str]:
    """The user's line for each called fusion."""
    calls = (op for block in all_blocks(entry_block(module)) for op in block.operations)
    return {callee_of(op): source_line(op.location) for op in calls if op.operation.name == "func.call"}


def _is_known(conditions: Sequence[Any], dims: Mapping[str, int]) -> bool:
    return all(c.symbols() <= set(dims) for c in conditions)


def _evaluate(e: Expr | None, dims: Mapping[str, int]) -> int | None:
    return e.evaluate(dims) if e is not None and e.symbols() <= set(dims) else None


def _number(value: float | None, scale: float, digits: int) -> str:
    return "-" if value is None else f"{value * scale:.{digits}f}"


__all__ = ["Explanation", "KernelReport", "explain", "kernel_reports"]
