# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reports: the path that is written, and when a browser shows it."""

from __future__ import annotations

import json
import tempfile
import webbrowser
from pathlib import Path

import jax.numpy as jnp
import pytest

import shlo_disc
from shlo_disc.report.page.browser import BROWSERS
from shlo_disc.tools.cli import main

PROGRAM = "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n  return %x : tensor<?xf32>\n}\n"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The pages that a browser was asked for, on a machine with a display and temporary files of its own."""
    pages: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda page: pages.append(page) or True)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in BROWSERS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    return pages


@pytest.fixture(scope="module")
def executable() -> shlo_disc.Executable:
    return shlo_disc.compile(jnp.tanh, args=(("n", "float32"),))


def test_without_a_path_a_browser_shows_it(executable: shlo_disc.Executable, opened: list[str], tmp_path: Path) -> None:
    page = executable.report()
    assert opened == [page.as_uri()] and page.parent == tmp_path
    assert "tanh: shlo_disc report" in page.read_text()
    assert executable.report() != page


def test_with_a_path_it_is_shown_when_asked_for(
    executable: shlo_disc.Executable, opened: list[str], tmp_path: Path
) -> None:
    page = executable.report(tmp_path / "a page.html")
    assert opened == [] and executable.report(page, show=True) == page
    assert opened == [page.as_uri()]
    executable.report(show=False)
    assert len(opened) == 1


def test_without_a_display_nothing_is_opened(
    executable: shlo_disc.Executable, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISPLAY")
    assert executable.report(show=True).exists() and opened == []


def test_sizes_that_are_not_admissible_leave_no_file(
    executable: shlo_disc.Executable, opened: list[str], tmp_path: Path
) -> None:
    with pytest.raises(shlo_disc.ShapeError):
        executable.report(dims=[{"n": -1}])
    assert opened == [] and not [*tmp_path.iterdir()]


def test_the_command(opened: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "same.mlir"
    program.write_text(PROGRAM)
    assert main(["report", str(program), "--json"]) == 0
    (page,) = opened
    assert Path(json.loads(capsys.readouterr().out)["page"]["file"]).as_uri() == page
    assert main(["report", str(program), "-o", str(tmp_path / "page.html")]) == 0 and opened == [page]
