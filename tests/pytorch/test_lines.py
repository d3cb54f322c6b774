# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lines that explanations and errors name: the user's, wherever the user's files are."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402

B = torch.export.Dim("b")
SOURCE = """import torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU())

    def forward(self, x):
        return self.layers(x)  # line 9

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.block, self.norm = torch.nn.Sequential(Block()), torch.nn.LayerNorm(8)

    def forward(self, x):
        x = self.block(x)
        return self.norm(x)  # line 18
"""


def module_in(folder: Path) -> Any:
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("model", folder / "model.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize("folder", ["project", "torch", "torch/models", "site/torch213"])
def test_lines_of_the_user(folder: str, tmp_path: Path) -> None:
    """They are those of the modules that the user has written, and not of PyTorch's layers inside."""
    model = module_in(tmp_path / folder)
    run = shlo_disc.compile(torch.export.export(model.Model(), (torch.ones(2, 4),), dynamic_shapes=({0: B},)))
    lines = {line for found in run.executable.source_lines().values() for line in found}
    file = tmp_path / folder / "model.py"
    assert lines and lines <= {f"{file}:9", f"{file}:18"} and f"{file}:9" in lines
    assert "/model.py:18" in str(run.explain(b=4)) and "nn/modules" not in str(run.explain(b=4))


def test_lines_of_programs_from_elsewhere() -> None:
    """A program that was exported by another PyTorch names no lines of that."""
    from shlo_disc.importer.aten.lines import line_of

    graph = torch.fx.Graph()
    node = graph.call_function(torch.relu, (graph.placeholder("x"),))
    frames = ["/home/me/model.py", "/opt/lib/python3.12/site-packages/torch/nn/modules/linear.py", "/src/torch/fx/a.py"]
    node.meta["stack_trace"] = "\n".join(f'File "{name}", line 7, in forward' for name in frames)
    assert line_of(node) == "/home/me/model.py:7"


def test_layers_without_packed_weights() -> None:
    run = shlo_disc.compile(torch.export.export(torch.nn.LayerNorm(8), (torch.ones(2, 8),), dynamic_shapes=({0: B},)))
    assert "row_reduce" in str(run.explain(b=4))
