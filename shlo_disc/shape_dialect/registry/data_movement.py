# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that move elements without computing with them, gathers and scatters among them."""

from __future__ import annotations

from shlo_disc.shape_dialect.registry.dtypes import ALL
from shlo_disc.shape_dialect.registry.row import rows

_TESTS = "tests/run/test_ops_movement.py"
_GATHERS = "tests/run/test_ops_gather.py"

ROWS = (
    *rows(
        "index",
        "broadcast_in_dim concatenate dynamic_broadcast_in_dim dynamic_pad dynamic_reshape dynamic_slice "
        "dynamic_update_slice pad real_dynamic_slice reshape reverse slice transpose",
        ALL,
        tests=_TESTS,
    ),
    *rows("index", "gather dynamic_gather", ALL, tests=_GATHERS),
    *rows("kernel", "scatter", ALL, tests=_GATHERS),
    *rows("expand", "broadcast torch_index_select", ALL, tests="tests/run/test_ops_old.py"),
)
