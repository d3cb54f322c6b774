# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decisions of `fuse` about the examples, with the terms of their costs, are those written in `fusions/`."""

from __future__ import annotations

import jax
import pytest

from benchmarks.works import all_works
from scripts.make_fusion_reports import FOLDER, report_of


@pytest.mark.skipif(not jax.__version__.startswith("0.10."), reason="written with JAX 0.10, which traces as it does")
@pytest.mark.parametrize("name", all_works())
def test_decisions_and_their_costs(name: str) -> None:
    report = report_of(name)
    expected = (FOLDER / f"{name}.txt").read_text()
    assert f"{report}\n" == expected, "look at what changed: python -m scripts.make_fusion_reports, then git diff"
    assert all(choice is None or choice.gain > 0 for _, choice, _ in report.decisions)


def test_each_example_has_a_file() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(all_works())
