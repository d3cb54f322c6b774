# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops, branches, tokens and calls."""

from __future__ import annotations

from shlo_disc.shape_dialect.registry.dtypes import ALL
from shlo_disc.shape_dialect.registry.row import rows

ROWS = (
    *rows("control", "case if while", ALL, tests="tests/run/test_control_flow.py"),
    *rows("import", "after_all create_token", {"!stablehlo.token"}, tests="tests/run/test_ops_distributed.py"),
)
