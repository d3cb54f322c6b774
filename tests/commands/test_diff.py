# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`diff`: stages, programs and artifacts; its exit status is that of diff(1)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shlo_disc.tools.cli import main

from .executable import BEFORE


def diff(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    status = main(["diff", *map(str, arguments)])
    return status, *capsys.readouterr()


@pytest.fixture
def other(folder: Path) -> Path:
    return folder / "after.mlir"


def changed(out: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith(("-", "+")) and line[1:3] not in ("--", "++")]


def test_two_programs(program: Path, other: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = diff(capsys, program, other)
    assert (status, err) == (1, "")
    assert out.splitlines()[:2] == [f"--- {program} (simplify)", f"+++ {other} (simplify)"]
    assert ["tanh" in line or "exponential" in line for line in changed(out)] == [True, True]


def test_other_names_are_no_difference(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    renamed = tmp_path / "renamed.mlir"
    renamed.write_text(BEFORE.replace("%0", "%zero").replace("%1", "%0"))
    assert diff(capsys, program, renamed, "--stage", "import") == (0, "", "")
    assert diff(capsys, program, renamed, "--stage", "host") == (0, "", "")


def test_two_stages(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = diff(capsys, program, "--stages", "fuse", "plan")
    assert (status, err) == (1, "")
    assert any("disc.buffers" in line for line in changed(out) if line[0] == "+")
    assert diff(capsys, program, "--stages", "plan", "plan") == (0, "", "")


def test_json(program: Path, other: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = diff(capsys, program, other, "--json")
    found: Any = json.loads(out)
    (hunk,) = found["hunks"]
    assert (status, found["same"]) == (1, False) and hunk["from_count"] == hunk["to_count"] == len(hunk["lines"]) - 1
    same = json.loads(diff(capsys, program, program, "--json")[1])
    assert same["same"] and same["hunks"] == []


def test_artifacts(program: Path, other: Path, artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(capsys, artifact, artifact) == (0, "", "")
    assert diff(capsys, artifact, program) == (0, "", "")
    status, out, _ = diff(capsys, artifact, other)
    assert status == 1 and any("epilogue_exponential_subtract_entry" in line for line in changed(out))
    assert any("SHA-256" in line for line in changed(out)) and not any('"arguments"' in line for line in changed(out))


def test_colours(program: Path, other: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, plain, _ = diff(capsys, program, other)
    _, coloured, _ = diff(capsys, program, other, "--color", "always")
    assert "\033" not in plain and "\033[31m-" in coloured and "\033[32m+" in coloured
    for code in ("\033[31m", "\033[32m", "\033[36m", "\033[1m", "\033[0m"):
        coloured = coloured.replace(code, "")
    assert coloured == plain


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("program",), "compare two files"),
        (("program", "program", "--stages", "fuse", "plan"), "compare two files"),
        (("artifact", "--stages", "fuse", "plan"), "an artifact, which has no stages"),
        (("program", "program", "--stage", "nothing"), "no stage 'nothing'; stages are import"),
        (("artifact", "artifact", "--stage", "fuse"), "this artifact has no 'fuse'"),
        (("program", "/nowhere"), "No such file"),
        (("-", "-"), "standard input is read once"),
    ],
)
def test_errors_have_status_2(
    more: tuple[str, ...], message: str, program: Path, artifact: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"program": program, "artifact": artifact}
    status, out, err = diff(capsys, *(files.get(word, word) for word in more))
    assert (status, out) == (2, "") and message in err
