# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of docs/proofs.md lists every rule and index map, as the templates and reasons here have them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from shlo_disc.shape_dialect.ops import INDEX_MAPS
from tests.proofs import test_index_maps
from tests.proofs.rewrites import PROVED, STAGES, TEMPLATES, UNPROVED

PAGE = Path(__file__).parent.parent.parent / "docs" / "proofs.md"


def table() -> str:
    """The table: of rules, one row for each op and function, and of index maps."""
    programs = Counter(t.rule for t in TEMPLATES if not t.refused)
    lines = ["| where | rule | | programs, or why not |", "|--|--|--|--|"]
    for stage, names in STAGES.items():
        for name in sorted(names):
            what = f"proved | {programs[name]}" if name in PROVED else f"tested only | {UNPROVED[name]}"
            op, function = name.split(": ")
            lines.append(f"| `{stage}` | `{op}`: `{function}` | {what} |")
    maps = Counter(t.rule for t in test_index_maps.TEMPLATES)
    for name in sorted(INDEX_MAPS):
        op = name.removeprefix("stablehlo.")
        lines.append(f"| index map | `{op}` | proved | {maps[op]} |")
    return "\n".join(lines)


def test_table() -> None:
    assert table() in PAGE.read_text(), f"docs/proofs.md should have:\n{table()}"
