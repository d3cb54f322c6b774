# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A tagger of words by an LSTM both ways, for sentences of any length."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Tagger(nn.Module):
    """Words i64[b, t] -> logits f32[b, t, tags]."""

    def __init__(self, width: int = 64, words: int = 800, tags: int = 17) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, 2, bidirectional=True, batch_first=True)
        self.tags = nn.Linear(2 * width, tags)

    def forward(self, words: Any) -> Any:
        """Logits."""
        return self.tags(self.lstm(self.words(words))[0])


def arguments(b: int, t: int) -> tuple[Any, ...]:
    """Words."""
    return (torch.randint(0, 800, (b, t)),)


DIMS = ({0: torch.export.Dim("b"), 1: torch.export.Dim("t", max=4096)},)
SIZES = tuple((2 + n % 4, 3 + 13 * n) for n in range(10)) + ((1, 1), (1, 50))
