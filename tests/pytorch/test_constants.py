# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exported programs whose arguments are not all tensors, and the names that users give to sizes."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from shlo_disc.errors import ArgumentTypeError, ShapeError  # noqa: E402

Dim = torch.export.Dim


class Chosen(torch.nn.Module):
    """A module of all kinds of arguments."""

    def forward(
        self, x: Any, k: int = 3, mode: str = "sum", scale: float = 0.5, nothing: Any = None, *, use_cache: bool = True
    ) -> Any:
        y = (x * k).sum(1) if mode == "sum" else (x * scale).amax(1)
        return (y, x) if use_cache else y


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((), {"use_cache": False}), ((4, "max"), {"use_cache": True}), ((2, "max", 0.25, None), {"use_cache": False})],
)
def test_constants_are_checked_and_not_passed(args: Any, kwargs: Any) -> None:
    module, rows = Chosen(), Dim("rows", max=100)
    shapes = {"x": {0: rows}, **dict.fromkeys(["k", "mode", "scale", "nothing"][: len(args)]), **dict.fromkeys(kwargs)}
    program = torch.export.export(module, (torch.randn(5, 4), *args), kwargs, dynamic_shapes=shapes)
    run = shlo_disc.compile(program)
    for n in (1, 2, 7):
        x = torch.randn(n, 4)
        torch.testing.assert_close(run(x, *args, **kwargs), module(x, *args, **kwargs))
    with pytest.raises(ArgumentTypeError, match="was exported for"):
        run(torch.randn(5, 4), *args, use_cache=not kwargs["use_cache"])


@pytest.mark.parametrize("strict", [False, True])
def test_names_of_sizes(strict: bool) -> None:
    class Sums(torch.nn.Module):
        def forward(self, x: Any, y: Any, z: Any) -> Any:
            return x[:, :1] + y, z[1:].sum()

    batch, h = Dim("batch", max=100), Dim("h")
    tensors = (torch.randn(5, 4), torch.randn(5, 6), torch.randn(12))
    program = torch.export.export(
        Sums(), tensors, dynamic_shapes=({0: batch}, {0: batch, 1: h}, {0: 2 * h}), strict=strict
    )
    run = shlo_disc.compile(program)
    assert "f32[batch, 4]" in str(run.executable.signature) and "f32[batch, h]" in str(run.executable.signature)
    with pytest.raises(ShapeError, match="batch is above its range, which ends at 100"):
        run(torch.randn(101, 4), torch.randn(101, 6), torch.randn(12))


def test_sizes_without_a_usable_name() -> None:
    class Sum(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return x.sum() + y.sum()

    dims = ({0: Dim("mod"), 1: Dim.DYNAMIC}, {0: Dim("floordiv")})
    run = shlo_disc.compile(torch.export.export(Sum(), (torch.randn(5, 4), torch.randn(6)), dynamic_shapes=dims))
    x, y = torch.randn(3, 7), torch.randn(2)
    torch.testing.assert_close(run(x, y), x.sum() + y.sum())
