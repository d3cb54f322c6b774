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
from tests.unit.transforms.test_visible_columns import SHAPES, Fused, attend, gradients, low


def see_one_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the last column that a row sees taken for hidden."""
    found = column_ranges._first_and_end

    def one_less(built: Any, masks: Any, domain: Any) -> list[ir.Value]:
        first, end = found(built, masks, domain)
        return [first, build.subtract(end, build.constant(1, ir.IntegerType.get_signless(32), domain[:-1]))]

    monkeypatch.setattr(column_ranges, "_first_and_end", one_less)


@pytest.mark.parametrize("change", [lambda f: f, gradients])
def test_a_column_less_is_wrong(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    assert "row_reduce" in Fused(change(attend(low))).kinds
    see_one_less(monkeypatch)
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


@pytest.mark.parametrize("change", [lambda f: f, gradients])
@pytest.mark.parametrize(("first", "step"), [(60, 1), (400, 5)])
def test_sizes_that_are_few_of_many(monkeypatch: pytest.MonkeyPatch, change: Any, first: int, step: int) -> None:
    """As behind strided convolutions: small sizes leave nothing, so the check takes larger ones, and still finds it."""

    def program(query: Any, key: Any, value: Any, rows: Any, columns: Any) -> Any:
        kept = key[:, :, first::step], value[:, :, first::step]
        return change(attend(low))(query, *kept, rows, columns[:, first::step])

    constraints = [f"k >= {first + step}"]
    assert "row_reduce" in Fused(program, SHAPES, constraints).kinds

    see_one_less(monkeypatch)
    with pytest.raises(CompilerError, match="hidden show"):
        Fused(program, SHAPES, constraints)
