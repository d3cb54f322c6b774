# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops, branches, tokens and calls."""

from __future__ import annotations

from shlo_disc.registry.dtypes import ALL
from shlo_disc.registry.row import refused

ROWS = (
    *refused("while", ALL, "this op has no lowering", "unroll the loop or move it out of the compiled function"),
    *refused("case if", ALL, "this op has no lowering", "use jnp.where / lax.select, or compile each branch"),
    *refused("after_all create_token", ALL, "tokens have no lowering"),
)
