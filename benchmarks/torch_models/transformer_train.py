# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`examples.transformer_train` in PyTorch; the backend asks autograd for the gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.torch_models.layers import attention, mlp


class Model(nn.Module):
    """The loss."""

    def __init__(self, weights: Any, config: Any):
        super().__init__()
        self.weights = weights
        self.heads = config.heads

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean cross-entropy of targets [b, s] after tokens [b, s]."""
        w = self.weights
        x = functional.embedding(tokens, w.token) + w.position[: tokens.shape[1]]
        for layer in w.layers:
            normed = layer.attention_norm(x)
            query, key, value = layer.query(normed), layer.key(normed), layer.value(normed)
            x = x + layer.output(attention(query, key, value, self.heads, causal=True))
            x = x + mlp(layer.mlp, layer.mlp_norm(x), "gelu_tanh")
        logits = w.head(w.norm(x))
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten().long())
