# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops over sliding windows: convolutions, pooling, cumulative ops, normalisation of batches."""

from __future__ import annotations

from shlo_disc.registry.dtypes import ALL, COMPLEX, FLOAT, NARROW_FLOAT
from shlo_disc.registry.row import Row, refused, rows

_WINDOWS = "tests/run/test_ops_window.py"

ROWS = (
    *refused("convolution dynamic_conv", ALL, "this op has no lowering", "express it as a dot over patches"),
    *rows("index", "reduce_window", ALL, tests=_WINDOWS),
    Row("@stablehlo.dynamic_reduce_window", "expand", ALL - COMPLEX, ALL, tests=_WINDOWS),
    *refused("select_and_scatter", ALL, "this op has no lowering"),
    *refused(
        "batch_norm_grad batch_norm_inference batch_norm_training",
        FLOAT | NARROW_FLOAT | COMPLEX,
        "this op has no lowering",
    ),
)
