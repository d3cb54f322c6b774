# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`benchmarks.comparison.mlp` in PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    """The perceptron."""

    def __init__(self, weights: Any, config: Any):
        super().__init__()
        self.weights = weights

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Results [b, outputs] of rows [b, inputs]."""
        for layer in self.weights.hidden:
            x = functional.gelu(layer(x), approximate="tanh")
        result: torch.Tensor = self.weights.last(x)
        return result
