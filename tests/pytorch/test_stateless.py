# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules without parameters and buffers, and those whose only state is what they change: all that a program can do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402


class Score(torch.nn.Module):
    """The module of README.md."""

    def forward(self, x: Any, w: Any) -> Any:
        return torch.softmax(x @ w, dim=-1)


class Counting(torch.nn.Module):
    """Its only state is a buffer that it changes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Any, w: Any) -> Any:
        self.calls += 1
        return (x @ w) * self.calls


class InPlace(torch.nn.Module):
    """Changes an argument."""

    def forward(self, x: Any, w: Any) -> Any:
        x.add_(1)
        return x @ w


class Noise(torch.nn.Module):
    """Draws numbers."""

    def forward(self, x: Any, w: Any) -> Any:
        return (x + 0 * torch.randn_like(x)) @ w


class Constant(torch.nn.Module):
    """Has a constant of its own, which it reads."""

    def forward(self, x: Any, w: Any) -> Any:
        return x @ w + torch.arange(3.0)


MODULES = [Score, Counting, InPlace, Noise, Constant]


def _arguments(rows: int) -> tuple[Any, Any]:
    return torch.randn(rows, 9, 4), torch.randn(4, 3)


@pytest.mark.parametrize("make", MODULES)
def test_exported(make: Callable[[], Any], tmp_path: Path) -> None:
    module, eager = make(), make()
    b = torch.export.Dim("b")
    run = shlo_disc.compile(torch.export.export(module, _arguments(2), dynamic_shapes=({0: b}, None)))
    for rows in (1, 3, 3, 8):
        x, w = _arguments(rows)
        other = x.clone()
        torch.testing.assert_close(run(x, w), eager(other, w), rtol=1e-5, atol=1e-5)
        assert torch.equal(x, other)
    assert run.compile_count == 1
    run.rebind()
    run(*_arguments(2))
    assert run.profile(*_arguments(3))
    assert "us" in str(run.explain(b=3))
    assert run.report(tmp_path / "report.html", {"b": 3}).stat().st_size
    assert run.out_shape(b=3).shape == (3, 9, 3)
    assert not run.weights()


def test_saved(tmp_path: Path) -> None:
    """A program without weights is called as it is, and its file of weights has none."""
    b = torch.export.Dim("b")
    run = shlo_disc.compile(torch.export.export(Score(), _arguments(2), dynamic_shapes=({0: b}, None)))
    run.save(tmp_path / "score.disc", weights=tmp_path / "score.npz")
    loaded = shlo_disc.load(tmp_path / "score.disc", trust=True)
    x, w = _arguments(5)
    for call in (loaded, loaded.bind(weights=tmp_path / "score.npz")):
        torch.testing.assert_close(torch.from_numpy(call(x, w)), Score()(x, w), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("make", MODULES)
@pytest.mark.parametrize("records", [False, True])
def test_under_torch_compile(make: Callable[[], Any], records: bool) -> None:
    torch._dynamo.reset()
    module, eager = make(), make()
    compiled = torch.compile(module, backend=shlo_disc.torch.backend, dynamic=True)
    for rows in (3, 5, 7):
        x, w = _arguments(rows)
        other = x.clone()
        w.requires_grad_(records)
        found, wanted = compiled(x, w), eager(other, w)
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
        assert torch.equal(x, other)
        if records:
            gradients = [torch.autograd.grad(y.square().sum(), w)[0] for y in (found, wanted)]
            # Up to 63 terms of some units that cancel: the error is that of their sum without signs, some hundreds.
            torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-4)
