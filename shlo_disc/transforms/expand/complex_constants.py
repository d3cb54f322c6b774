# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of complex constants."""

from __future__ import annotations

import numpy as np

from shlo_disc.shape_dialect.dense import array_of
from shlo_disc.shape_dialect.mlir import ir


def parts_of(op: ir.OpView, real: ir.RankedTensorType) -> tuple[ir.DenseElementsAttr, ir.DenseElementsAttr]:
    """The real and the imaginary parts of a complex `stablehlo.constant` as constants of the type `real`."""
    numbers = array_of(op)
    return _dense(numbers.real, real), _dense(numbers.imag, real)


def _dense(numbers: np.ndarray, real: ir.RankedTensorType) -> ir.DenseElementsAttr:
    bits = np.ascontiguousarray(numbers).view(f"u{numbers.itemsize}").ravel() if numbers.ndim else numbers.reshape(1)
    if bits.size and (bits == bits[0]).all():
        first = ir.FloatAttr.get(real.element_type, float(numbers.flat[0]))
        return ir.DenseElementsAttr.get_splat(real, first)
    return ir.DenseElementsAttr.get(np.ascontiguousarray(numbers).data, type=real)
