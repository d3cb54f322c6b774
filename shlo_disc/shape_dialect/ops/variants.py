# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Variants of a program: branches of one `stablehlo.case` that compute the same with less and less memory.

All ops of such a program but constants are in the branches. The module's `disc.variant` is the number of the branch
that a call takes, an expression of its sizes, and branch k has the arena k + 1 to itself. A call allocates the arena of
its branch only.
"""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.shape_dialect.dialect.buffers import arenas_of
from shlo_disc.shape_dialect.dialect.names import VARIANT
from shlo_disc.shape_dialect.dialect.records import read_size
from shlo_disc.shape_dialect.dialect.types import Dims
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import entry_block

_ONE = Expr.const(1)
_NONE = Expr.const(0)


def variants_in(module: ir.Module) -> ir.Operation | None:
    """The op whose branches are the variants of a program, if it has some."""
    if VARIANT not in module.operation.attributes:
        return None
    return next(op.operation for op in entry_block(module).operations if op.operation.name == "stablehlo.case")


def variant_taken(module: ir.Module) -> Expr:
    """The number of the variant that a call of a planned module takes."""
    return read_size(module.operation.attributes[VARIANT])


def first_that_fits(sizes: Sequence[Expr], limit: int) -> Expr:
    """The number of the first of several sizes that is at most `limit`, or else that of the last one."""
    number, too_large = _NONE, _ONE
    for size in sizes[:-1]:
        too_large = Expr.minimum(too_large, Expr.maximum(_NONE, Expr.minimum(_ONE, size - limit)))
        number = number + too_large
    return number


def allocations_of(module: ir.Module) -> Dims:
    """The bytes that a call allocates for each segment of a planned module."""
    arenas = arenas_of(module.operation)
    if VARIANT not in module.operation.attributes:
        return arenas
    number = variant_taken(module)
    taken = (_is(number, k) * arena for k, arena in enumerate(arenas[1:]))
    return (sum(taken, arenas[0]),)


def _is(number: Expr, k: int) -> Expr:
    """1 where a number is `k`, 0 where it is not."""
    return Expr.maximum(_NONE, _ONE - Expr.maximum(number - k, k - number))


__all__ = ["allocations_of", "first_that_fits", "variant_taken", "variants_in"]
