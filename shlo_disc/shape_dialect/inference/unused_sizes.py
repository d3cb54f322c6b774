# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Erasure of the computations of sizes that nothing reads."""

from __future__ import annotations

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import VALUE_RULES
from shlo_disc.shape_dialect.ops.values import is_shape_like


def erase_unused_sizes(block: ir.Block) -> None:
    """Erase what is computed from sizes and read by nothing."""
    for op in reversed(list(block.operations)):
        is_size = op.operation.name in VALUE_RULES and all(is_shape_like(r.type) for r in op.results)
        if is_size and not any(True for r in op.results for _ in r.uses):
            op.operation.erase()
