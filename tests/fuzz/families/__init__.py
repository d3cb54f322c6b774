# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One module a family: `OPS` gives for each op the function that adds one to a program, or says that it cannot."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.builder import Builder
from tests.fuzz.families import contractions, control, elementwise, gathers, movement, ordering, random, windows

OPS: dict[str, Callable[[Builder], bool]] = {
    **elementwise.OPS, **movement.OPS, **contractions.OPS, **gathers.OPS, **control.OPS, **ordering.OPS,
    **windows.OPS, **random.OPS,
}  # fmt: skip

WITHOUT = {
    "custom_call": "each target is a program of its own; see the tests of the ops behind them",
    "composite": "replaced by its decomposition while the program is read",
    "@stablehlo.dynamic_reduce_window": "jax.export's spelling of reduce_window; see test_ops_window",
    "@stablehlo.dynamic_rng_bit_generator": "jax.export's spelling of rng_bit_generator; see test_ops_rng",
    "disc.shape": "of the compiler's own making",
    "return": "every region ends with one",
}
"""Ops that are compiled and not generated, and why."""
