# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values through the reshapes between kernels, which are views of one buffer."""

from __future__ import annotations

from collections.abc import Iterator

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import RESHAPES


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
