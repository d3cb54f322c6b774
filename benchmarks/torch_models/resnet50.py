# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`examples.resnet50` in PyTorch, channels last."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.torch_models.layers import conv


class Model(nn.Module):
    """The classifier."""

    def __init__(self, weights: Any, config: Any):
        super().__init__()
        self.weights = weights

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Class logits [b, classes] of images [b, s, s, 3]."""
        w = self.weights
        x = functional.relu(_unit(w.stem, images.permute(0, 3, 1, 2), stride=2, size=7))
        x = functional.max_pool2d(x, 3, stride=2, padding=1)
        for number, stage in enumerate(w.stages):
            for block, layer in enumerate(stage):
                x = _block(layer, x, stride=2 if number > 0 and block == 0 else 1)
        logits: torch.Tensor = w.head(x.mean(dim=(2, 3)))
        return logits


def _block(weights: Any, x: torch.Tensor, stride: int) -> torch.Tensor:
    y = functional.relu(_unit(weights.reduce, x))
    y = functional.relu(_unit(weights.space, y, stride=stride, size=3))
    y = _unit(weights.expand, y)
    return functional.relu(y + (_unit(weights.shortcut, x, stride=stride) if hasattr(weights, "shortcut") else x))


def _unit(weights: Any, x: torch.Tensor, stride: int = 1, size: int = 1) -> torch.Tensor:
    normed: torch.Tensor = weights.norm(conv(weights.conv, x, stride, size // 2))
    return normed
