# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A speech encoder in the manner of the Conformer (Gulati et al., 2020), behind convolutions that halve the length."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


class Network(nn.Module):
    """Half a feed-forward layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Any) -> Any:
        """x and half of what the layers make of it."""
        return x + 0.5 * self.layers(x)


class Convolution(nn.Module):
    """A gate, a convolution of each feature by itself along time, and a mix."""

    def __init__(self, width: int, window: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gate = nn.Conv1d(width, 2 * width, 1)
        self.depthwise = nn.Conv1d(width, width, window, padding=window // 2, groups=width)
        self.batch_norm = nn.BatchNorm1d(width)
        self.mix = nn.Conv1d(width, width, 1)

    def forward(self, x: Any) -> Any:
        """x [b, t, width] and what the convolution makes of it."""
        y = F.glu(self.gate(self.norm(x).transpose(1, 2)), 1)
        y = F.silu(self.batch_norm(self.depthwise(y)))
        return x + self.mix(y).transpose(1, 2)


class Block(nn.Module):
    """Half a network, attention, a convolution, half a network."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.before, self.behind = Network(width), Network(width)
        self.norm, self.last = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.convolution = Convolution(width, 15)

    def forward(self, x: Any) -> Any:
        """[b, t, width], both."""
        x = self.before(x)
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return self.last(self.behind(self.convolution(x)))


class Conformer(nn.Module):
    """Features f32[b, t, 80] -> f32[b, about t / 4, width]."""

    def __init__(self, width: int = 96, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.halve = nn.Sequential(nn.Conv2d(1, 8, 3, 2), nn.ReLU(), nn.Conv2d(8, 8, 3, 2), nn.ReLU())
        self.start = nn.Linear(8 * 19, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))

    def forward(self, x: Any) -> Any:
        """Features of a quarter of the frames."""
        y = self.halve(x[:, None])
        return self.blocks(self.start(y.permute(0, 2, 1, 3).flatten(2)))


def arguments(b: int, t: int) -> tuple[Any, ...]:
    """Frames."""
    return (torch.randn(b, t, 80),)


DIMS = ({0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC},)
SIZES = tuple((2 + n % 3, 31 + 23 * n) for n in range(10)) + ((7, 50),)
"""For one sequence, PyTorch itself refuses what it has exported of `nn.MultiheadAttention` for several."""
