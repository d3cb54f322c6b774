# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lines that one text does not share with the next."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import pytest

from shlo_disc.report.page import line_diff
from shlo_disc.report.page.line_diff import Change, changes


def applied(left: Sequence[str], right: Sequence[str], found: Sequence[Change]) -> list[str]:
    """The right text, made of the equal lines of the left one and the changed ones of the right one."""
    made: list[str] = []
    i = 0
    for first, end, other, other_end in found:
        made += left[i:first]
        assert len(made) == other
        made += right[other:other_end]
        i = end
    return made + list(left[i:])


def common_length(a: Sequence[str], b: Sequence[str]) -> int:
    row = [0] * (len(b) + 1)
    for line in a:
        before = row
        row = [0]
        for j, other in enumerate(b):
            row.append(before[j] + 1 if line == other else max(row[j], before[j + 1]))
    return row[-1]


@pytest.mark.parametrize("most_bits", [line_diff.MOST_BITS, 0])
def test_changes_make_one_text_of_the_other(monkeypatch: pytest.MonkeyPatch, most_bits: int) -> None:
    monkeypatch.setattr(line_diff, "MOST_BITS", most_bits)
    draw = random.Random(3)
    for _ in range(400):
        a, b = (draw.choices("abcdef", k=draw.randrange(14)) for _ in range(2))
        found = changes(a, b)
        assert applied(a, b, found) == b
        kept = len(a) - sum(end - first for first, end, _, _ in found)
        assert kept == common_length(a, b) if most_bits else kept <= common_length(a, b)


def test_numbers_of_values_do_not_count() -> None:
    assert changes(["%1 = stablehlo.add %0, %0"], ["%cst_7 = stablehlo.add %arg0, %x#1"]) == []


def test_a_line_of_the_same_op_has_become_another() -> None:
    left = ["a", "%0 = stablehlo.add %1 : tensor<?xf32>", "%2 = stablehlo.exponential %0 : tensor<?xf32>", "b"]
    right = ["a", "new", "%2 = stablehlo.exponential %0 : tensor<?xf32, [@s]>", "b"]
    assert changes(left, right) == [(1, 2, 1, 1), (2, 2, 1, 2), (2, 3, 2, 3)]


def test_long_texts_without_unique_lines() -> None:
    draw = random.Random(5)
    left = draw.choices(["add", "multiply", "tanh"], k=12_000)
    right = [line for line in left if draw.random() > 0.1]
    start = time.perf_counter()
    found = changes(left, right)
    assert time.perf_counter() - start < 20
    assert sum(end - first for first, end, _, _ in found) == len(left) - len(right)
