# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of a process as lines and as a page."""

from __future__ import annotations

import json
from pathlib import Path

from shlo_disc.driver.ledger.document import FunctionRow, ProgramRow, document
from shlo_disc.driver.ledger.page import lines, page
from shlo_disc.driver.ledger.watching import read_folder

ROWS = [
    FunctionRow(
        "step<T>", "train.py:8", True, 12, 1, 4, ("x: f32[3]; x: f32[4]",),
        (
            ProgramRow(False, 1.0, "x: f32[3]", ""),
            ProgramRow(False, 2.0, "x: f32[4]", "a & b"),
            ProgramRow(True, 1.5, "", ""),
        ),
        "a & b",
    ),
    FunctionRow("add", "train.py:9", False, 3, 1, 1, ("f32[3]",), (ProgramRow(False, 0.5, "f32[3]", ""),), ""),
]  # fmt: skip


def test_lines() -> None:
    heading, step, others = lines(ROWS)
    assert heading.split() == ["function", "defined", "at", "calls", "shapes", "programs", "seconds", "why"]
    assert step.split() == ["step<T>", "train.py:8", "12", "4", "3", "4.50", "a", "&", "b"]
    assert others.startswith("(1 of JAX's own)") and others.split()[-4:] == ["3", "1", "1", "0.50"]
    assert lines(ROWS, own=True)[2].split()[0] == "add"


def test_page() -> None:
    text = page(ROWS, "train.py <x>")
    assert "step&lt;T&gt;" in text and "a &amp; b" in text and "train.py &lt;x&gt;" in text
    assert text.count("<tr class=many>") == 1 and "src=" not in text and "href=" not in text


def test_processes_are_put_together(tmp_path: Path) -> None:
    for pid in (1, 2):
        (tmp_path / f"{pid}.json").write_text(json.dumps(document(ROWS)))
    (tmp_path / "3.json").write_text(json.dumps({"schema": 0, "functions": [{}]}))
    step, add = read_folder(tmp_path)
    assert (step.calls, len(step.programs), step.shape_count, step.seconds) == (24, 6, 4, 9.0)
    assert (add.name, add.calls) == ("add", 6)
