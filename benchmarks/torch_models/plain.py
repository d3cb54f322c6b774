# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs of `benchmarks.gpu.works.PLAIN` in PyTorch, by the same names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

PROGRAMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "transpose": lambda x: x.transpose(1, 2).contiguous(),
    "matrix_transpose": lambda x: x.T.contiguous(),
    "column_sums": lambda x: x.sum(0),
    "row_sums": lambda x: x.sum(1),
    "narrow_sums": lambda x: (x.sum(0), x.amax(1)),
    "whole": lambda x: (x.sum(), x.max()),
    "add": lambda x: x + 1,
}


class Model(nn.Module):
    """The program that the configuration names."""

    def __init__(self, weights: Any, config: Any):
        super().__init__()
        self.program = PROGRAMS[config.program]

    def forward(self, x: torch.Tensor) -> Any:
        """Runs the program on one array."""
        return self.program(x)
