# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting."""

from __future__ import annotations

from shlo_disc.registry.dtypes import ALL, REAL
from shlo_disc.registry.row import rows

ROWS = rows("kernel", "sort", REAL, spec=ALL, tests="tests/run/test_ops_sort.py")
