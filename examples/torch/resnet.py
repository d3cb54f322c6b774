# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ResNet-50 for images of any size."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


def _convolution(inside: int, outside: int, window: int, stride: int = 1) -> nn.Sequential:
    kernel = nn.Conv2d(inside, outside, window, stride, window // 2, bias=False)
    return nn.Sequential(kernel, nn.BatchNorm2d(outside))


class Bottleneck(nn.Module):
    """Three convolutions beside the operand."""

    def __init__(self, inside: int, middle: int, stride: int) -> None:
        super().__init__()
        outside = 4 * middle
        self.path = nn.Sequential(
            _convolution(inside, middle, 1), nn.ReLU(), _convolution(middle, middle, 3, stride), nn.ReLU(),
            _convolution(middle, outside, 1),
        )  # fmt: skip
        same = stride == 1 and inside == outside
        self.beside = nn.Identity() if same else _convolution(inside, outside, 1, stride)

    def forward(self, x: Any) -> Any:
        """As many features as four times the middle."""
        return torch.relu(self.path(x) + self.beside(x))


class ResNet(nn.Module):
    """Images f32[b, 3, h, w] -> logits f32[b, classes]. `width`: features of the first layers, 64 for ResNet-50."""

    def __init__(self, width: int = 16, blocks: tuple[int, ...] = (3, 4, 6, 3), classes: int = 100) -> None:
        super().__init__()
        self.start = nn.Sequential(_convolution(3, width, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        inside, layers = width, []
        for number, count in enumerate(blocks):
            middle = width << number
            for place in range(count):
                layers.append(Bottleneck(inside, middle, 2 if number and not place else 1))
                inside = 4 * middle
        self.layers = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.last = nn.Linear(inside, classes)

    def forward(self, x: Any) -> Any:
        """Logits."""
        return self.last(self.pool(self.layers(self.start(x))).flatten(1))


def arguments(b: int, h: int, w: int) -> tuple[Any, ...]:
    """Images."""
    return (torch.randn(b, 3, h, w),)


DIMS = ({0: torch.export.Dim.DYNAMIC, 2: torch.export.Dim.DYNAMIC, 3: torch.export.Dim.DYNAMIC},)
SIZES = tuple((2 + n % 3, 48 + 7 * n, 96 - 5 * n) for n in range(10)) + ((1, 64, 64),)
