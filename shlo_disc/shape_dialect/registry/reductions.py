# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions over whole axes."""

from __future__ import annotations

from shlo_disc.shape_dialect.registry.dtypes import ALL
from shlo_disc.shape_dialect.registry.row import rows

ROWS = rows("reduction", "reduce", ALL, tests="tests/run/test_ops_reduce.py")
