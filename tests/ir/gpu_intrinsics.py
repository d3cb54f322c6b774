# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single instructions of GPUs that kernels call by the name of LLVM's intrinsic, in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

Lanes = np.ndarray


def flushed(x: Lanes) -> Lanes:
    """Numbers below the normal ones become zeros, as in instructions with `.ftz`."""
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)


def power_of_two(x: Lanes) -> Lanes:
    """ex2.approx.ftz.f32, off by nearly as much as the instruction may be: 2^-22 of the result, here upwards."""
    assert x.dtype == np.float32
    power = np.exp2(flushed(x).astype(np.float64))
    is_whole = x == np.rint(x)
    return flushed((power * np.where(is_whole, 1, 1 + 2.0**-22)).astype(np.float32))


def pair_of(dtype: np.dtype) -> Callable[[Lanes, Lanes], Lanes]:
    """cvt.rn of two f32, of which the first becomes the second element."""
    return lambda high, low: np.stack([low, high], -1).astype(dtype)


INTRINSICS: dict[str, Callable[..., Lanes]] = {
    "llvm.nvvm.ex2.approx.ftz.f": power_of_two,
    "llvm.nvvm.ff2bf16x2.rn": pair_of(np.dtype(ml_dtypes.bfloat16)),
    "llvm.nvvm.ff2f16x2.rn": pair_of(np.dtype(np.float16)),
}
