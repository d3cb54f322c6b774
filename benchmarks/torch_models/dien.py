# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`examples.dien` in PyTorch: its own GRU for the interests, a loop over steps for the GRU with attention.

No step past a row's length needs to be skipped: all that is read of those steps is multiplied by zero.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch._higher_order_ops import scan
from torch.nn import functional

from benchmarks.torch_models.layers import mlp


class Model(nn.Module):
    """The recommender."""

    def __init__(self, weights: Any, config: Any):
        super().__init__()
        self.weights = weights
        self.interest = _gru(weights.interest)

    def forward(
        self,
        items: torch.Tensor,
        categories: torch.Tensor,
        lengths: torch.Tensor,
        item: torch.Tensor,
        category: torch.Tensor,
    ) -> torch.Tensor:
        """The probability [b] of a click."""
        w = self.weights
        target = self.embed(item, category)
        mask = (torch.arange(items.shape[1])[:, None] < lengths[None, :])[..., None]
        states = self.interest(self.embed(items, categories).transpose(0, 1))[0]
        scores = (states * w.attention(target)).sum(dim=-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(~mask, -1e9), dim=0) * mask
        last = evolve(w.evolution.input(states), weights, w.evolution.state.weight)
        features = torch.cat([last, target, (states * mask).sum(dim=0)], dim=-1)
        return torch.sigmoid(mlp(w.predictor, features, "relu")[:, 0])

    def embed(self, items: torch.Tensor, categories: torch.Tensor) -> torch.Tensor:
        """Items and their categories as vectors."""
        w = self.weights
        return torch.cat([functional.embedding(items, w.item), functional.embedding(categories, w.category)], dim=-1)


def evolve(inputs: torch.Tensor, weights: torch.Tensor, state_weight: torch.Tensor) -> torch.Tensor:
    """The last state [b, d] of the GRU whose update gate is scaled; inputs [t, b, 3*d], weights [t, b, 1]."""
    state = torch.zeros_like(inputs[0, :, : state_weight.shape[1]])
    for step in range(inputs.shape[0]):
        state = _step(state, inputs[step], weights[step], state_weight)
    return state


def _step(state: torch.Tensor, row: torch.Tensor, weight: torch.Tensor, state_weight: torch.Tensor) -> torch.Tensor:
    from_input = row.chunk(3, dim=-1)
    from_state = functional.linear(state, state_weight).chunk(3, dim=-1)
    update = torch.sigmoid(from_input[0] + from_state[0]) * weight
    reset = torch.sigmoid(from_input[1] + from_state[1])
    return (1.0 - update) * state + update * torch.tanh(from_input[2] + reset * from_state[2])


def evolve_by_scan(inputs: torch.Tensor, weights: torch.Tensor, state_weight: torch.Tensor) -> torch.Tensor:
    """`evolve` as a scan, which `torch.export` takes for any length."""

    def step(state: torch.Tensor, row: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        state = _step(state, *row, state_weight)
        return state, state.clone()

    start = torch.zeros_like(inputs[0, :, : state_weight.shape[1]])
    last: torch.Tensor = scan(step, start, (inputs, weights), dim=0)[0]
    return last


def prepare_script() -> None:
    """Makes the loop a script: the exporter that reads scripts writes it as a loop."""
    globals()["evolve"] = torch.jit.script(evolve)


def prepare_export() -> None:
    """Makes the loop a scan: torch.export fixes the number of a loop's steps."""
    globals()["evolve"] = evolve_by_scan


def _gru(weights: Any) -> nn.GRU:
    """PyTorch keeps its state where the update gate is one; the example takes the candidate there."""
    update, reset, candidate = weights.input.weight.chunk(3)
    update_bias, reset_bias, candidate_bias = weights.input.bias.chunk(3)
    update_state, reset_state, candidate_state = weights.state.weight.chunk(3)
    layer = nn.GRU(update.shape[1], update.shape[0])
    with torch.no_grad():
        layer.weight_ih_l0.copy_(torch.cat([reset, -update, candidate]))
        layer.bias_ih_l0.copy_(torch.cat([reset_bias, -update_bias, candidate_bias]))
        layer.weight_hh_l0.copy_(torch.cat([reset_state, -update_state, candidate_state]))
        layer.bias_hh_l0.zero_()
    return layer
