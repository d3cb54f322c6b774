# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of PyTorch as arguments and results of programs, without copies."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
import torch
import torch.utils.dlpack

from shlo_disc.errors import ArgumentTypeError
from shlo_disc.runtime.adapt import no_elements
from shlo_disc.shape_dialect.dtypes import BY_NUMPY, numpy_dtype


def as_argument(value: Any, what: str, order: tuple[int, ...] | None = None) -> Any:
    """A tensor, an integer for a size, or a float as an argument. Raises ArgumentTypeError for what no program takes.

    order: that of the axes in which the program takes the tensor; None for its own. A tensor whose elements are in
    row-major order of these axes is read where it lies, else copied into that order. It is handed over as a NumPy
    array, which takes a tenth of the time that its own `__dlpack__` takes, where NumPy has its dtype.
    """
    if type(value) not in _KINDS or value.layout != torch.strided or not value.is_cpu:
        return _other(value, what)
    plain = value.detach() if value.requires_grad else value
    if plain.is_neg() or plain.is_conj():
        plain = plain.resolve_neg().resolve_conj()
    plain = (plain if order is None else plain.permute(order)).contiguous()
    if plain.dtype in _NOT_NUMPY:
        return _Lent(plain)
    try:
        return plain.numpy()
    except (RuntimeError, TypeError) as error:
        raise ArgumentTypeError(f"{what} is {no_elements(value) or f'no array: {error}'}") from None


_NOT_NUMPY = frozenset(
    {torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz}
)


class _Lent:
    """A tensor by DLPack."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: torch.Tensor):
        self.tensor = tensor

    def __dlpack__(self, **_: Any) -> Any:
        """The tensor's memory."""
        return torch.utils.dlpack.to_dlpack(self.tensor)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The CPU."""
        return 1, 0


def _other(value: Any, what: str) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return np.array(value, np.int64)
    if isinstance(value, float):
        return np.array(value, np.float64)
    if not isinstance(value, torch.Tensor):
        raise ArgumentTypeError(f"{what} is {type(value).__name__}, not a tensor")
    if fault := no_elements(value):
        raise ArgumentTypeError(f"{what} is {fault}")
    if not value.is_cpu:
        raise ArgumentTypeError(f"{what} is on the device {value.device}; move it with .cpu()")
    raise ArgumentTypeError(f"{what} is a {type(value).__name__}: pass its .as_subclass(torch.Tensor)")


def as_array(argument: Any) -> np.ndarray:
    """A result of `as_argument` as a NumPy array of the same memory, also for dtypes of ml_dtypes."""
    if not isinstance(argument, _Lent):
        return np.asarray(argument)
    tensor = argument.tensor
    dtype = numpy_dtype(BY_NUMPY[str(tensor.dtype).removeprefix("torch.")])
    return tensor.view(_BYTES[tensor.element_size()]).numpy().view(dtype)


_BYTES = {1: torch.uint8, 2: torch.int16}


def write_arrays(to: BinaryIO, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays of any names as an .npz file, one at a time. Raises OSError."""
    with zipfile.ZipFile(to, "w") as file:
        for name, array in arrays.items():
            own = array if array.dtype.kind != "V" else array.view(f"V{array.dtype.itemsize}")
            with file.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, own, allow_pickle=False)


_KINDS = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


def as_tensor(buffer: Any) -> torch.Tensor:
    """A result as a tensor that owns it."""
    return torch.from_dlpack(buffer)


def new_key() -> np.ndarray:
    """The key by which a call draws its random numbers (uint64 of size 2), from PyTorch's generator."""
    return torch.randint(-(1 << 63), (1 << 63) - 1, (2,)).numpy().view(np.uint64)
