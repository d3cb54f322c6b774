# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Computes the results that backends are compared with: `python -m benchmarks.comparison.reference FOLDER`.

They are those of the PyTorch module, op by op in float64.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import jax

from benchmarks.backends.pytorch import Eager
from benchmarks.data import Folder, sample, save
from benchmarks.worker import results_file

NAME = "reference"


class Double(Eager):
    """PyTorch eager with weights and inputs in float64."""

    def load(self) -> None:
        """Makes the module and widens its weights."""
        super().load()
        self.model.double()

    def place(self, index: int) -> Any:
        """Tensors whose floats are wide."""
        widen = lambda tensor: tensor.double() if tensor.is_floating_point() else tensor  # noqa: E731
        return jax.tree.map(widen, super().place(index))


def write(folder: Folder) -> None:
    """Writes a sample of the results at each shape."""
    double = Double(folder)
    double.load()
    double.prepare()
    for index in range(len(folder.shapes)):
        result = double.arrays(double.call(double.place(index)))
        save(results_file(folder, NAME, index), sample(result))


if __name__ == "__main__":
    write(Folder.read(Path(sys.argv[1])))
