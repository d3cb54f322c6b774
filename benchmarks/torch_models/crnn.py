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
        self.lstms = nn.ModuleList([_lstm(both, config.hidden) for both in weights.lstms])
        self.head = weights.head

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The logarithms [b, w, characters] of the characters' probabilities in images [b, 32, 4*w, 1]."""
        x = images.permute(0, 3, 1, 2)
        for stage, window in zip(self.stages, POOLS, strict=True):
            for layer in stage:
                x = functional.relu(layer.norm(conv(layer.conv, x, stride=1, padding=1)))
            x = functional.max_pool2d(x, window)
        line = x.permute(3, 0, 2, 1).flatten(2)
        for lstm in self.lstms:
            line = lstm(line)[0]
        return functional.log_softmax(self.head(line), dim=-1).transpose(0, 1)


def prepare_script() -> None:
    """The exporter that reads scripts writes PyTorch's LSTM as ONNX's own."""


def _lstm(both: Any, hidden: int) -> nn.LSTM:
    """Both directions in one layer. The example's gates are input, forget, output, cell; here the cell is third."""
    order = torch.cat([torch.arange(gate * hidden, (gate + 1) * hidden) for gate in (0, 1, 3, 2)])
    layer = nn.LSTM(both.right.input.in_features, hidden, bidirectional=True)
    with torch.no_grad():
        for suffix, way in (("", both.right), ("_reverse", both.left)):
            getattr(layer, f"weight_ih_l0{suffix}").copy_(way.input.weight[order])
            getattr(layer, f"bias_ih_l0{suffix}").copy_(way.input.bias[order])
            getattr(layer, f"weight_hh_l0{suffix}").copy_(way.state.weight[order])
            getattr(layer, f"bias_hh_l0{suffix}").zero_()
    return layer
