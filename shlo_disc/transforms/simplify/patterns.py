# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patterns of single ops, applied until none fits."""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.shape_dialect.mlir import ir, rewrite
from shlo_disc.shape_dialect.utils.regions import main_function
from shlo_disc.transforms.simplify import data_movement, dot, exchanged_products, reduce, unit_axes

PATTERNS = [
    *data_movement.PATTERNS, *dot.PATTERNS, *exchanged_products.PATTERNS, *reduce.PATTERNS, *unit_axes.PATTERNS,
]  # fmt: skip
"""Simplifications of movements of data, products and reductions."""


def apply(rows: Sequence[tuple[str, data_movement.Pattern]], module: ir.Module) -> None:
    """Apply patterns, each with the name of its op, to the entry function of a module, in place."""
    patterns = rewrite.RewritePatternSet()
    for name, pattern in rows:
        patterns.add(name, pattern)
    rewrite.apply_patterns_and_fold_greedily(main_function(module).operation, patterns.freeze())
