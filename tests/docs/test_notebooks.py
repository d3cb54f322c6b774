# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The notebooks of examples/ run from the first cell to the last, and are kept without what they print."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.slow  # `make docs`, which every change has to pass, runs them
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    if "torch" in path.stem and importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    printed = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any(output.output_type == "stream" for output in printed)


def test_notebooks_are_kept_without_outputs() -> None:
    nbformat = pytest.importorskip("nbformat")
    assert {path.stem for path in NOTEBOOKS} >= {"serving_jax", "serving_torch", "training_jax"}
    for path in NOTEBOOKS:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert not any(cell.outputs or cell.execution_count for cell in code), path
