# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bytes of dense constants."""

from __future__ import annotations

import math

import numpy as np

from shlo_disc.shape_dialect.dense import array_of_dense
from shlo_disc.shape_dialect.dtypes import BY_MLIR, numpy_dtype
from shlo_disc.shape_dialect.mlir import ir


def dense_bytes(attribute: ir.DenseElementsAttr) -> bytes:
    """The elements of a constant, row-major and little-endian; each takes at least a byte."""
    tensor = ir.RankedTensorType(attribute.type)
    known = BY_MLIR[str(tensor.element_type)]
    if attribute.is_splat:
        value = attribute.get_splat_value().value
        return np.full(math.prod(tensor.shape), value).astype(numpy_dtype(known)).tobytes()
    if known.is_extension or known.mlir == "i1":
        return array_of_dense(attribute).tobytes()
    return np.ascontiguousarray(np.array(attribute)).astype(numpy_dtype(known), copy=False).tobytes()
