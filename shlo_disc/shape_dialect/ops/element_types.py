# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Groups of element types, in MLIR's spelling."""

from __future__ import annotations

BOOL = frozenset({"i1"})
SIGNED = frozenset({"i8", "i16", "i32", "i64"})
UNSIGNED = frozenset({"ui8", "ui16", "ui32", "ui64"})
NARROW_INT = frozenset({"i2", "i4", "ui2", "ui4"})
INT = SIGNED | UNSIGNED
FLOAT = frozenset({"f16", "bf16", "f32", "f64"})
NARROW_FLOAT = frozenset(
    {
        "f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E3M4", "f8E4M3", "f8E4M3B11FNUZ", "f8E4M3FN", "f8E4M3FNUZ", "f8E5M2",
        "f8E5M2FNUZ", "f8E8M0FNU",
    }
)  # fmt: skip
COMPLEX = frozenset({"complex<f32>", "complex<f64>"})
REAL = BOOL | INT | FLOAT
ALL = REAL | NARROW_INT | NARROW_FLOAT | COMPLEX

SUM_TYPES = {
    "f32": "f32", "f64": "f64", "bf16": "f32", "f16": "f32", "i8": "i32", "ui8": "ui32", "i32": "i32", "ui32": "ui32",
}  # fmt: skip
"""Accumulator type of matrix products of each element type."""
