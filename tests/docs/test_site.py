# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The documentation site is built without a warning, fetches nothing, and its configuration lists parameters."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.docs.page import ROOT

pytest.importorskip("sphinx")
pytest.importorskip("myst_parser")
pytest.importorskip("furo")


def _configuration() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_conf", ROOT / "docs" / "conf.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _build(source: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(source), str(site)]
    return subprocess.run(command, env={**os.environ, "JAX_PLATFORMS": "cpu"}, capture_output=True, text=True)


DOCSTRING = """
What it does:
    as it stands.

Here they are. first: one thing,
    in two lines. second: other `code`s; third: no
parameter. Raises OptionError.
"""

LISTED = """
What it does:
    as it stands.

Here they are.

* **first**: one thing, in two lines.
* **second**: other `code`\\ s; third: no parameter.

Raises OptionError.
"""


def test_parameters_of_a_docstring_are_a_list() -> None:
    def function(first: Any, second: Any) -> None: ...

    lines = DOCSTRING.strip().split("\n")
    _configuration()._mark_items(None, "function", "function", function, None, lines)
    assert [line.strip() for line in lines if line] == [line.strip() for line in LISTED.splitlines() if line]


@pytest.mark.slow
def test_the_site_fetches_nothing(tmp_path: Path) -> None:
    done = _build(ROOT / "docs", tmp_path / "site")
    assert (done.returncode, done.stderr) == (0, "")
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 70
    for page in pages:
        fetched = re.findall(
            r'<(?:script|img|iframe|source)[^>]*\ssrc="([^"]+)"|<link[^>]*\shref="([^"]+)"', page.read_text()
        )
        assert fetched and not [link for link in map("".join, fetched) if link.startswith(("http:", "https:", "//"))]
    styles = "".join(path.read_text() for path in (tmp_path / "site").rglob("*.css"))
    assert "url(" in styles and not re.findall(r"url\([\"']?(?:https?:)?//|@import[^;]*//", styles)
    assert "constraints" in (tmp_path / "site" / "reference" / "shlo_disc.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("link", ["nowhere.md", "other.md#nowhere", "nowhere.svg"])
def test_a_broken_link_fails(tmp_path: Path, link: str) -> None:
    source = tmp_path / "docs"
    source.mkdir()
    shutil.copy(ROOT / "docs" / "conf.py", source)
    (source / "other.md").write_text("---\norphan: true\n---\n# A page\n\n## A heading\n")
    image = "!" if link.endswith("svg") else ""
    (source / "index.md").write_text(f"# Index\n\n[good](other.md#a-heading)\n\n{image}[bad]({link})\n")
    done = _build(source, tmp_path / "site")
    assert done.returncode != 0 and "nowhere" in done.stderr
    (source / "index.md").write_text("# Index\n\n[good](other.md#a-heading)\n")
    assert _build(source, tmp_path / "again").returncode == 0
