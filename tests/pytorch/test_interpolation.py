# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Interpolation by factors, exported: eager PyTorch copies an axis whose rounded size is the same."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from shlo_disc.errors import ShapeError  # noqa: E402
from tests.pytorch.modules import Applied  # noqa: E402

AUTO = torch.export.Dim.AUTO
MODES = {
    "linear": 1, "bilinear": 2, "trilinear": 3, "nearest": 2, "nearest-exact": 2, "bicubic": 2, "area": 2,
}  # fmt: skip
FACTORS = (1.0, 1.05, 1.3, 1.5, 2.0, 2.05, 2.3, (1.1, 1.7))
SIZES = (2, 3, 4, 7, 8, 9, 10, 19, 21)


def _interpolation(mode: str, factor: Any, **options: Any) -> Any:
    return Applied(lambda x: torch.nn.functional.interpolate(x, scale_factor=factor, mode=mode, **options))


def _compare(module: Any, rank: int, dtype: Any = torch.float32) -> None:
    axes = dict.fromkeys(range(2, 2 + rank), AUTO)
    example = torch.randn(1, 2, *range(11, 11 + rank)).to(dtype)
    run = shlo_disc.compile(torch.export.export(module, (example,), dynamic_shapes=(axes,)))
    for place, size in enumerate(SIZES):
        others = [SIZES[(place + 4 * axis) % len(SIZES)] for axis in range(1, rank)]
        x = torch.randn(1, 2, size, *others).to(dtype)
        tolerance = 1e-5 if dtype == torch.float32 else torch.finfo(dtype).eps
        torch.testing.assert_close(run(x), module(x), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("factor", FACTORS, ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_factors(mode: str, factor: Any) -> None:
    rank = MODES[mode]
    if isinstance(factor, tuple) and rank != 2:
        factor = factor[0]
    _compare(_interpolation(mode, factor), rank)


@pytest.mark.parametrize("factor", [1.3, 1.7])
def test_aligned_corners(factor: float) -> None:
    _compare(_interpolation("bilinear", factor, align_corners=True), 2)
    _compare(_interpolation("bilinear", factor, recompute_scale_factor=True), 2)


def test_halves() -> None:
    _compare(_interpolation("bilinear", 1.3), 2, torch.bfloat16)
    _compare(_interpolation("nearest", 1.3), 2, torch.float16)


def test_a_rounded_size_of_one() -> None:
    """PyTorch's assumption about int(0.7 * n) is told in Python's words, and not as one about data."""
    module = _interpolation("nearest", 0.7)
    run = shlo_disc.compile(
        torch.export.export(module, (torch.randn(1, 1, 6, 7),), dynamic_shapes=({2: AUTO, 3: AUTO},))
    )
    x = torch.randn(1, 1, 9, 5)
    torch.testing.assert_close(run(x), module(x))
    with pytest.raises(ShapeError, match=r"exported for sizes with int\(0\.7\*s\d+\) != 1, which PyTorch took to hold"):
        run(torch.randn(1, 1, 2, 9))
