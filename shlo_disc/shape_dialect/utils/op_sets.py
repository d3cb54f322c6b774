# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sets of StableHLO ops that several stages ask about."""

from __future__ import annotations

CONTROL = frozenset({"stablehlo.case", "stablehlo.if", "stablehlo.while"})
"""Loops and branches: their regions hold programs, which may use any value from outside."""

BARRIER = "stablehlo.optimization_barrier"

# Ops whose sizes are attributes, each with the op of which they are operands.
BROADCASTS = frozenset({"stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim"})
GATHERS = frozenset({"stablehlo.gather", "stablehlo.dynamic_gather"})
IOTAS = frozenset({"stablehlo.iota", "stablehlo.dynamic_iota"})
PADS = frozenset({"stablehlo.pad", "stablehlo.dynamic_pad"})
RESHAPES = frozenset({"stablehlo.reshape", "stablehlo.dynamic_reshape"})
SLICES = frozenset({"stablehlo.slice", "stablehlo.real_dynamic_slice"})

GENERATORS = IOTAS | {"stablehlo.constant", "disc.shape"}
"""Ops that make a value of nothing."""
