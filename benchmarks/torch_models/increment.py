# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""x + 1 in PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Model(nn.Module):
    """The program without weights."""

    def __init__(self, weights: Any, config: Any):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x + 1."""
        return x + 1.0
