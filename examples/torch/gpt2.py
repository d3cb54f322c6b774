# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A GPT-2 that takes some tokens and a cache of those before, and returns the longer cache."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    """Attention to the cache and to the tokens up to each one, and a network."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.parts = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.network = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )

    def forward(self, x: Any, cache: Any, mask: Any) -> tuple[Any, Any]:
        """x [b, t, width], cache [2, b, heads, s, width / heads]."""
        b, t, width = x.shape
        parts = self.parts(self.norms[0](x)).reshape(b, t, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        cache = torch.cat([cache, torch.stack([key, value])], 3)
        found = F.scaled_dot_product_attention(query, cache[0], cache[1], attn_mask=mask)
        x = x + self.out(found.transpose(1, 2).reshape(b, t, width))
        return x + self.network(self.norms[1](x)), cache


class Gpt2(nn.Module):
    """Tokens i64[b, t] and caches f32[layers, 2, b, heads, s, depth] -> logits f32[b, t, words] and caches of s + t."""

    def __init__(self, width: int = 96, layers: int = 2, heads: int = 4, words: int = 500, longest: int = 256) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(longest, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Any, caches: Any) -> tuple[Any, Any]:
        """The next step, or the first one of a cache without elements."""
        t, s = tokens.shape[1], caches.shape[4]
        row, column = torch.arange(t)[:, None] + s, torch.arange(s + t)
        x = self.words(tokens) + self.places(torch.arange(t) + s)
        grown = []
        for number, block in enumerate(self.blocks):
            x, cache = block(x, caches[number], column <= row)
            grown.append(cache)
        return self.norm(x) @ self.words.weight.T, torch.stack(grown)


def arguments(b: int, t: int, s: int) -> tuple[Any, ...]:
    """Tokens and a cache."""
    return torch.randint(0, 500, (b, t)), torch.randn(2, 2, b, 4, s, 24)


B, T, S = torch.export.Dim("b"), torch.export.Dim("t", max=128), torch.export.Dim("s", max=128)
DIMS = ({0: B, 1: T}, {2: B, 4: S})
SIZES = (
    (3, 5, 7), (2, 2, 8), (3, 17, 4), (5, 64, 2), (4, 2, 33), (5, 3, 3), (2, 9, 9), (6, 12, 20), (2, 100, 28),
    (3, 4, 5), (2, 1, 8), (2, 1, 9), (1, 1, 100), (1, 1, 1),
)  # fmt: skip
