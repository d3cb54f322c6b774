# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`examples.bert` in PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.torch_models.layers import attention, mlp


class Model(nn.Module):
    """The encoder."""

    def __init__(self, weights: Any, config: Any):
        super().__init__()
        self.weights = weights
        self.heads = config.heads

    def forward(self, tokens: torch.Tensor, segments: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The states [b, s, width] of tokens [b, s]."""
        w = self.weights
        x = functional.embedding(tokens, w.token) + w.position[: tokens.shape[1]]
        x = w.norm(x + functional.embedding(segments, w.segment))
        kept = mask.bool()[:, None, None, :]
        for layer in w.layers:
            attended = attention(layer.query(x), layer.key(x), layer.value(x), self.heads, kept)
            x = layer.attention_norm(x + layer.output(attended))
            x = layer.mlp_norm(x + mlp(layer.mlp, x, "gelu_exact"))
        return x
