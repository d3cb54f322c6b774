# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`examples.vit` in PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from benchmarks.torch_models.layers import attention, mlp


class Model(nn.Module):
    """The classifier."""

    def __init__(self, weights: Any, config: Any):
        super().__init__()
        self.weights = weights
        self.heads = config.heads

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        """Class logits [b, classes] of patches [b, p, values]."""
        w = self.weights
        x = w.patch(patches)
        x = torch.cat([w.class_.expand(x.shape[0], 1, -1), x], dim=1) + w.position[: x.shape[1] + 1]
        for layer in w.layers:
            query, key, value = layer.qkv(layer.attention_norm(x)).chunk(3, dim=-1)
            x = x + layer.output(attention(query, key, value, self.heads))
            x = x + mlp(layer.mlp, layer.mlp_norm(x), "gelu_exact")
        logits: torch.Tensor = w.head(w.norm(x[:, 0]))
        return logits
