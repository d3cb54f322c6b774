# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bytes of dense constants."""

from __future__ import annotations

import math
import re

import ml_dtypes
import numpy as np

from shlo_disc.mlir import ir

NUMPY = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "i1": np.bool_,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
}  # fmt: skip


def dense_bytes(attribute: ir.DenseElementsAttr, tensor: ir.RankedTensorType) -> bytes:
    """Row-major, little-endian; a boolean takes one byte."""
    dtype = np.dtype(NUMPY[str(tensor.element_type)])
    count = math.prod(tensor.shape)
    if attribute.is_splat:
        return np.full(count, attribute.get_splat_value().value, dtype).tobytes()
    if str(tensor.element_type) == "i1":
        return np.array(list(ir.DenseIntElementsAttr(attribute)), np.bool_).tobytes()
    if dtype == ml_dtypes.bfloat16:
        return _bf16_from_text(str(attribute)).tobytes()
    return np.ascontiguousarray(np.array(attribute)).astype(dtype, copy=False).tobytes()


_NUMBER = re.compile(r"0x[0-9A-F]{4}|[-+0-9.e]+")


def _bf16_from_text(text: str) -> np.ndarray:
    """The elements of a printed `dense<...> : tensor<...xbf16>`: the bindings give no other access to them.

    MLIR prints few elements as decimals that read back exactly, or as bits, and many as one string of bytes.
    """
    elements = text[len("dense<") : text.rindex(">", 0, text.rindex(" : "))]
    if elements.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(elements[3:-1]), ml_dtypes.bfloat16)
    bits = [
        int(number, 16) if number.startswith("0x") else np.array(float(number), ml_dtypes.bfloat16).view(np.uint16)
        for number in _NUMBER.findall(elements)
    ]
    return np.array(bits, np.uint16).view(ml_dtypes.bfloat16)
