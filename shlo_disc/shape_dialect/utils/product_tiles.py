# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tiles of a product's result that blocks of threads compute, as expressions of its sizes."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.problems import MatrixProduct
from shlo_disc.shape_dialect.dialect.types import product
from shlo_disc.shape_dialect.policy import Policy
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv


def product_tiles(problem: MatrixProduct, policy: Policy) -> Expr:
    """The square tiles of a result by rows, over all matrices."""
    side = policy.product_tile
    tiles = ceildiv(problem.m.size, side) * ceildiv(problem.n.size, side)
    return tiles * product(axis.size for axis in problem.batch)


def wanted_tiles(problem: MatrixProduct, policy: Policy) -> Expr:
    """The square tiles, parts of the depth counted one by one, that a device is to have: as many as blocks or, where
    rows are few and a block has two tiles side by side, twice as many."""
    return (at_most(problem.m.size, policy.few_rows) + 1) * policy.blocks


def at_most(size: Expr, number: int) -> Expr:
    """1 where a size is at most a number, else 0."""
    return Expr.minimum(number // Expr.maximum(size, 1), 1)


def tile_sums(policy: Policy) -> int:
    """The sums of a square tile; those of the two in one block are not more."""
    return policy.product_tile**2


__all__ = ["at_most", "product_tiles", "tile_sums", "wanted_tiles"]
