# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lists on the pages of the reference are up to date, also in their source, which shows no directives."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.make_reference import FOLDER, find, page
from shlo_disc import Executable

PAGES = sorted(FOLDER.glob("*.md"))


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.stem)
def test_a_page_is_up_to_date(file: Path) -> None:
    """Written by `python -m scripts.make_reference`."""
    text = file.read_text()
    assert text == page(text)


def test_the_methods_of_an_executable_are_listed() -> None:
    text = (FOLDER / "executable.md").read_text()
    public = [name for name in vars(Executable) if not name.startswith("_") and callable(getattr(Executable, name))]
    assert len(public) > 8 and [name for name in public if f"| `Executable.{name}()` | " not in text] == []
    assert all(row.rstrip("| ").endswith(".") for row in text.splitlines() if row.startswith("| `"))


def test_names_are_found_through_imports() -> None:
    found = find("shlo_disc.Executable").definition
    assert found is not None and found.name == "Executable"
