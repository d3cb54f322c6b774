# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks of loops and branches, whose regions hold programs."""

from __future__ import annotations

from collections.abc import Iterator

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import CONTROL
from shlo_disc.shape_dialect.ops.values import bound_elements


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


def symbols_read_in(op: ir.Operation | ir.OpView) -> set[str]:
    """The symbols that are read from data in the blocks of a loop or branch, anew in each run of the block."""
    blocks = (inner for nested in nested_blocks(op) for inner in all_blocks(nested))
    binds = (i for block in blocks for i in block.operations if i.operation.name == "disc.bind")
    return {name for bind in binds for size in bound_elements(bind) for name in size.symbols()}


__all__ = ["all_blocks", "all_values", "nested_blocks", "symbols_read_in"]
