# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The contents of `make check-versions`: the tests that it names, environments that are skipped, and outcomes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import check_versions


def test_all_tests_that_it_names_exist() -> None:
    named = check_versions.WITH_JAX + check_versions.WITH_TORCH
    assert all((check_versions.ROOT / name).exists() for name in named) and len(set(named)) == len(named)


def test_this_environment_has_what_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(check_versions.ROOT))
    found = check_versions.versions_of(sys.executable, tmp_path)
    assert not check_versions.missing_in(found) and "read up to 1." in found["stablehlo"]
    assert check_versions.described(found).startswith(f"Python {found['python']}, JAX {found['jax']}, StableHLO 1.")


def test_an_environment_is_skipped_with_the_reason(tmp_path: Path) -> None:
    absent = check_versions.check(str(tmp_path / "python"), tmp_path, 1)
    assert absent.state == "skipped" and "No such file" in absent.reason
    assert check_versions.missing_in({"python": "3.12.1", "jax": "0.12.0"}) == "shlo_disc, pytest not installed"
    assert check_versions.missing_in({"python": "3.12.1", "missing": "No module"}) == "No module"


def test_tests_of_pytorch_run_where_it_is() -> None:
    assert check_versions.tests_for({"jax": "0.12.0"}) == check_versions.WITH_JAX
    assert check_versions.tests_for({"torch": "2.13.0"})[-3:] == check_versions.WITH_TORCH


@pytest.mark.parametrize(("status", "state"), [(0, "passed"), (1, "failed")])
def test_outcomes(
    status: int, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = dict.fromkeys(("python", "jax", "pytest", "shlo_disc"), "1.0")
    monkeypatch.setattr(check_versions, "versions_of", lambda *_: found)
    done = subprocess.CompletedProcess([], status, "E   because\n3 tests in 1 s\n", "")
    monkeypatch.setattr(check_versions.subprocess, "run", lambda *_, **__: done)
    assert check_versions.check("python", tmp_path, 2) == ("Python 1.0, JAX 1.0", state, "3 tests in 1 s")
    assert ("    | E   because" in capsys.readouterr().out) == bool(status)


def test_the_package_is_not_copied(tmp_path: Path) -> None:
    check_versions.copy_tests(tmp_path)
    assert (tmp_path / "tests" / "conftest.py").is_file() and not (tmp_path / "shlo_disc").exists()
