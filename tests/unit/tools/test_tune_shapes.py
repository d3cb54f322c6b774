# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Distributions of shapes: weights that are stated, left out and wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shlo_disc import OptionError
from shlo_disc.tools.tune import WeightedShape, load_shapes, parse_shape
from shlo_disc.tools.tune.shapes import distribution


def test_weights_add_up_to_one() -> None:
    found = distribution([{"b": 1, "s": 7}, ({"s": 7, "b": 1}, 2), WeightedShape({"b": 2, "s": 7}, 1)])
    assert found == [WeightedShape({"b": 1, "s": 7}, 0.75), WeightedShape({"b": 2, "s": 7}, 0.25)]


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf"), True, "1"])
def test_a_weight_that_is_none(weight: Any) -> None:
    with pytest.raises(OptionError, match="weight of a shape"):
        distribution([({"b": 1}, weight)])


def test_no_shapes() -> None:
    with pytest.raises(OptionError, match="at least one shape"):
        distribution([])


def test_shapes_as_text() -> None:
    assert parse_shape("b=8, s=64:0.7") == WeightedShape({"b": 8, "s": 64}, 0.7)
    assert parse_shape("b=8") == WeightedShape({"b": 8}, 1.0)
    for text in ("", "b", "b=x", "b=1:", "b=1:x"):
        with pytest.raises(ValueError):
            parse_shape(text)


def test_shapes_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "shapes.json"
    path.write_text(json.dumps([{"dims": {"b": 8}, "weight": 3}, {"dims": {"b": 1}}]))
    assert load_shapes(path) == [WeightedShape({"b": 8}, 3), WeightedShape({"b": 1}, 1.0)]


@pytest.mark.parametrize(
    "text", ["", "{}", "3", "[3]", '[{"weight": 1}]', '[{"dims": {"b": 1.5}}]', '[{"dims": {"b": 1}, "wieght": 2}]']
)
def test_a_file_without_shapes(text: str, tmp_path: Path) -> None:
    path = tmp_path / "shapes.json"
    path.write_text(text)
    if text == "{}":
        assert load_shapes(path) == []
        return
    with pytest.raises(OptionError, match="not a list of shapes"):
        load_shapes(path)
