# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`examples.micro` in PyTorch; the backend asks autograd for the gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional


class _Program(nn.Module):
    def __init__(self, epsilon: float):
        super().__init__()
        self.epsilon = epsilon


class Softmax(_Program):
    """Softmax along rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Computes the softmax of x [n, d]."""
        return functional.softmax(x, dim=-1)


class LayerNorm(_Program):
    """Layer normalisation along rows."""

    def forward(self, x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Normalises the rows of x [n, d]."""
        return functional.layer_norm(x, x.shape[-1:], scale, bias, self.epsilon)


class GeluBias(_Program):
    """GELU of a biased input."""

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Computes GELU of x [n, d] plus the bias."""
        return functional.gelu(x + bias, approximate="tanh")


class RmsnormRope(_Program):
    """Root-mean-square normalisation, then rotary position embedding."""

    def forward(self, x: torch.Tensor, scale: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """Applies RMSNorm and RoPE to x [n, d]; cos and sin are [n, d / 2]."""
        first, second = functional.rms_norm(x, x.shape[-1:], scale, self.epsilon).chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class CrossEntropy(_Program):
    """Cross-entropy of each row with its label."""

    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """[n] of logits [n, d] and labels [n]."""
        return functional.cross_entropy(logits, labels.long(), reduction="none")


PROGRAMS = {
    "softmax": Softmax,
    "layernorm": LayerNorm,
    "gelu_bias": GeluBias,
    "rmsnorm_rope": RmsnormRope,
    "cross_entropy": CrossEntropy,
}


def Model(weights: Any, config: Any) -> nn.Module:
    """The module of the program that the configuration names."""
    return PROGRAMS[config.program](config.epsilon)
