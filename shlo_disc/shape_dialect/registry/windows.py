# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops over sliding windows: convolutions, pooling, cumulative ops, normalisation of batches."""

from __future__ import annotations

from shlo_disc.shape_dialect.registry.dtypes import ALL, COMPLEX, FLOAT, NARROW_FLOAT
from shlo_disc.shape_dialect.registry.row import Row, rows

_CONVOLUTIONS = "tests/run/test_ops_conv.py"
_WINDOWS = "tests/run/test_ops_window.py"

ROWS = (
    *rows("kernel", "convolution", ALL, tests=_CONVOLUTIONS),
    *rows("expand", "dynamic_conv", ALL, tests=_CONVOLUTIONS),
    *rows("index", "reduce_window", ALL, tests=_WINDOWS),
    Row("@stablehlo.dynamic_reduce_window", "expand", ALL, ALL, tests=_WINDOWS),
    *rows("kernel", "select_and_scatter", ALL - COMPLEX, spec=ALL, tests=_WINDOWS),
    *rows(
        "expand",
        "batch_norm_grad batch_norm_inference batch_norm_training",
        FLOAT | NARROW_FLOAT,
        tests="tests/run/test_ops_batch_norm.py",
    ),
)
