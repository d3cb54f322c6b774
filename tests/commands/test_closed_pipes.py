# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Readers of pipes leave early, as `| head -1` does: what a command does besides, and its exit status, are as ever."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .executable import DIMS

CHECKED = """
func.func @wrong() {
  %one = stablehlo.constant dense<1> : tensor<i64>
  check.expect_eq_const %one, dense<2> : tensor<i64>
  func.return
}
"""


def run_unread(*arguments: object, streams: tuple[str, ...] = ("stdout", "stderr"), cwd: Path) -> tuple[int, str]:
    """Run a command none of whose `streams` has a reader; its exit status, and what it said on standard error."""
    ends = {name: os.pipe() for name in streams}
    for reader, _ in ends.values():
        os.close(reader)
    given = {name: writer for name, (_, writer) in ends.items()}
    command = [sys.executable, "-m", "shlo_disc", *map(str, arguments)]
    try:
        done = subprocess.run(
            command, check=False, cwd=cwd, timeout=300, text=True,
            **{"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **given},
        )  # fmt: skip
    finally:
        for _, writer in ends.values():
            os.close(writer)
    return done.returncode, done.stderr or ""


@pytest.fixture
def failing(tmp_path: Path) -> Path:
    """A command by which every program fails."""
    path = tmp_path / "fails.sh"
    path.write_text("#!/bin/sh\nexit 0\n")
    path.chmod(0o755)
    return path


def test_reduce_writes_its_file(program: Path, failing: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.mlir"
    assert run_unread("reduce", program, "--test", failing, "-o", small, cwd=tmp_path) == (0, "")
    assert "func.func" in small.read_text()


def test_a_report_is_written(program: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run_unread("report", program, "-o", page, cwd=tmp_path) == (0, "")
    assert "</html>" in page.read_text()


@pytest.mark.slow
def test_a_schedule_is_written(program: Path, tmp_path: Path) -> None:
    schedule = tmp_path / "schedule.json"
    tune = ["tune", program, "--dims", DIMS, "--rounds", 3, "--progress", "-o", schedule]
    assert run_unread(*tune, cwd=tmp_path) == (0, "")
    assert schedule.read_text().startswith("{")


@pytest.mark.parametrize("streams", [("stdout",), ("stderr",), ("stdout", "stderr")], ids="+".join)
def test_a_program_is_compiled(program: Path, streams: tuple[str, ...], tmp_path: Path) -> None:
    compiled = tmp_path / "program.disc"
    status, said = run_unread("compile", program, "-o", compiled, "--json", streams=streams, cwd=tmp_path)
    assert (status, said) == (0, "") and compiled.stat().st_size > 0


def test_failed_checks_are_told_by_the_status(tmp_path: Path) -> None:
    (tmp_path / "wrong.mlir").write_text(CHECKED)
    assert run_unread("check", "wrong.mlir", cwd=tmp_path) == (1, "")


def test_differences_are_told_by_the_status(folder: Path, tmp_path: Path) -> None:
    files = (folder / "before.mlir", folder / "after.mlir")
    assert run_unread("diff", *files, streams=("stdout",), cwd=tmp_path) == (1, "")


def test_errors_are_told_by_the_status(tmp_path: Path) -> None:
    assert run_unread("compile", "absent.mlir", "-o", "out", "--json", cwd=tmp_path)[0] == 1


@pytest.mark.parametrize(
    "command", [("ops",), ("dialect",), ("completion", "bash"), ("opt", "--list-passes")], ids="-".join
)
def test_pages_that_nobody_reads(command: tuple[str, ...], tmp_path: Path) -> None:
    assert run_unread(*command, streams=("stdout",), cwd=tmp_path) == (0, "")


def test_there_are_no_streams_at_all(program: Path, tmp_path: Path) -> None:
    compiled = tmp_path / "program.disc"
    script = f'exec "$0" -m shlo_disc compile "$1" -o "{compiled}" >&- 2>&-'
    assert subprocess.run(["sh", "-c", script, sys.executable, program], check=False, timeout=300).returncode == 0
    assert compiled.stat().st_size > 0
