# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random numbers."""

from __future__ import annotations

from shlo_disc.registry.dtypes import BOOL, FLOAT, INT
from shlo_disc.registry.row import refused

ROWS = (
    *refused("rng", BOOL | INT | FLOAT, "this op has no lowering", "use jax.random"),
    *refused("rng_bit_generator", INT | FLOAT, "this op has no lowering"),
)
