# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`examples.seq2seq` in PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.torch_models.layers import attention, mlp

Pairs = list[tuple[torch.Tensor, torch.Tensor]]


class Model(nn.Module):
    """One decoding step."""

    def __init__(self, weights: Any, config: Any):
        super().__init__()
        self.weights = weights
        self.heads = config.heads

    def forward(self, token: torch.Tensor, cache: Pairs, source: Pairs) -> tuple[torch.Tensor, Pairs]:
        """Logits [b, vocabulary] after token [b], and the grown cache."""
        w = self.weights
        x = (functional.embedding(token, w.token) + w.position[cache[0][0].shape[1]])[:, None]
        grown = []
        for layer, (keys, values), encoded in zip(w.layers, cache, source, strict=True):
            query, key, value = layer.qkv(layer.self_norm(x)).chunk(3, dim=-1)
            keys, values = torch.cat([keys, key], dim=1), torch.cat([values, value], dim=1)
            grown.append((keys, values))
            x = x + layer.self_output(attention(query, keys, values, self.heads))
            query = layer.query(layer.cross_norm(x))
            x = x + layer.cross_output(attention(query, *encoded, self.heads))
            x = x + mlp(layer.mlp, layer.mlp_norm(x), "relu")
        return functional.linear(w.norm(x[:, 0]), w.token), grown
