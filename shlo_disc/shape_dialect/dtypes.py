# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The element types of compiled programs: their names in MLIR, in signatures and artifacts, and in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DType:
    """An element type.

    mlir: its spelling in a tensor type, e.g. "ui8". name: in signatures and artifacts, e.g. "u8". numpy: the name in
    NumPy, or in ml_dtypes when `is_extension`. bits: those that a value has; in memory it takes `bytes`.
    """

    mlir: str
    name: str
    numpy: str
    bits: int
    is_extension: bool = False

    @property
    def bytes(self) -> int:
        """In memory, where a type of less than a byte takes one."""
        return max(self.bits // 8, 1)


_SMALL_FLOATS = (
    "f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E3M4", "f8E4M3", "f8E4M3B11FNUZ", "f8E4M3FN", "f8E4M3FNUZ", "f8E5M2",
    "f8E5M2FNUZ", "f8E8M0FNU",
)  # fmt: skip

DTYPES = (
    DType("f16", "f16", "float16", 16),
    DType("bf16", "bf16", "bfloat16", 16, is_extension=True),
    DType("f32", "f32", "float32", 32),
    DType("f64", "f64", "float64", 64),
    DType("i1", "i1", "bool", 1),
    *(DType(f"i{bits}", f"i{bits}", f"int{bits}", bits) for bits in (8, 16, 32, 64)),
    *(DType(f"ui{bits}", f"u{bits}", f"uint{bits}", bits) for bits in (8, 16, 32, 64)),
    *(DType(f"i{bits}", f"i{bits}", f"int{bits}", bits, is_extension=True) for bits in (2, 4)),
    *(DType(f"ui{bits}", f"u{bits}", f"uint{bits}", bits, is_extension=True) for bits in (2, 4)),
    *(DType(m, m.lower(), f"float{m[1]}_{m[2:].lower()}", int(m[1]), is_extension=True) for m in _SMALL_FLOATS),
    DType("complex<f32>", "c64", "complex64", 64),
    DType("complex<f64>", "c128", "complex128", 128),
)

BY_MLIR = {dtype.mlir: dtype for dtype in DTYPES}
BY_NAME = {dtype.name: dtype for dtype in DTYPES}
BY_NUMPY = {dtype.numpy: dtype for dtype in DTYPES}


def numpy_dtype(dtype: DType) -> Any:
    """The `numpy.dtype`. Raises ImportError when it is one of ml_dtypes and that is missing."""
    import numpy as np

    if not dtype.is_extension:
        return np.dtype(dtype.numpy)
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, dtype.numpy))
