# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`examples.asr` in PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.torch_models.layers import attention, conv, mlp


class Model(nn.Module):
    """The speech encoder."""

    def __init__(self, weights: Any, config: Any):
        super().__init__()
        self.weights = weights
        self.heads = config.heads

    def forward(self, frames: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """The logarithms [b, t, tokens] of the tokens' probabilities in frames [b, 4*t, bands]."""
        w = self.weights
        x = frames[:, None]
        for kernel in w.convs:
            x = functional.relu(conv(kernel, x, stride=2, padding=1))
        x = w.project(x.permute(0, 2, 3, 1).flatten(2))
        steps = x.shape[1]
        x = x + w.position[:steps]
        present = (torch.arange(steps)[None, :] < lengths[:, None])[:, None, None, :]
        for layer in w.layers:
            normed = layer.attention_norm(x)
            query, key, value = layer.query(normed), layer.key(normed), layer.value(normed)
            x = x + layer.output(attention(query, key, value, self.heads, present))
            x = x + mlp(layer.mlp, layer.mlp_norm(x), "gelu_tanh")
        return functional.log_softmax(w.head(w.norm(x)), dim=-1)
