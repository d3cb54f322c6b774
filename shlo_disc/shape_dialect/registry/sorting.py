# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting."""

from __future__ import annotations

from shlo_disc.shape_dialect.registry.dtypes import ALL, REAL
from shlo_disc.shape_dialect.registry.row import Row, rows

_TESTS = "tests/run/test_ops_sort.py"

ROWS = (
    *rows("kernel", "sort", ALL, tests=_TESTS),
    Row("@ApproxTopK", "expand", REAL, REAL, tests=_TESTS),
    Row("@stablehlo.dynamic_approx_top_k", "expand", REAL, REAL, tests=_TESTS),
    Row("@stablehlo.dynamic_top_k", "expand", REAL, REAL, tests=_TESTS),
)
