# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantized tensors."""

from __future__ import annotations

from shlo_disc.shape_dialect.registry.dtypes import FLOAT
from shlo_disc.shape_dialect.registry.row import rows

ROWS = rows("expand", "uniform_dequantize uniform_quantize", FLOAT, tests="tests/run/test_ops_quantized.py")
