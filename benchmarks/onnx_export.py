# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports a work's PyTorch model to ONNX for all shapes, in a process of its own: `python -m benchmarks.onnx_export`.

The last line of its output is the number of seconds that the export took.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.data import Folder, leaves, like, load
from benchmarks.torch_models import find, module


def export(folder: Folder) -> float:
    """Writes the ONNX file; returns the seconds. Raises what PyTorch raises, and ValueError for gradients."""
    if folder.trains or folder.pullback:
        raise ValueError("the graph would need gradients")
    weights = module(load(folder.weights, torch.from_numpy), folder.configuration)
    source = find(folder.torch_model)
    model = source.Model(weights, folder.configuration).eval().requires_grad_(False)
    largest = max(range(len(folder.shapes)), key=lambda index: min(folder.shapes[index]))
    inputs = load(folder.inputs(largest), torch.from_numpy)
    names = [f"in{number}" for number in range(len(leaves(inputs)))]
    start = time.perf_counter()
    if hasattr(source, "prepare_script"):
        source.prepare_script()
        axes = {name: _symbolic(dims) for name, dims in zip(names, folder.specs, strict=True)}
        options: dict[str, Any] = {"dynamo": False, "dynamic_axes": axes}
    else:
        dynamic = [dict.fromkeys(_symbolic(dims), torch.export.Dim.DYNAMIC) for dims in folder.specs]
        options = {"dynamo": True, "dynamic_shapes": like(inputs, dynamic), "verbose": False}
    torch.onnx.export(model, inputs, str(folder.onnx), input_names=names, **options)
    return time.perf_counter() - start


def _symbolic(dims: list[str]) -> dict[int, str]:
    """The axes whose size is no integer, with a name for each."""
    return {axis: f"axis{axis}_{dim.replace('*', '_')}" for axis, dim in enumerate(dims) if not dim.isdecimal()}


if __name__ == "__main__":
    print(export(Folder.read(Path(sys.argv[1]))))
