# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wrong columns of masks that are data, which the check of fusions finds."""

from __future__ import annotations

from typing import Any

import pytest

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.transforms.decisions import TURNED_OFF
from shlo_disc.transforms.fusion import column_ranges
from tests.unit.transforms.test_visible_columns import Fused, attend, gradients, low


@pytest.mark.parametrize("change", [lambda f: f, gradients])
def test_a_column_less_is_wrong(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    found = column_ranges._first_and_end

    def one_less(built: Any, masks: Any, domain: Any) -> list[ir.Value]:
        first, end = found(built, masks, domain)
        return [first, build.subtract(end, build.constant(1, ir.IntegerType.get_signless(32), domain[:-1]))]

    assert "row_reduce" in Fused(change(attend(low))).kinds
    monkeypatch.setattr(column_ranges, "_first_and_end", one_less)
    with pytest.raises(CompilerError, match="hidden show"):
        Fused(change(attend(low)))


@pytest.mark.parametrize(
    ("condition", "weights"),
    [
        ("hidden-weights-are-zero", lambda p, m: p + 1),
        ("reductions-skip-hidden", lambda p, m: p - p.sum(-1)[..., None]),
    ],
)
def test_what_shows_is_found(condition: str, weights: Any) -> None:
    """Conditions that are taken to hold."""
    TURNED_OFF.update({"visible-columns.hidden-weights-are-zero", f"visible-columns.{condition}"})
    try:
        with pytest.raises(CompilerError, match="hidden show"):
            Fused(attend(low, weights))
    finally:
        TURNED_OFF.clear()
