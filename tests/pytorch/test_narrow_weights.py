# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights of 8 and 4 bits, as weight-only quantisation stores them: they are dequantised where they are multiplied."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

import shlo_disc  # noqa: E402

FEATURES, OUTPUTS, GROUP = 96, 40, 32


class Int8(torch.nn.Module):  # type: ignore[misc]
    """Integers (outputs, features), whose scales the sums are multiplied by, or the weight."""

    def __init__(self, scales_weight: bool) -> None:
        super().__init__()
        self.scales_weight = scales_weight
        self.register_buffer("q", torch.randint(-128, 128, (OUTPUTS, FEATURES), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(OUTPUTS))

    def forward(self, x: Any) -> Any:
        if self.scales_weight:
            return F.linear(x, self.q.to(x.dtype) * self.scales[:, None])
        return F.linear(x, self.q.to(x.dtype)) * self.scales


class Int4(torch.nn.Module):  # type: ignore[misc]
    """Two integers in a byte, with a scale and a zero point for each group of features."""

    def __init__(self, shifts: bool) -> None:
        super().__init__()
        self.shifts = shifts
        groups = OUTPUTS, FEATURES // GROUP
        self.register_buffer("q", torch.randint(0, 256, (OUTPUTS, FEATURES // 2), dtype=torch.uint8))
        self.register_buffer("scales", torch.rand(groups))
        self.register_buffer("zeros", torch.randint(0, 16, groups, dtype=torch.uint8))

    def forward(self, x: Any) -> Any:
        high = self.q >> 4 if self.shifts else self.q.bitwise_right_shift(4)
        halves = torch.stack([self.q & 15, high], -1).reshape(OUTPUTS, -1, GROUP)
        return F.linear(x, ((halves.float() - self.zeros[..., None].float()) * self.scales[..., None]).flatten(1))


@pytest.mark.parametrize("module", [Int8(False), Int8(True), Int4(False), Int4(True)])
def test_weights(module: Any) -> None:
    batch = torch.export.Dim("batch", min=1)
    exported = torch.export.export(module, (torch.randn(5, FEATURES),), dynamic_shapes=({0: batch},))
    executable = shlo_disc.compile(exported)
    assert executable.kernels[0].name == "dequantized_dot" and len(executable.kernels) <= 2
    for rows in (1, 3, 33):
        x = torch.randn(rows, FEATURES)
        torch.testing.assert_close(torch.as_tensor(executable(x)), module(x), rtol=1e-4, atol=5e-3)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32])
def test_shifts_by_numbers(dtype: Any) -> None:
    """Numbers that are no shift move every bit out."""
    bits = torch.iinfo(dtype).bits
    x = torch.tensor([torch.iinfo(dtype).min, 1, 7, 100, torch.iinfo(dtype).max], dtype=dtype)
    for by in (0, 1, bits - 1, bits, bits + 1):
        compiled = torch.compile(lambda x, by=by: (x << by, x >> by), backend="shlo_disc", dynamic=True)
        for got, want in zip(compiled(x), (x << by, x >> by), strict=True):
            torch.testing.assert_close(got, want)
