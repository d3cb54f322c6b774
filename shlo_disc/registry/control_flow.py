# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops, branches, tokens and calls."""

from __future__ import annotations

from shlo_disc.registry.dtypes import ALL, REAL
from shlo_disc.registry.row import refused, rows

ROWS = (
    *rows("control", "case if while", REAL, spec=ALL, tests="tests/run/test_control_flow.py"),
    *refused("after_all create_token", ALL, "tokens have no lowering"),
)
