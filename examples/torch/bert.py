# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A BERT encoder: any batch, any length, padded rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Bert(nn.Module):
    """Embeddings of tokens (i64[b, t]) and places, and layers of attention; `mask` (bool[b, t]): what is padding."""

    def __init__(
        self, width: int = 128, layers: int = 2, heads: int = 4, words: int = 1000, longest: int = 512
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(longest, width)
        self.norm = nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, tokens: Any, mask: Any) -> Any:
        """Features, f32[b, t, width]."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.norm(self.words(tokens) + self.places(places))
        return self.encoder(x, src_key_padding_mask=mask)


def arguments(b: int, t: int) -> tuple[Any, ...]:
    """Tokens and a mask that leaves the first token of each row."""
    mask = torch.rand(b, t) < 0.2
    mask[:, 0] = False
    return torch.randint(0, 1000, (b, t)), mask


B, T = torch.export.Dim("b"), torch.export.Dim("t", max=512)
DIMS = ({0: B, 1: T}, {0: B, 1: T})
SIZES = tuple((2 + n % 4, 3 + 11 * n) for n in range(10)) + ((1, 1), (1, 40))
