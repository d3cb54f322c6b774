# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`examples.gpt2` in PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.torch_models.layers import attention, mlp


class Model(nn.Module):
    """The decoder on a whole prompt."""

    def __init__(self, weights: Any, config: Any):
        super().__init__()
        self.weights = weights
        self.heads = config.heads

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits [b, s, vocabulary] of tokens [b, s]."""
        w = self.weights
        x = functional.embedding(tokens, w.token) + w.position[: tokens.shape[1]]
        for layer in w.layers:
            query, key, value = layer.qkv(layer.attention_norm(x)).chunk(3, dim=-1)
            x = x + layer.output(attention(query, key, value, self.heads, causal=True))
            x = x + mlp(layer.mlp, layer.mlp_norm(x), "gelu_tanh")
        return functional.linear(w.norm(x), w.token)
