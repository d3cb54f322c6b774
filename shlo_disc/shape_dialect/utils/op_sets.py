# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sets of StableHLO ops that several stages ask about."""

from __future__ import annotations

CONTROL = frozenset({"stablehlo.case", "stablehlo.if", "stablehlo.while"})
"""Loops and branches: their regions hold programs, which may use any value from outside."""

BARRIER = "stablehlo.optimization_barrier"
