# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants of every element type as NumPy arrays.

The bindings give no access to the elements of many types, and end the process on some; the printed form has them all.
MLIR prints few elements as literals that read back exactly, and many as one string of bytes.
"""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np

from shlo_disc.errors import ProgramError
from shlo_disc.mlir import ir

_NAMES = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
    "i2": ml_dtypes.int2, "i4": ml_dtypes.int4, "ui2": ml_dtypes.uint2, "ui4": ml_dtypes.uint4,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "f8E3M4": ml_dtypes.float8_e3m4, "f8E4M3": ml_dtypes.float8_e4m3, "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "f8E5M2": ml_dtypes.float8_e5m2, "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu, "f4E2M1FN": ml_dtypes.float4_e2m1fn,
    "f6E2M3FN": ml_dtypes.float6_e2m3fn, "f6E3M2FN": ml_dtypes.float6_e3m2fn,
    "complex<f32>": np.complex64, "complex<f64>": np.complex128,
}  # fmt: skip

NUMPY: dict[str, np.dtype[Any]] = {name: np.dtype(kind) for name, kind in _NAMES.items()}
"""The NumPy dtype of each MLIR element type that has one."""

_LITERAL = re.compile(r"[^\s,()\[\]]+")


def array_of(constant: ir.OpView) -> np.ndarray:
    """The elements of a `stablehlo.constant`. Raises ProgramError on an element type that NumPy lacks."""
    tensor = ir.RankedTensorType(constant.results[0].type)
    dtype = NUMPY.get(str(tensor.element_type))
    if dtype is None:
        raise ProgramError(f"no arrays hold elements of the type {tensor.element_type}")
    text = constant.operation.get_asm()
    start = text.index("dense<") + len("dense<")
    elements = text[start : text.index(">", start)]
    if elements.startswith('"0x'):
        values = np.frombuffer(bytes.fromhex(elements[3:-1]), dtype)
    else:
        values = _from_literals(_LITERAL.findall(elements), dtype)
    shape = tuple(tensor.shape)
    return np.full(shape, values[0], dtype) if values.size == 1 else values.reshape(shape).copy()


def _from_literals(literals: list[str], dtype: np.dtype[Any]) -> np.ndarray:
    if dtype.kind == "c":
        parts = _from_literals(literals, np.dtype(f"f{dtype.itemsize // 2}"))
        return parts.view(dtype)
    if dtype == np.bool_:
        return np.array([literal == "true" for literal in literals], dtype)
    return np.array([_number(literal, dtype) for literal in literals], dtype)


def _number(literal: str, dtype: np.dtype[Any]) -> Any:
    """One literal: a number, or the bits of a float that has no decimal form."""
    if is_float(dtype):
        if literal.startswith("0x"):
            return np.array(int(literal, 16), f"u{dtype.itemsize}").view(dtype)[()]
        return np.array(float(literal)).astype(dtype)[()]
    return int(literal)


def is_float(dtype: np.dtype[Any]) -> bool:
    """Any floating-point type, those of `ml_dtypes` included; complex types are not."""
    if dtype.kind == "f":
        return True
    return dtype.kind == "V" and not dtype.name.startswith(("int", "uint"))


__all__ = ["NUMPY", "array_of", "is_float"]
