# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random numbers, and sizes that are read from data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from shlo_disc.torch import backend  # noqa: E402
from tests.pytorch.judge import close  # noqa: E402

B = torch.export.Dim("b")


class _Function(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


def compiled(function: Callable[..., Any], x: Any) -> Any:
    return shlo_disc.compile(torch.export.export(_Function(function), (x,), dynamic_shapes=(({0: B},))))


@pytest.mark.parametrize(
    ("draw", "mean", "deviation"),
    [
        (torch.rand_like, 0.5, 12**-0.5),
        (torch.randn_like, 0.0, 1.0),
        (lambda x: torch.bernoulli(x, 0.3), 0.3, 0.21**0.5),
        (lambda x: torch.randint(2, 12, x.shape).float(), 6.5, (99 / 12) ** 0.5),
        (lambda x: torch.nn.functional.dropout(torch.ones_like(x), 0.25), 1.0, 3**-0.5),
        (lambda x: x.clone().uniform_(-1, 3), 1.0, 4 * 12**-0.5),
        (lambda x: x.clone().normal_(2, 3), 2.0, 3.0),
    ],
)  # fmt: skip
def test_distributions(draw: Callable[..., Any], mean: float, deviation: float) -> None:
    run = compiled(lambda x: (draw(x), draw(x)), torch.zeros(5, 4))
    torch.manual_seed(3)
    first, second = run(torch.zeros(20000, 4))
    for found in (first, second):
        assert abs(float(found.mean()) - mean) < 0.03 * deviation
        assert abs(float(found.std()) - deviation) < 0.03 * deviation
    assert not torch.equal(first, second)
    pair = torch.stack([first.flatten(), second.flatten()])
    assert abs(float(torch.corrcoef(pair)[0, 1])) < 0.02
    torch.manual_seed(3)
    again, _ = run(torch.zeros(20000, 4))
    assert torch.equal(first, again)
    other, _ = run(torch.zeros(20000, 4))
    assert not torch.equal(again, other)


def test_dropout_has_the_gradient_of_what_it_kept() -> None:
    torch._dynamo.reset()
    run = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.5) * 2, backend=backend, dynamic=True)
    for rows in (6, 9):
        x = torch.randn(rows, 50, requires_grad=True)
        y = run(x)
        y.sum().backward()
        kept = y.detach() != 0
        close(x.grad, torch.where(kept, 4.0, 0.0), "gradient")
        assert 0.3 < float(kept.float().mean()) < 0.7


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.nonzero(x > 0.5),
        lambda x: x[x > 0.5] * 2,
        lambda x: x[x[:, 0] > 0.5].sum(1),
        lambda x: x[:, x[0] > 0],
        lambda x: (x > 0.5).nonzero(as_tuple=True),
        lambda x: torch.masked_select(x, x[0] > 0),
    ],
)
def test_sizes_of_masks(function: Callable[..., Any]) -> None:
    run = compiled(function, torch.randn(5, 4))
    for rows in (1, 2, 7, 33):
        x = torch.randn(rows, 4)
        close(run(x), function(x), f"{rows} rows")
    close(run(-torch.ones(3, 4)), function(-torch.ones(3, 4)), "nothing")


def test_an_integer_becomes_a_size() -> None:
    def function(x: Any) -> Any:
        n = x.abs().sum().to(torch.int64).item()
        torch._check(n >= 0)
        return torch.ones(n) * 2, n

    run = compiled(function, torch.randn(5, 4))
    for rows in (1, 3, 8):
        x = torch.randn(rows, 4)
        close(run(x), function(x), f"{rows} rows")
