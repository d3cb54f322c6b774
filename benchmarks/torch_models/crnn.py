# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`examples.crnn` in PyTorch, channels last, with PyTorch's own bidirectional LSTM."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.torch_models.layers import conv

POOLS = ((2, 2), (2, 2), (2, 1), (2, 1))


class Model(nn.Module):
    """The reader of text lines."""

    def __init__(self, weights: Any, config: Any):
        super().__init__()
        self.stages = weights.stages
        self.lstm = _lstm(weights.lstms, config.hidden)
        self.head = weights.head

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The logarithms [b, w, characters] of the characters' probabilities in images [b, 32, 4*w, 1]."""
        x = images.permute(0, 3, 1, 2)
        for stage, window in zip(self.stages, POOLS, strict=True):
            for layer in stage:
                x = functional.relu(layer.norm(conv(layer.conv, x, stride=1, padding=1)))
            x = functional.max_pool2d(x, window)
        line = self.lstm(x.permute(3, 0, 2, 1).flatten(2))[0]
        return functional.log_softmax(self.head(line), dim=-1).transpose(0, 1)


def prepare_script() -> None:
    """The exporter that reads scripts writes PyTorch's LSTM as ONNX's own."""


def _lstm(layers: Any, hidden: int) -> nn.LSTM:
    """All layers in both directions. The example's gates are input, forget, output, cell; here the cell is third."""
    order = torch.cat([torch.arange(gate * hidden, (gate + 1) * hidden) for gate in (0, 1, 3, 2)])
    lstm = nn.LSTM(layers[0].right.input.in_features, hidden, num_layers=len(layers), bidirectional=True)
    ways = [
        (f"l{n}{end}", way) for n, both in enumerate(layers) for end, way in (("", both.right), ("_reverse", both.left))
    ]
    with torch.no_grad():
        for suffix, way in ways:
            getattr(lstm, f"weight_ih_{suffix}").copy_(way.input.weight[order])
            getattr(lstm, f"bias_ih_{suffix}").copy_(way.input.bias[order])
            getattr(lstm, f"weight_hh_{suffix}").copy_(way.state.weight[order])
            getattr(lstm, f"bias_hh_{suffix}").zero_()
    return lstm
