# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of PyTorch as arguments and results of programs, without copies."""

from __future__ import annotations

from typing import Any

import torch

from shlo_disc.errors import ArgumentTypeError


def as_argument(value: Any, what: str) -> Any:
    """A tensor, or an integer for a size, as an argument. Raises ArgumentTypeError for what no program takes.

    A tensor is read where it lies when its elements are in row-major order, else copied into that order.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return torch.tensor(value)
    if not isinstance(value, torch.Tensor):
        raise ArgumentTypeError(f"{what} is {type(value).__name__}, not a tensor")
    if value.device.type != "cpu":
        raise ArgumentTypeError(f"{what} is on the device {value.device}; move it with .cpu()")
    if value.layout != torch.strided or type(value) not in _KINDS:
        raise ArgumentTypeError(f"{what} is a {type(value).__name__} of layout {value.layout}, not a dense tensor")
    plain = value.detach()
    if plain.is_neg() or plain.is_conj():
        plain = plain.resolve_neg().resolve_conj()
    return plain.contiguous()


_KINDS = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


def as_tensor(buffer: Any) -> torch.Tensor:
    """A result as a tensor that owns it."""
    return torch.from_dlpack(buffer)


def new_key() -> torch.Tensor:
    """What a call draws its random numbers by (uint64 of size 2), from PyTorch's generator."""
    return torch.randint(-(1 << 63), (1 << 63) - 1, (2,)).view(torch.uint64)
