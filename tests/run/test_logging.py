# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Messages of the logger `shlo_disc`: a line for each compile, and with DEBUG one for each pass."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest

import shlo_disc
from shlo_disc.driver.pass_pipelines import PIPELINES, parse_pipeline

PROGRAM = """module @double {
  func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
    %0 = stablehlo.add %x, %x : tensor<?xf32>
    %1 = stablehlo.exponential %0 : tensor<?xf32>
    return %1 : tensor<?xf32>
  }
}
"""
OPTIONS = shlo_disc.Options(opt_level=0)
COMPILED = re.compile(r"compiled double for cpu in \d+\.\d{3} s: 2 ops, 1 kernels")


def test_one_line_for_each_compile(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    with caplog.at_level(logging.INFO, "shlo_disc"):
        for _ in range(2):
            shlo_disc.compile(PROGRAM, options=shlo_disc.Options(opt_level=0, cache_dir=tmp_path / "cache"))
    first, second = caplog.messages
    assert COMPILED.fullmatch(first)
    assert re.fullmatch(r"loaded double for cpu in \d+\.\d{3} s, from the compile cache", second)
    assert {record.levelno for record in caplog.records} == {logging.INFO}


def test_a_line_for_each_pass(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "shlo_disc"):
        shlo_disc.compile(PROGRAM, options=OPTIONS)
    passes = [r.getMessage() for r in caplog.records if r.levelno == logging.DEBUG and r.name == "shlo_disc"]
    expected = [f"{stage}/{e.name}" for stage, text in PIPELINES.items() for e in parse_pipeline(text)]
    assert [line.partition(":")[0] for line in passes] == expected
    assert all(re.search(r": \d+\.\d{3} ms$", line) for line in passes)


@pytest.mark.slow
def test_another_process_logs_here(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "shlo_disc"):
        shlo_disc.compile(PROGRAM, options=shlo_disc.Options(opt_level=0, isolate=True))
    assert [bool(COMPILED.fullmatch(m)) for m in caplog.messages] == [True]


def test_it_is_silent_by_default(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import shlo_disc\nshlo_disc.compile({PROGRAM!r})\n")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout == "" and done.stderr == ""
