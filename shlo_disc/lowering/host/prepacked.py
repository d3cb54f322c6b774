# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Right-hand sides of products that can be packed once: arguments and constants of static size.

A packed form has a place in the table of buffers, behind the constants. It is null in a call whose weights are not
known to be those of the last call; the runtime fills it for constants, for arguments that were bound, and for arrays
that come again as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shlo_disc.shape_dialect.dialect.host import GemmTile, KernelUse, Packed
from shlo_disc.shape_dialect.dialect.problems import MatrixProduct
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.views import root
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import is_fixed

FEWEST_ELEMENTS = 1024
"""Smaller right-hand sides are packed, if at all, in less time than it takes to look for their packed form."""

FEW_COLUMNS = 8
"""Products of floats with at most so many columns are dot products of the rows of the left side, or sums down its
columns: they read it in order, once, and take a half to a twentieth of the time of tiles, which are mostly empty."""


def is_packable(problem: MatrixProduct, rhs: ir.Value) -> bool:
    """Tells whether a product's right-hand side, a value of the planned module, can have a packed form."""
    if problem.batch or not is_fixed(root(rhs)):
        return False
    k, n, *strides = _sizes(problem)
    if k is None or n is None or None in strides:
        return False
    return k * n >= FEWEST_ELEMENTS and (n > FEW_COLUMNS or problem.element not in ("f32", "f64"))


def packed_form(problem: MatrixProduct, rhs: ir.Value, tile: GemmTile) -> Packed | None:
    """The packed form of a product's right-hand side, or None when it cannot have one."""
    if not is_packable(problem, rhs):
        return None
    k, n, k_stride, n_stride = (size or 0 for size in _sizes(problem))
    return Packed(problem.element, tile, k, n, k_stride, n_stride)


def with_columns(use: KernelUse, columns: Sequence[int]) -> KernelUse:
    """A kernel with the columns of the panels that it may read among its sizes."""
    if not use.panels:
        return use
    told = {panels.columns: Expr.const(count) for panels, count in zip(use.panels, columns, strict=True)}
    rest = iter(use.sizes)
    places = range(len(use.sizes) + len(use.given) + len(told))
    return replace(use, sizes=tuple(told[i] if i in told else next(rest) for i in places if i not in use.given))


def _sizes(problem: MatrixProduct) -> list[int | None]:
    return [size.constant for size in (problem.k.size, problem.n.size, problem.k.rhs, problem.n.rhs)]
