# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables are as wide as the terminal, and say all that they say on a wide one."""

from __future__ import annotations

import pytest

from shlo_disc.report.folded_table import WIDTH, Table, text_width

TABLE = Table(
    ("#", "kernel", "us", "missing facts", "source"),
    (
        ("0", "loop_add", "1.0", "-", "model.py:3"),
        ("1", "row_reduce_multiply_maximum", "12.5", "8*s <= 64; b == 2", "-"),
    ),
    {0, 2},
    1,
    (3, 4),
)


def test_a_wide_terminal_has_a_line_for_each_row() -> None:
    assert TABLE.lines(120) == [
        "#  kernel                         us  missing facts      source",
        "0  loop_add                      1.0  -                  model.py:3",
        "1  row_reduce_multiply_maximum  12.5  8*s <= 64; b == 2  -",
    ]


def test_other_columns_go_below() -> None:
    assert TABLE.lines(40) == [
        "#  kernel                         us",
        "0  loop_add                      1.0",
        "    source         model.py:3",
        "1  row_reduce_multiply_maximum  12.5",
        "    missing facts  8*s <= 64; b == 2",
    ]


@pytest.mark.parametrize("width", [35, 45, 60, 80])
def test_no_line_is_longer(width: int) -> None:
    assert all(len(line) <= width for line in TABLE.lines(width))


def test_names_and_facts_take_several_lines() -> None:
    assert TABLE.lines(30)[3:] == [
        "1  row_reduce_multiply_m  12.5",
        "   aximum",
        "    missing facts  8*s <= 64; b ==",
        "                   2",
    ]


def test_the_width_is_that_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert text_width() == WIDTH
    monkeypatch.setenv("COLUMNS", "72")
    assert text_width() == 72
