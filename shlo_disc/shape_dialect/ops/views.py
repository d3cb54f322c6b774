# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values through the reshapes between kernels, which are views of one buffer, and pieces of arrays."""

from __future__ import annotations

from collections.abc import Iterator

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import RESHAPES

PIECE = "disc.piece"
"""A part of an array between the kernels of a planned program, which is read where it lies."""


def root(value: ir.Value) -> ir.Value:
    """The value whose buffer `value` is a view of."""
    owner = value.owner
    while not isinstance(owner, ir.Block) and owner.operation.name in RESHAPES:
        value = owner.operands[0]
        owner = value.owner
    return value


def readers_of(value: ir.Value) -> Iterator[tuple[ir.Operation, int]]:
    """The ops, and their operand numbers, that read a value, through views."""
    for use in value.uses:
        user = use.owner.operation
        if user.name in RESHAPES:
            yield from readers_of(user.results[0])
        else:
            yield user, use.operand_number


def read_for(value: ir.Value) -> list[ir.Value]:
    """The values with buffers that whoever reads `value` reads: that which it is a view of, or a piece of, and where
    pieces begin."""
    found = root(value)
    owner = found.owner
    if isinstance(owner, ir.Block) or owner.operation.name != PIECE:
        return [found]
    return [source for operand in owner.operands for source in read_for(operand)]
