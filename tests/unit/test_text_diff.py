# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Texts are the same up to a renaming by which different names stay different, and nothing else is overlooked."""

from __future__ import annotations

import numpy as np
import pytest

from shlo_disc.report import text_diff
from shlo_disc.report.text_diff import ASSEMBLY, LLVM, MLIR, PLAIN, PTX, Syntax, differences

ADD = """\
func.func @main(%arg0: f32, %arg1: f32) -> f32 {
  %0 = add %arg0, %arg1
  %1 = mul %0, %arg1
  return %1
}
"""

LOOPS = """\
func.func @f(%arg0: f32) {
  %0 = loop iter_args(%arg1 = %arg0) {
    %1 = neg %arg1
    yield %1
  }
  %1 = loop iter_args(%arg1 = %0) {
    %2 = exp %arg1
    yield %2
  }
  return %1
}
"""

PHI = """\
define void @f(ptr %0) {
  br label %2
2:
  %3 = phi i64 [ 0, %1 ], [ %4, %2 ]
  %4 = add i64 %3, 1
  %5 = add i64 %3, 2
  br label %2
}
"""


def changed(before: str, after: str, syntax: Syntax = MLIR) -> list[str]:
    """The lines that differ."""
    hunks = differences(before, after, syntax)
    return [line for hunk in hunks for line in hunk.lines if line[0] != " "]


@pytest.mark.parametrize("text", [ADD, LOOPS])
def test_a_text_is_the_same_as_itself(text: str) -> None:
    assert differences(text, text, MLIR) == differences(text, text) == []


def test_names_of_values_do_not_matter() -> None:
    after = ADD.replace("%0", "%sum").replace("%1", "%0").replace("%arg", "%x")
    assert changed(ADD, after) == []
    assert len(changed(ADD, after, PLAIN)) == 8


def test_a_value_that_is_made_early_is_one_difference() -> None:
    after = ADD.replace("%1", "%2").replace("%0", "%1").replace("  %1 = add", "  %0 = constant 1\n  %1 = add")
    assert changed(ADD, after) == ["+  %0 = constant 1"]


OTHERS = [
    ("add %arg0, %arg1", "add %arg1, %arg0"),
    ("mul %0, %arg1", "mul %arg1, %0"),
    ("return %1", "return %0"),
]


@pytest.mark.parametrize(("old", "new"), OTHERS)
def test_another_operand_is_a_difference(old: str, new: str) -> None:
    lines = changed(ADD, ADD.replace(old, new))
    assert [line[0] for line in lines] == ["-", "+"] and lines[1].endswith(new)


def test_two_values_do_not_become_one() -> None:
    assert changed("%0 = a\n%1 = b\nuse %0, %1", "%0 = a\n%1 = b\nuse %0, %0") == ["-use %0, %1", "+use %0, %0"]
    assert changed("%0 = a\n%1 = b\nuse %0, %0", "%0 = a\n%1 = b\nuse %0, %1") == ["-use %0, %0", "+use %0, %1"]


def test_a_name_may_be_given_again() -> None:
    """Regions side by side use the same names in MLIR."""
    after = LOOPS.replace("%2", "%7").replace("    %1 = neg", "    %8 = neg").replace("yield %1", "yield %8")
    assert changed(LOOPS, after) == []
    assert changed(LOOPS, LOOPS.replace("(%arg1 = %0)", "(%arg1 = %arg0)")) != []


def test_what_another_op_makes_is_another_value() -> None:
    assert changed(ADD, ADD.replace("= add", "= sub")) == ["-  %0 = add %arg0, %arg1", "+  %0 = sub %arg0, %arg1"]


def test_names_are_a_functions_own() -> None:
    both = ADD + ADD.replace("@main", "@other")
    assert changed(both, ADD + ADD.replace("@main", "@other").replace("%arg0", "%a").replace("%arg1", "%arg0")) == []


