# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The script that runs JAX's tests: deaths, shares of a file, what is run again, and what is compared."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "jax_tests.py"
TESTS = """
import os
import pytest

def test_first(): pass
def test_dies(): os._exit(9)
def test_skips(): pytest.skip("no")
def test_fails(): assert os.path.exists("repaired")
"""


def script(folder: Path, *arguments: str) -> str:
    command = [sys.executable, str(SCRIPT), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def outcomes(folder: Path, *arguments: str) -> dict[str, str]:
    script(folder, "run", "--source", ".", "--output", "found.json", *arguments, "some_test")
    rows: dict[str, Any] = json.loads((folder / "found.json").read_text())["some_test"]
    return {test.rpartition("::")[2]: row["outcome"] for test, row in rows.items()}


@pytest.mark.slow
def test_deaths_and_what_is_run_again(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "some_test.py").write_text(TESTS)
    first = {"test_first": "passed", "test_dies": "died", "test_skips": "skipped", "test_fails": "failed"}
    assert outcomes(tmp_path) == first
    (tmp_path / "repaired").touch()
    assert outcomes(tmp_path, "--rest") == first | {"test_fails": "passed"}


@pytest.mark.slow
def test_parts_make_a_whole(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    names = [f"test_{number}" for number in range(8)]
    (tmp_path / "tests" / "some_test.py").write_text("\n".join(f"def {name}(): pass" for name in names))
    part = outcomes(tmp_path, "--part", "0/2")
    assert 0 < len(part) < len(names)
    assert sorted(outcomes(tmp_path, "--part", "1/2")) == names


def test_comparison(tmp_path: Path) -> None:
    def write(name: str, **found: str) -> str:
        rows = {test: {"outcome": outcome, "reason": f"E   the reason {outcome}"} for test, outcome in found.items()}
        (tmp_path / name).write_text(json.dumps({"some_test": rows}))
        return name

    ours = write("ours", a="passed", b="failed", c="skipped", d="passed", e="failed")
    theirs = write("theirs", a="passed", b="passed", c="passed", d="failed", f="passed")
    printed = script(tmp_path, "compare", ours, theirs)
    assert "| some_test | 4 | 3 | 1 | 1 | 50.0% | 0 |" in printed
    assert "1  some_test: the reason failed" in printed
