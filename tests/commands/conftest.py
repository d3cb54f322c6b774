# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program in two forms, and what the executable has compiled from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from .executable import AFTER, BEFORE, run


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """before.mlir, after.mlir, and before.disc, which `compile` has written."""
    folder = tmp_path_factory.mktemp("commands")
    (folder / "before.mlir").write_text(BEFORE)
    (folder / "after.mlir").write_text(AFTER)
    status, out, err = run("compile", folder / "before.mlir", "-o", folder / "before.disc")
    assert (status, err) == (0, "") and out.startswith(f"{folder / 'before.disc'}: ")
    return folder


@pytest.fixture(scope="session")
def program(folder: Path) -> Path:
    """StableHLO text."""
    return folder / "before.mlir"


@pytest.fixture(scope="session")
def artifact(folder: Path) -> Path:
    """An artifact of it."""
    return folder / "before.disc"