def test_numbers_of_symbols_and_aliases_hold_for_the_whole_text() -> None:
    before = "call @gemm_0\ncall @gemm_1\nfunc @gemm_0\nuse #map, #map1, %0#1"
    assert changed(before, before.replace("_0", "_7").replace("#map1", "#map3")) == []
    assert changed(before, before.replace("func @gemm_0", "func @gemm_1")) == ["-func @gemm_0", "+func @gemm_1"]
    assert changed(before, before.replace("@gemm", "@dot")) != []
    assert changed(before, before.replace("%0#1", "%0#0")) != []


def test_llvm_uses_names_before_they_are_given() -> None:
    after = PHI.replace("%5", "%6").replace("%4", "%5")
    assert changed(PHI, after, LLVM) == []
    assert changed(PHI, PHI.replace("[ %4, %2 ]", "[ %5, %2 ]"), LLVM) != []
    renamed = PHI.replace("%2", "%9").replace("\n2:", "\n9:")
    assert changed(PHI, renamed, LLVM) == []
    assert changed(PHI, PHI.replace("\n2:", "\n9:"), LLVM) != []


def test_registers_of_a_processor_are_no_names() -> None:
    before = "  add %rax, %rbx\n  jle .L4\n.L4:\n  jmp .L8"
    assert changed(before, before.replace(".L4", ".LBB0_1"), ASSEMBLY) == []
    assert changed(before, before.replace("jle .L4", "jle .L8"), ASSEMBLY) != []
    assert changed(before, before.replace("%rbx", "%rcx"), ASSEMBLY) != []


def test_registers_of_ptx_are_names() -> None:
    before = ".visible .entry f(\n add.s32 %r1, %r2, 1;\n bra $L__BB0_2;\n"
    assert changed(before, before.replace("%r2", "%r7").replace("$L__BB0_2", "$L__BB0_3"), PTX) == []
    assert changed(before, before.replace("%r2", "%r1"), PTX) != []


def test_a_program_whose_lines_are_alike() -> None:
    """Without names they are all the same; nothing but what was added may differ."""
    lines = [f"  %{n + 1} = add %{n}, %{n}" for n in range(1000)]
    shifted = [f"  %{n + 2} = add %{n + 1}, %{n + 1}" for n in range(1000)]
    before = "\n".join(["  %0 = iota", *lines])
    assert changed(before, "\n".join(["  %0 = constant", "  %1 = iota", *shifted])) == ["+  %0 = constant"]
    assert changed(before, before.replace("add %500, %500", "add %500, %499")) == [
        "-  %501 = add %500, %500",
        "+  %501 = add %500, %499",
    ]


@pytest.mark.parametrize("most", [2000, 3])
def test_both_texts_are_in_the_changes(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_diff, "MOST_DIFFERENCES", most)
    random = np.random.default_rng(0)
    for _ in range(200):
        old, new = (list(random.choice(list("abcd"), random.integers(0, 30))) for _ in range(2))
        changes = list(text_diff._changes(old, new, PLAIN))
        assert [line for sign, line in changes if sign != "+"] == old
        assert [line for sign, line in changes if sign != "-"] == new
        if most == 2000:
            assert sum(sign == " " for sign, _ in changes) == longest(old, new)


def longest(old: list[str], new: list[str]) -> int:
    """The length of a longest common subsequence, by the table."""
    row = [0] * (len(new) + 1)
    for x in old:
        before = row
        row = [0]
        for n, y in enumerate(new):
            row.append(before[n] + 1 if x == y else max(row[n], before[n + 1]))
    return row[-1]


def test_hunks_are_those_of_diff() -> None:
    before = "\n".join(f"line {n}" for n in range(1, 31))
    after = before.replace("line 5\n", "").replace("line 25", "changed\nadded")
    first, second = differences(before, after)
    assert (first.from_line, first.from_count, first.to_line, first.to_count) == (2, 7, 2, 6)
    assert str(second).splitlines() == [
        "@@ -22,7 +21,8 @@",
        *(f" line {n}" for n in (22, 23, 24)),
        "-line 25",
        "+changed",
        "+added",
        *(f" line {n}" for n in (26, 27, 28)),
    ]
    assert differences("", "") == [] and [str(h) for h in differences("", "a")] == ["@@ -0,0 +1,1 @@\n+a"]
