# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Losses are shown wherever they have to be: in the tables, in bold, in the page, in red."""

from typing import Any

import pytest

from benchmarks import figures
from benchmarks.page import render
from benchmarks.report import lost_lines, markdown, refusals

MACHINE = {"environment": "a machine", "versions": {"jax": "1"}, "copy_bytes_per_second": {"1048576": 1e9}}


def backend(*warm: float, cold: float = 1.0) -> dict[str, Any]:
    first = [0.5 + seconds for seconds in warm]
    return {
        "shapes": list(range(len(warm))),
        "steps": {},
        "first_seconds": first,
        "cold_seconds": cold,
        "peak_bytes": 10**6,
        "held_bytes": 10**6,
        "warm_seconds": list(warm),
        "spread": [0.0] * len(warm),
        "kernels": {"loop": 3},
    }


def result(**backends: Any) -> dict[str, Any]:
    work = {"title": "a work", "dims": "b, s", "shapes": [[1, 2], [3, 4]], "weights": True, "backends": backends}
    return {"small": False, "machine": MACHINE, "works": {"work": work}}


RESULT = result(
    ours=backend(2.0, 2.0),
    ours_bound=backend(1.0, 1.0),
    jit=backend(4.0, 1.0, cold=0.1),
    onnxruntime=backend(1.25, 2.0),
    openvino={"refused": "no <reason>"},
)


def test_ratios() -> None:
    work = RESULT["works"]["work"]
    assert figures.ratios(work, "ours", "jit") == [0.5, 2.0]
    assert figures.mean_ratio(work, "ours") == pytest.approx(1.0)
    assert figures.best_peer(work) == "onnxruntime"
    assert figures.against_best(work) == pytest.approx((0.8 * 0.5) ** 0.5)
    assert figures.against_each_best(work) == pytest.approx((0.8 * 2.0) ** 0.5)
    assert figures.new_shape_seconds(work["backends"]["jit"]) == pytest.approx(0.5)


def test_passed_weights_are_compared_with_passed_weights() -> None:
    work = RESULT["works"]["work"]
    assert (figures.rival(work, "jit"), figures.rival(work, "onnxruntime")) == ("ours", "ours_bound")
    assert figures.losses(work) == [figures.Loss("jit", (3, 4), 2.0)]
    assert lost_lines(RESULT) == ["a work, jax.jit: 1 of 2 shapes, worst 2.00 at b, s = 3, 4"]


def test_without_bound_weights_passed_ones_are_compared_with_frozen_ones() -> None:
    found = result(ours=backend(2.0, 2.0), jit=backend(4.0, 4.0), onnxruntime=backend(1.0, 4.0))
    assert figures.losses(found["works"]["work"]) == [figures.Loss("onnxruntime", (1, 2), 2.0)]


def test_without_weights_those_without_jax_arrays_are_compared_with_numpy_arrays() -> None:
    work = RESULT["works"]["work"] | {"weights": False}
    assert (figures.rival(work, "jit"), figures.rival(work, "torch_eager")) == ("ours", "ours_bound")
    assert figures.rival(RESULT["works"]["work"], "torch_eager") == "ours"


def test_losses_are_marked() -> None:
    text = markdown(RESULT)
    assert "**1.00**" not in text.partition("### Cold")[0]
    assert "**1.00**" in text.partition("### Cold")[2].partition("### New")[0]
    page = render(RESULT, {})
    assert "<td class=lost>1.00 s</td>" in page
    assert "no &lt;reason&gt;" in page


def test_refusals_say_why() -> None:
    assert refusals(RESULT) == ["a work, OpenVINO: no <reason>"]


def test_a_backend_without_a_value_has_no_column() -> None:
    found = result(ours=backend(1.0, 2.0), jit=backend(1.0, 1.0), jit_buckets=backend(1.0, 1.0))
    found["works"]["work"]["backends"]["jit_buckets"]["kernels"] = {}
    text = markdown(found)
    assert "powers of two" in text.partition("### Cold")[0]
    assert "powers of two" not in text.partition("### Kernels")[2].partition("### Price")[0]


def test_compiles_are_counted_where_they_are_known() -> None:
    found = result(ours=backend(1.0, 2.0) | {"compiles": 1}, jit=backend(1.0, 1.0))
    assert "| shlo_disc |\n|--|--|\n| a work | 1 |" in markdown(found).partition("### Compiles")[2]


def test_a_run_of_peers_that_are_not_there_has_tables() -> None:
    missing = {"refused": "torch is not installed"}
    found = result(ours=backend(1.0, 2.0), jit=missing, torch_eager=missing)
    assert "refused" in markdown(found)
    assert render(found, {})
