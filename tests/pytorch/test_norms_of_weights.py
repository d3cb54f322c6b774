# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training with `weight_norm` and through `pdist`: gradients are those of eager."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402

BY_PARAMETRIZATION, BY_HOOK = torch.nn.utils.parametrizations.weight_norm, torch.nn.utils.weight_norm


@pytest.mark.parametrize("dim", [0, 1, -1, None])
@pytest.mark.parametrize("norm", [BY_PARAMETRIZATION, BY_HOOK], ids=["parametrization", "hook"])
@pytest.mark.filterwarnings("ignore:.*weight_norm")
def test_weights_of_a_norm(norm: Any, dim: int | None) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    module = norm(torch.nn.Conv1d(3, 4, 5), dim=dim)
    eager = copy.deepcopy(module) if norm is BY_PARAMETRIZATION else norm(torch.nn.Conv1d(3, 4, 5), dim=dim)
    eager.load_state_dict(module.state_dict())
    compiled = torch.compile(module, backend=shlo_disc.torch.backend, dynamic=True)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (module, eager)]
    for batch, length in ((3, 9), (2, 12), (5, 20)):
        x = torch.randn(batch, 3, length)
        found, wanted = compiled(x), eager(x)
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
        for value, optimizer in zip((found, wanted), optimizers, strict=True):
            optimizer.zero_grad()
            value.square().mean().backward()
        for mine, other in zip(module.parameters(), eager.parameters(), strict=True):
            torch.testing.assert_close(mine.grad, other.grad, rtol=1e-3, atol=1e-4)
        for optimizer in optimizers:
            optimizer.step()


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, float("inf")])
def test_the_gradient_of_distances_of_pairs(p: float) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: torch.pdist(x, p), backend=shlo_disc.torch.backend, dynamic=True)
    for rows in (5, 2, 7):
        x = torch.randn(rows, 3)
        x[1] = x[0]
        given = [x.clone().requires_grad_() for _ in range(2)]
        found, wanted = compiled(given[0]), torch.pdist(given[1], p)
        torch.testing.assert_close(found, wanted)
        weights = torch.randn_like(wanted)
        for value in (found, wanted):
            (value * weights).sum().backward()
        torch.testing.assert_close(given[0].grad, given[1].grad, rtol=1e-4, atol=1e-5)
