# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/comparison.md shows what was measured, and the streams are what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.backends import BACKENDS
from benchmarks.comparison import page
from benchmarks.comparison.__main__ import main
from benchmarks.comparison.measure import median_row, padding
from benchmarks.comparison.streams import CALLS, SHAPES, STREAMS, order
from benchmarks.data import Folder


def row(first: float, **others: Any) -> dict[str, Any]:
    figures = {"ahead_seconds": 0.5, "total_seconds": 12.345, "peak_bytes": 2_000_000, "compiles": 3, "error": 3e-7}
    return figures | {"first_seconds": first, "warm_seconds": [0.001, 0.003]} | others


def stream(**backends: Any) -> dict[str, Any]:
    return {
        "title": "model", "measured": "2026-01-02", "processor": "CPU", "threads": 2, "rounds": 3, "padded": 1.5,
        "versions": {"jax": "1.0", "torch": "absent"}, "reference": "jax.jit", "backends": backends,
    }  # fmt: skip


def test_the_tables_of_the_page_are_current() -> None:
    """`python -m benchmarks.comparison --page` writes them."""
    text = page.PAGE.read_text()
    assert page.with_tables(text, page.read()) == text


def test_the_results_are_those_of_the_streams() -> None:
    results = page.read()
    assert list(results) == list(STREAMS)
    for name, measured in results.items():
        assert measured["shapes"] == [list(shape) for shape in STREAMS[name](False).shapes]
        assert measured["calls"] == order(SHAPES)
        assert set(measured["backends"]) <= set(BACKENDS)


@pytest.mark.parametrize("name", list(STREAMS))
def test_a_stream_has_each_shape_twice(name: str) -> None:
    shapes = STREAMS[name](False).shapes
    assert len(set(shapes)) == len(shapes) == SHAPES
    assert sorted(order(SHAPES)) == sorted([*range(SHAPES)] * 2) and len(order(SHAPES)) == CALLS
    assert 1 <= len(STREAMS[name](True).shapes) <= 3


def test_a_table() -> None:
    refused = {"refused": "error: no sizes"}
    text = page.stream_table(stream(ours=row(1.0), jit=row(0.25, error=0.5, peak_bytes=1e6), iree=refused))
    assert text.splitlines()[2:] == [
        "| shlo_disc | 1.00 | **12.3** | 3 | 2 | **2.00** | 3e-7 |",
        "| jax.jit | **0.25** | **12.3** | 3 | **1** | **2.00** | 5e-1, wrong |",
        "| IREE | - | - | - | - | - | refused: error: no sizes |",
    ]


def test_what_padding_costs_and_the_conditions() -> None:
    results = {"model": stream(jit=row(1.0), jit_buckets=row(1.0, warm_seconds=[0.003]))}
    assert page.padding_table(results).splitlines()[2:] == ["| model | 1.50 | 1.50 |"]
    said = page.conditions(results)
    assert said.startswith("Measured on 2026-01-02, 2 cores of one CPU, medians of 3 rounds; jax 1.0. ")


def test_a_page_without_a_place_for_a_table() -> None:
    marked = "".join(f"<!-- measured: {name} -->\n?\n<!-- end of {name} -->\n" for name in ("m", "padding"))
    with pytest.raises(ValueError, match="0 places for 'conditions'"):
        page.with_tables(marked, {"m": stream(ours=row(1.0))})


def test_medians_over_rounds() -> None:
    assert median_row([row(3.0), row(1.0), row(2.0)])["first_seconds"] == 2.0
    assert median_row([row(3.0), {"refused": "no"}]) == {"refused": "no"}


def test_padding_counts_elements(tmp_path: Path) -> None:
    folder = Folder(
        path=tmp_path, work="", small=True, dims="b, s", shapes=[[3, 5], [2, 6]], specs=[], results=[],
        limits=[8, 7], torch_model="", weights_count=0, padded=["b", "s"],
    )  # fmt: skip
    assert padding(folder) == (4 * 7 + 2 * 7) / (3 * 5 + 2 * 6)


def test_an_unknown_stream(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing"]) == 2
    assert "no stream 'nothing'; streams are mlp, encoder, speech" in capsys.readouterr().err
