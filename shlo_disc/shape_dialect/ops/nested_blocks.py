# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks of loops and branches, whose regions hold programs."""

from __future__ import annotations

from collections.abc import Iterator

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import CONTROL


def nested_blocks(op: ir.Operation | ir.OpView) -> list[ir.Block]:
    """The blocks of a loop or branch, in order: condition and body, or the branches. No block for any other op."""
    if op.operation.name not in CONTROL:
        return []
    return [block for region in op.regions for block in region.blocks]


def all_blocks(block: ir.Block) -> Iterator[ir.Block]:
    """A block and all blocks of the loops and branches in it, outermost first."""
    yield block
    for op in block.operations:
        for nested in nested_blocks(op):
            yield from all_blocks(nested)


def all_values(block: ir.Block) -> Iterator[ir.Value]:
    """The arguments and results of a block and of all blocks of the loops and branches in it."""
    for inner in all_blocks(block):
        yield from inner.arguments
        for op in inner.operations:
            yield from op.results


__all__ = ["all_blocks", "all_values", "nested_blocks"]
