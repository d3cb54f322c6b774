# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CHLO ops, which producers mix with StableHLO, rewritten into StableHLO."""

from __future__ import annotations

from shlo_disc.shape_dialect.mlir import ir, passmanager

PIPELINE = (
    "builtin.module(func.func(chlo-legalize-to-stablehlo,remove-shape-constraints,canonicalize,"
    "shape-legalize-to-stablehlo,reconcile-unrealized-casts))"
)
"""Broadcasting ops bring constraints on shapes with them; the ops that they become imply these again."""


def legalise_chlo(module: ir.Module) -> None:
    """Rewrite the module in place; what has no rewriting stays. Raises MLIRError."""
    passmanager.PassManager.parse(PIPELINE).run(module.operation)


__all__ = ["legalise_chlo"]
