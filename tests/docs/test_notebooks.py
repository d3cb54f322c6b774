# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The notebooks of examples/ run from the first cell to the last, and are kept without what they print."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")

from tests.docs.notebook import NOTEBOOKS, check  # noqa: E402 - needs both


@pytest.mark.slow  # `make docs`, which every change has to pass, runs them
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path: Path, tmp_path: Path) -> None:
    if "torch" in path.stem and importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    check(path, tmp_path)


def test_notebooks_are_kept_without_outputs() -> None:
    assert {path.stem for path in NOTEBOOKS} >= {"serving_jax", "serving_torch", "training_jax"}
    for path in NOTEBOOKS:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert not any(cell.outputs or cell.execution_count for cell in code), path
