# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that are rewritten into others before anything else is done with them: one pattern an op, one module a family.

Types are annotated and shape operands are `disc.shape` when these patterns run, at the start of `simplify`.
"""

from __future__ import annotations

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.transforms.expand import (
    batch_norm,
    bitcast,
    convolution,
    convolution_patches,
    legacy,
    library_calls,
    map,
    mixed_products,
    random,
    sorting,
    sparse,
    top_k,
    windows,
)

BODIES = [*map.PATTERNS, *sparse.PATTERNS, *windows.PATTERNS]
"""Ops of complex numbers, or with bodies that may have them, inlined or called: other patterns never see any."""

PATTERNS = [
    *batch_norm.PATTERNS,
    *bitcast.PATTERNS,
    *convolution.PATTERNS,
    *convolution_patches.PATTERNS,
    *mixed_products.PATTERNS,
    *legacy.PATTERNS,
    *random.PATTERNS,
    *sorting.PATTERNS,
    *top_k.PATTERNS,
]


def expand(module: ir.Module) -> None:
    """Rewrite what has no kernel of its own, before anything is simplified, in place."""
    library_calls.expand(module)


__all__ = ["BODIES", "PATTERNS", "expand"]
