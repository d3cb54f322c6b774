# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random bits, which every implementation must agree on."""

from __future__ import annotations

from collections.abc import Callable

from shlo_disc.shape_dialect.symbolic.expr import Expr
from tests.fuzz.builder import Builder, generic
from tests.fuzz.program import Value
from tests.fuzz.ranges import Range, full

NOT_INTERPRETED = frozenset({"rng_bit_generator", "convolution", "dynamic_conv", "fft"})
"""The reference interpreter aborts on these, or takes minutes; XLA alone is the reference."""


def rng_bit_generator(b: Builder) -> bool:
    """ThreeFry and Philox, from any state."""
    algorithm = b.rng.choice(("THREE_FRY", "PHILOX"))
    words = 2 if algorithm == "THREE_FRY" else b.rng.choice((2, 3))
    state = b.argument("ui64", (Expr.const(words),), Range(0, 1000) if b.rng.random() < 0.3 else full("ui64"))
    dims = tuple(Expr.const(b.rng.choice((1, 2, 3, 5, 17))) for _ in range(b.rng.randint(0, 3)))
    dtype = b.rng.choice(("ui32", "ui64", "ui8", "ui16"))  # XLA makes signed ones unsigned
    results = [Value("ui64", state.dims, full("ui64")), Value(dtype, dims, full(dtype))]
    attribute = f"rng_algorithm = #stablehlo<rng_algorithm {algorithm}>"
    return b.add_results("rng_bit_generator", [state], results,
                         generic("rng_bit_generator", [state], results, attribute))  # fmt: skip


OPS: dict[str, Callable[[Builder], bool]] = {"rng_bit_generator": rng_bit_generator}
