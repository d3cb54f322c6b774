# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in Triton for the programs of `examples.micro`, written by hand: a row in one block's registers.

With TRITON_INTERPRET=1 in the environment they run on a processor.
"""

# Triton reads the annotations of kernels, so they may not be postponed.

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from benchmarks.gpu.backends import Refused
from benchmarks.gpu.backends.pytorch import Eager
from benchmarks.gpu.bundle import Program

EPSILON = 1e-5
"""The epsilon of `examples.micro`."""
ELEMENTS_A_BLOCK = 1024
"""Elements of a block in programs without rows."""


@triton.jit
def _softmax(x, y, d, BLOCK: tl.constexpr):
    row, column = tl.program_id(0).to(tl.int64) * d, tl.arange(0, BLOCK)
    value = tl.load(x + row + column, column < d, -float("inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(y + row + column, power / tl.sum(power, 0), column < d)


@triton.jit
def _layernorm(x, scale, bias, y, d, epsilon, BLOCK: tl.constexpr):
    row, column = tl.program_id(0).to(tl.int64) * d, tl.arange(0, BLOCK)
    value = tl.load(x + row + column, column < d, 0.0)
    centred = tl.where(column < d, value - tl.sum(value, 0) / d, 0.0)
    normed = centred * tl.rsqrt(tl.sum(centred * centred, 0) / d + epsilon)
    result = normed * tl.load(scale + column, column < d, 0.0) + tl.load(bias + column, column < d, 0.0)
    tl.store(y + row + column, result, column < d)


@triton.jit
def _gelu_bias(x, bias, y, count, d, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place, place < count, 0.0) + tl.load(bias + place % d, place < count, 0.0)
    inner = 0.7978845608028654 * (value + 0.044715 * value * value * value)
    # tanh(u) = 2 sigmoid(2 u) - 1
    tl.store(y + place, value * tl.sigmoid(2 * inner), place < count)


@triton.jit
def _rmsnorm_rope(x, scale, cos, sin, y, h, epsilon, BLOCK: tl.constexpr):
    row, column = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    inside = column < h
    first = tl.load(x + row * 2 * h + column, inside, 0.0)
    second = tl.load(x + row * 2 * h + h + column, inside, 0.0)
    factor = tl.rsqrt((tl.sum(first * first, 0) + tl.sum(second * second, 0)) / (2 * h) + epsilon)
    first *= factor * tl.load(scale + column, inside, 0.0)
    second *= factor * tl.load(scale + h + column, inside, 0.0)
    cosine, sine = tl.load(cos + row * h + column, inside, 0.0), tl.load(sin + row * h + column, inside, 0.0)
    tl.store(y + row * 2 * h + column, first * cosine - second * sine, inside)
    tl.store(y + row * 2 * h + h + column, second * cosine + first * sine, inside)


@triton.jit
def _cross_entropy(logits, labels, y, d, BLOCK: tl.constexpr):
    row, column = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    value = tl.load(logits + row * d + column, column < d, -float("inf"))
    largest = tl.max(value, 0)
    total = tl.sum(tl.exp(value - largest), 0)
    chosen = tl.load(logits + row * d + tl.load(labels + row))
    tl.store(y + row, tl.log(total) + largest - chosen)


@triton.jit
def _row_sums(x, y, d, BLOCK: tl.constexpr):
    row, column = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    tl.store(y + row, tl.sum(tl.load(x + row * d + column, column < d, 0.0), 0))


def _row_options(width: int) -> dict[str, int]:
    """The block that holds a row, and the warps that share it."""
    block = triton.next_power_of_2(max(width, 1))
    return {"BLOCK": block, "num_warps": min(32, max(4, block // 512))}


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Computes the softmax of x [n, d] along rows."""
    y = torch.empty_like(x)
    _softmax[(x.shape[0],)](x, y, x.shape[1], **_row_options(x.shape[1]))
    return y


def layernorm(x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Normalises x [n, d] along rows."""
    y = torch.empty_like(x)
    _layernorm[(x.shape[0],)](x, scale, bias, y, x.shape[1], EPSILON, **_row_options(x.shape[1]))
    return y


def gelu_bias(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Computes GELU of x [n, d] plus bias [d], by the tanh approximation."""
    y, count = torch.empty_like(x), x.numel()
    _gelu_bias[(triton.cdiv(count, ELEMENTS_A_BLOCK),)](x, bias, y, count, x.shape[1], BLOCK=ELEMENTS_A_BLOCK)
    return y


def rmsnorm_rope(x: torch.Tensor, scale: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Applies RMSNorm and RoPE to x [n, d]; cos and sin are [n, d / 2]."""
    y, half = torch.empty_like(x), x.shape[1] // 2
    _rmsnorm_rope[(x.shape[0],)](x, scale, cos, sin, y, half, EPSILON, **_row_options(half))
    return y


def cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """[n] of logits [n, d] and labels [n]."""
    y = torch.empty(logits.shape[:1], dtype=logits.dtype, device=logits.device)
    _cross_entropy[(logits.shape[0],)](logits, labels, y, logits.shape[1], **_row_options(logits.shape[1]))
    return y


def row_sums(x: torch.Tensor) -> torch.Tensor:
    """Sums the rows of x [n, d]."""
    y = torch.empty(x.shape[:1], dtype=x.dtype, device=x.device)
    _row_sums[(x.shape[0],)](x, y, x.shape[1], **_row_options(x.shape[1]))
    return y


KERNELS: dict[str, Callable[..., torch.Tensor]] = {
    "micro-softmax": softmax,
    "micro-layernorm": layernorm,
    "micro-gelu_bias": gelu_bias,
    "micro-rmsnorm_rope": rmsnorm_rope,
    "micro-cross_entropy": cross_entropy,
    "plain-row_sums": row_sums,
}
"""By the programs' names."""


class Triton(Eager):
    """The kernels above, on PyTorch's tensors."""

    def facts(self) -> dict[str, Any]:
        """Triton's version."""
        return {"triton": triton.__version__}

    def load(self, program: Program, weights: Sequence[np.ndarray]) -> None:
        """Nothing is compiled before the first call."""
        if program.name not in KERNELS:
            raise Refused("there is no kernel in Triton")
        super().load(program, weights)
        self.run = KERNELS[program.name]
