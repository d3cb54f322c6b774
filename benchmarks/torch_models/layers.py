# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers shared by the models: attention, the two-layer perceptron."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    heads: int,
    mask: torch.Tensor | None = None,
    causal: bool = False,
) -> torch.Tensor:
    """Attention over `heads` equal slices of the last axis; query [b, q, d], key and value [b, k, d]."""
    batch, queries, width = query.shape
    q, k, v = (x.view(batch, x.shape[1], heads, width // heads).transpose(1, 2) for x in (query, key, value))
    attended = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
    return attended.transpose(1, 2).reshape(batch, queries, width)


def mlp(weights: Any, x: torch.Tensor, activation: str) -> torch.Tensor:
    """Two linear layers with an activation between: "relu", "gelu_exact" or "gelu_tanh"."""
    hidden = weights.up(x)
    if activation == "relu":
        hidden = functional.relu(hidden)
    else:
        hidden = functional.gelu(hidden, approximate="tanh" if activation == "gelu_tanh" else "none")
    result: torch.Tensor = weights.down(hidden)
    return result


def conv(weights: torch.Tensor, x: torch.Tensor, stride: int, padding: int) -> torch.Tensor:
    """Convolution of [b, channels, h, w]."""
    return functional.conv2d(x, weights, stride=stride, padding=padding)
