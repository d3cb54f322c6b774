# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sets of StableHLO ops that several stages ask about."""

from __future__ import annotations

ELEMENTWISE = frozenset(
    "stablehlo." + name
    for name in (
        "abs", "add", "and", "atan2", "bitcast_convert", "cbrt", "ceil", "clamp", "compare", "complex", "convert",
        "cosine", "count_leading_zeros", "divide", "exponential", "exponential_minus_one", "floor", "imag", "is_finite",
        "log", "log_plus_one", "logistic", "maximum", "minimum", "multiply", "negate", "not", "or", "popcnt", "power",
        "real", "reduce_precision", "remainder", "round_nearest_afz", "round_nearest_even", "rsqrt", "select",
        "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "sine", "sqrt", "subtract", "tan",
        "tanh", "xor",
    )
)  # fmt: skip
"""Every element of the result needs the elements of the operands at the same index, and nothing else."""

CONTROL = frozenset({"stablehlo.case", "stablehlo.if", "stablehlo.while"})
"""Loops and branches: their regions hold programs, which may use any value from outside."""

BARRIER = "stablehlo.optimization_barrier"
