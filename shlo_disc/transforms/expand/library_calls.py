# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that library functions compute become calls of those functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.utils.regions import main_function
from shlo_disc.transforms.expand import collectives, custom_call, fft, lapack, linear_algebra, ragged_dot

Expansion = Callable[[ir.OpView], bool]
"""Builds the replacement at the insertion point; False when the op stays as it is."""

EXPANSIONS: list[tuple[str, Expansion]] = [
    *collectives.EXPANSIONS,
    *custom_call.EXPANSIONS,
    *fft.EXPANSIONS,
    *lapack.EXPANSIONS,
    *linear_algebra.EXPANSIONS,
    *ragged_dot.EXPANSIONS,
]


def expand(module: ir.Module) -> None:
    """Expand every such op of an annotated module, in place."""
    for op in list(_operations(main_function(module).operation)):
        with ir.InsertionPoint(op), op.location:
            if any(expansion(op) for name, expansion in EXPANSIONS if name == op.operation.name):
                op.operation.erase()


def _operations(op: ir.Operation) -> Iterator[ir.OpView]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _operations(inner.operation)
                yield inner
