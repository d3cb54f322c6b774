# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The files and folders that docs/architecture.md names are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def named() -> list[str]:
    """The paths of the page's tables: those of the package, and pages of `docs`."""
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    found: list[str] = []
    for row in rows:
        folder = ""
        for path in re.findall(r"`([\w/]+(?:/|\.py|\.cpp|\.md))`|(docs/\w+\.md)", row):
            name = next(filter(None, path))
            is_beside = "/" not in name.rstrip("/") and folder and (ROOT / "shlo_disc" / folder / name).exists()
            found.append(f"{folder}/{name}" if is_beside else name)
            folder = str(Path(found[-1]).parent)
    return found


@pytest.mark.parametrize("path", sorted(set(named())))
def test_path(path: str) -> None:
    beside = [ROOT / path, ROOT / "shlo_disc" / path, ROOT / "shlo_disc" / "transforms" / path]
    assert any(place.exists() for place in beside)


def test_there_are_paths() -> None:
    assert len(named()) > 40
