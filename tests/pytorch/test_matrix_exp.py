# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exponentials of matrices of any size and norm, and their gradients."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402


class Exponential(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.matrix_exp(x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_exponentials(dtype: Any) -> None:
    auto = torch.export.Dim.AUTO
    example = torch.randn(2, 4, 4, dtype=dtype)
    run = shlo_disc.compile(
        torch.export.export(Exponential(), (example,), dynamic_shapes=({0: auto, 1: auto, 2: auto},))
    )
    tolerance = {"rtol": 1e-3, "atol": 1e-3} if dtype == torch.float32 else {"rtol": 1e-9, "atol": 1e-9}
    for shape in ((3, 5, 5), (1, 1, 1), (0, 3, 3), (4, 9, 9)):
        scale = torch.tensor([0.0, 0.01, 1.0, 3.0], dtype=dtype)[: shape[0], None, None]
        x = torch.randn(shape, dtype=dtype) * scale
        torch.testing.assert_close(run(x), torch.matrix_exp(x), **tolerance)
    turn = torch.tensor([[[0.0, 100.0], [-100.0, 0.0]]], dtype=dtype)
    torch.testing.assert_close(run(turn), torch.matrix_exp(turn), **tolerance)
    assert run(torch.full((1, 2, 2), float("nan"), dtype=dtype)).isnan().all()


def test_gradients_of_exponentials() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(torch.matrix_exp, backend=shlo_disc.torch.backend, dynamic=True)
    for shape in ((3, 5, 5), (2, 7, 7), (6, 6)):
        given = torch.randn(shape, dtype=torch.float64)
        gradients = []
        for function in (compiled, torch.matrix_exp):
            x = given.clone().requires_grad_()
            function(x).sin().sum().backward()
            gradients.append(x.grad)
        torch.testing.assert_close(*gradients)
