# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The contents of `make check-install`: every program of the documentation, and what each stage installs for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import check_install
from tests.docs import page


def test_every_page_notebook_and_example_runs() -> None:
    names = {task.name for stage in check_install.STAGES for task in stage.tasks()}
    assert names >= set(page.programs())
    assert names >= {str(path.relative_to(page.ROOT)) for path in (page.ROOT / "examples").rglob("*.ipynb")}
    sources = [path for path in page.ROOT.glob("examples/*.py") if "__main__" in path.read_text()]
    native = [path for path in (page.ROOT / "examples" / "c").iterdir() if path.is_file()]
    assert names >= {str(path.relative_to(page.ROOT)) for path in sources + native} and len(native) == 3


def test_what_blocks_need_is_installed_by_a_stage() -> None:
    needed = set().union(*(page.read(name).needs for name in page.programs()))
    assert needed == {"torch", "transformers", "pypjrt"}
    assert needed <= {stage.extra for stage in check_install.STAGES} | {
        package for stage in check_install.STAGES for package in stage.packages
    }


@pytest.mark.parametrize("source", ["score.cpp", "pjrt_client.cpp", "score.rs"])
def test_commands_at_the_head_of_an_example(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: name)
    lines = check_install.native(source).command[-1].splitlines()
    assert lines[0].startswith("python -c") and "softmax.disc 2 3" in lines[-1] and len(lines) in (3, 4)


def test_failures_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check = check_install.Check.__new__(check_install.Check)
    check.folder, check.python, check.failed = tmp_path, tmp_path / "python", []
    check.run(check_install.Task("one", ("bash", "-c", "echo because; exit 3"), "."))
    check.run(check_install.Task("two", ("bash", "-c", "exit 0"), "."))
    check.run(check_install.Task("three", skipped="no compiler"))
    out = capsys.readouterr().out
    assert check.failed == ["one"] and "FAILED" in out and "    | because" in out
    assert "  skipped             three: no compiler" in out
