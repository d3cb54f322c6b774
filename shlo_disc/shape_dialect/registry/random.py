# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random numbers."""

from __future__ import annotations

from shlo_disc.shape_dialect.registry.dtypes import BOOL, FLOAT, INT
from shlo_disc.shape_dialect.registry.row import Row, refused, rows

_TESTS = "tests/run/test_ops_rng.py"

ROWS = (
    *rows("expand", "rng_bit_generator", INT | FLOAT, tests=_TESTS),
    Row("@stablehlo.dynamic_rng_bit_generator", "expand", INT | FLOAT, INT | FLOAT, tests=_TESTS),
    *refused("rng", BOOL | INT | FLOAT, "its state is hidden and differs from call to call", "use jax.random"),
)
