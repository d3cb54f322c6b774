# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights of 8 and 4 bits, as weight-only quantisation stores them: they are dequantised where they are multiplied."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch.ao.quantization.fx import _decomposed  # noqa: E402, F401  (it defines the ops)

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


class Float8(torch.nn.Module):  # type: ignore[misc]
    """Floats of 8 bits (outputs, features), whose sums are multiplied by scales."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.register_buffer("w", torch.randn(OUTPUTS, FEATURES).to(dtype))
        self.register_buffer("scales", torch.rand(OUTPUTS))

    def forward(self, x: Any) -> Any:
        return F.linear(x, self.w.to(x.dtype)) * self.scales.to(x.dtype)


class NF4(torch.nn.Module):  # type: ignore[misc]
    """Two places of a table in a byte, in blocks of features."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        self.register_buffer("q", torch.randint(0, 256, (OUTPUTS, FEATURES // 2), dtype=torch.uint8))
        self.register_buffer("scales", torch.rand(OUTPUTS * FEATURES // GROUP, 1))
        self.register_buffer("table", torch.linspace(-1, 1, 16) ** 3)

    def forward(self, x: Any) -> Any:
        places = torch.stack([self.q & 15, self.q >> 4], -1).reshape(-1, GROUP).to(self.dtype)
        return F.linear(x, (self.table[places] * self.scales).reshape(OUTPUTS, FEATURES))


class OfChannels(torch.nn.Module):  # type: ignore[misc]
    """As a quantiser of PT2E leaves a weight: zero points are integers of 64 bits."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("q", torch.randint(-128, 128, (OUTPUTS, FEATURES), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(OUTPUTS))
        self.register_buffer("zeros", torch.randint(-128, 128, (OUTPUTS,)))

    def forward(self, x: Any) -> Any:
        dequantize = torch.ops.quantized_decomposed.dequantize_per_channel
        return F.linear(x, dequantize(self.q, self.scales, self.zeros, 0, -128, 127, torch.int8))


def compiled(module: Any, dtype: torch.dtype) -> Any:
    batch = torch.export.Dim("batch", min=1)
    example = torch.randn(5, FEATURES).to(dtype)
    return shlo_disc.compile(torch.export.export(module, (example,), dynamic_shapes=({0: batch},)))


MODULES = (Int8(False), Int8(True), Int4(False), Int4(True), Float8(torch.float8_e4m3fn), Float8(torch.float8_e5m2),
           NF4(torch.int64), NF4(torch.int32), OfChannels())  # fmt: skip


@pytest.mark.parametrize("module", MODULES, ids=lambda module: type(module).__name__)
def test_weights(module: Any) -> None:
    executable = compiled(module, torch.float32)
    assert executable.kernels[0].name == "dequantized_dot" and len(executable.kernels) <= 2
    for rows in (1, 3, 33):
        x = torch.randn(rows, FEATURES)
        torch.testing.assert_close(torch.as_tensor(executable(x)), module(x), rtol=1e-4, atol=5e-3)


class InHalves(torch.nn.Module):  # type: ignore[misc]
    """Integers of 8 or 4 bits, in the type of the argument."""

    def __init__(self, dtype: torch.dtype, bits: int) -> None:
        super().__init__()
        self.bits = bits
        self.register_buffer("q", torch.randint(0, 256, (OUTPUTS, FEATURES * bits // 8), dtype=torch.uint8))
        self.register_buffer("scales", torch.rand(OUTPUTS, FEATURES // GROUP, 1).to(dtype))
        self.register_buffer("zeros", torch.randint(0, 16, (OUTPUTS, FEATURES // GROUP, 1), dtype=torch.uint8))

    def forward(self, x: Any) -> Any:
        q = torch.stack([self.q & 15, self.q >> 4], -1) if self.bits == 4 else self.q
        integers = q.reshape(OUTPUTS, -1, GROUP).to(x.dtype) - self.zeros.to(x.dtype)
        return F.linear(x, (integers * self.scales).flatten(1))


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_of_16_bits(dtype: torch.dtype, bits: int) -> None:
    """Steps are f32 and their results are rounded, as in PyTorch's kernels."""
    module = InHalves(dtype, bits)
    executable = compiled(module, dtype)
    assert "dequantized_dot" in [kernel.name for kernel in executable.kernels]
    for rows in (1, 3, 20, 40):
        x = torch.randn(rows, FEATURES).to(dtype)
        got, want = torch.as_tensor(executable(x)), module(x)
        assert got.dtype == dtype
        largest = float(want.float().abs().max())
        torch.testing.assert_close(got.float(), want.float(), rtol=2**-7, atol=2**-8 * largest)


def test_floats_of_8_bits_are_converted() -> None:
    """Both ways, with what the type has not."""
    numbers = torch.tensor([0.0, -0.0, 1.0, 448.0, 465.0, 1e-3, -3e-3, 57344.0, 7e4, float("inf"), float("nan")])
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz):
        there = torch.compile(lambda x, dtype=dtype: x.to(dtype).float(), backend="shlo_disc", dynamic=True)
        torch.testing.assert_close(there(numbers), numbers.to(dtype).float(), rtol=0, atol=0, equal_nan=True)
        back = torch.compile(lambda x: x.float() * 2, backend="shlo_disc", dynamic=True)
        stored = numbers.to(dtype)
        torch.testing.assert_close(back(stored), stored.float() * 2, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32])
def test_shifts_by_numbers(dtype: Any) -> None:
    """Numbers that are no shift move every bit out."""
    bits = torch.iinfo(dtype).bits
    x = torch.tensor([torch.iinfo(dtype).min, 1, 7, 100, torch.iinfo(dtype).max], dtype=dtype)
    for by in (0, 1, bits - 1, bits, bits + 1):
        compiled = torch.compile(lambda x, by=by: (x << by, x >> by), backend="shlo_disc", dynamic=True)
        for got, want in zip(compiled(x), (x << by, x >> by), strict=True):
            torch.testing.assert_close(got, want)


class Experts(torch.nn.Module):  # type: ignore[misc]
    """A weight for each expert, of integers with a scale for each output."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("q", torch.randint(-128, 128, (3, FEATURES, OUTPUTS), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(3, 1, OUTPUTS))

    def forward(self, x: Any) -> Any:
        return torch.bmm(x, self.q.to(x.dtype) * self.scales)


def test_experts() -> None:
    module, tokens = Experts(), torch.export.Dim("tokens", min=1)
    example = torch.randn(3, 5, FEATURES)
    exported = torch.export.export(module, (example,), dynamic_shapes=({1: tokens},))
    executable = shlo_disc.compile(exported)
    assert [kernel.name for kernel in executable.kernels] == ["dequantized_dot"]
    for rows in (1, 4, 33):
        x = torch.randn(3, rows, FEATURES)
        torch.testing.assert_close(torch.as_tensor(executable(x)), module(x), rtol=1e-4, atol=5e-3)
