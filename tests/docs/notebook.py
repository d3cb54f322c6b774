# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Notebooks as programs: `python tests/docs/notebook.py PATH` runs one. Needs nbclient, and ipykernel as its kernel."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbclient
import nbformat

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def check(path: Path, folder: Path) -> None:
    """Run a notebook in a folder, from the first cell to the last. Raises when a cell does, or none prints anything."""
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": folder}}).execute()
    printed = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any(output.output_type == "stream" for output in printed), f"{path.name} prints nothing"


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as temporary:
            check(Path(argument), Path(temporary))
