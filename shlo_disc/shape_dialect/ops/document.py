# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of ops as a page: `docs/ops.md`, which `python -m shlo_disc ops` prints."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Collection, Iterable, Iterator
from types import ModuleType
from typing import Any

from shlo_disc.shape_dialect.ops import FAMILIES, TABLE
from shlo_disc.shape_dialect.ops.definition import LOWERINGS, OpDef
from shlo_disc.shape_dialect.ops.element_types import BOOL, COMPLEX, FLOAT, INT, NARROW_FLOAT, NARROW_INT

_GROUPS: dict[str, frozenset[str]] = {
    "i1": BOOL,
    "i8..64, ui8..64": INT,
    "i2, i4, ui2, ui4": NARROW_INT,
    "f16, bf16, f32, f64": FLOAT,
    "f4, f6, f8": NARROW_FLOAT,
    "complex": COMPLEX,
}

_INTRODUCTION = """# Ops

{summary}

How an op is lowered:

{lowerings}

The columns of element types cover the types that the StableHLO specification allows for the op. "yes" means that all of
them are compiled, "no" that none is; names list those that are; a blank means that the specification allows none. The
last columns say whether static and symbolic sizes are compiled, which element types are also compiled for NVIDIA GPUs
(`gpu/test_ops.py` compares these), and which tests compare the op with XLA and the reference interpreter.
"""


def ops_document() -> str:
    """The whole page, in Markdown."""
    rows = [row for row in TABLE.values() if row.spec]
    lowered = sum(1 for row in rows if row.lowering)
    pairs = sum(len(row.spec) for row in rows)
    compiled = sum(len(row.spec & row.dtypes) for row in rows if row.lowering)
    on_gpus = sum(len(row.spec & row.dtypes & row.on_gpus) for row in rows if row.lowering)
    summary = (
        "Generated from `shlo_disc/shape_dialect/ops/` by `python -m shlo_disc ops`. "
        f"{lowered} of {len(rows)} ops are compiled, "
        f"and {compiled} of the {pairs} pairs ({100 * compiled / pairs:.1f}%) of an op and an element type that the "
        "StableHLO specification allows for it. "
        f"{on_gpus} of those pairs ({100 * on_gpus / compiled:.1f}%) are also compiled for NVIDIA GPUs."
    )
    ways = "\n".join(f"- {name}: {meaning}" for name, meaning in LOWERINGS.items())
    sections = [_section(family) for family in FAMILIES]
    return "\n".join([_INTRODUCTION.format(summary=textwrap.fill(summary, 120), lowerings=ways), *sections])


def ops_rows() -> list[dict[str, Any]]:
    """The same as data: of each op how it is lowered, "" where it is refused, and for which element types."""
    return [
        {
            "name": row.name,
            "lowering": row.lowering,
            "dtypes": sorted(row.dtypes) if row.lowering else [],
            "on_gpus": sorted(row.dtypes & row.on_gpus) if row.lowering else [],
            "specified": sorted(row.spec),
            "sizes": row.sizes,
            "reason": row.reason,
            "instead": row.instead,
        }
        for family in FAMILIES
        for row in family.OPS
        if row.spec or row.tests
    ]


def _section(family: ModuleType) -> str:
    title = (inspect.getdoc(family) or "").splitlines()[0]
    shown = [row for row in family.OPS if row.spec or row.tests]
    columns = ["op", "how", *_GROUPS, "static", "symbolic", "GPUs", "tests"]
    lines = [f"## {title.rstrip('.')}", "", _line(columns), _line(["--"] * len(columns))]
    lines += [_line(_cells(row)) for row in shown if row.lowering]
    lines = lines if any(row.lowering for row in shown) else lines[:2]
    refused = list(_refused(shown))
    return "\n".join([*lines, *([""] if len(lines) > 2 and refused else []), *refused, ""])


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cells(row: OpDef) -> Iterator[str]:
    yield _shown(row)
    yield row.lowering
    for group in _GROUPS.values():
        allowed, compiled = (row.spec or row.dtypes) & group, row.dtypes & group
        partial = ", ".join(sorted(compiled))
        yield "" if not allowed else "yes" if compiled >= allowed else partial or "no"
    yield "yes"
    yield "yes" if row.sizes == "any" else row.sizes
    yield "yes" if row.on_gpus >= row.dtypes else ", ".join(sorted(row.on_gpus)) or "no"
    yield f"`{row.tests.removeprefix('tests/')}`" if row.tests else ""


def _shown(row: OpDef) -> str:
    return f"`{row.name.removeprefix('stablehlo.')}`"


def _refused(rows: Collection[OpDef]) -> Iterator[str]:
    for row in rows:
        if not row.lowering:
            instead = f"; {row.instead}" if row.instead else ""
            yield f"- {_shown(row)} is rejected: {row.reason}{instead}."


__all__ = ["ops_document", "ops_rows"]
