# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exponentials of matrices, by their series at a scale where it is short, and squares of that."""

from __future__ import annotations

import math

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import ir

from .graph import HALVES, Graph
from .loops import counted
from .products import dot
from .reductions import summed
from .table import translates

_TERMS = 18
"""Terms of the series after the first: the rest is below the rounding of float64 for a norm of 1."""

_MOST = 120
"""Squares at most: 2**-120 is a number of float32."""


@translates("linalg_matrix_exp")
def matrix_exp(t: Graph, x: ir.Value) -> ir.Value:
    """The exponential of each matrix: with a norm of at most 1 by the series, and then squared so many times."""
    kind = torch.float32 if t.dtype in HALVES else t.dtype
    x, dims, batch = t.convert(x, kind), dims_of(x), len(dims_of(x)) - 2
    outer = list(range(batch))
    squares = _squares(t, x)
    scale = build.exponential(build.multiply(squares, t.constant(-math.log(2), kind, dims_of(squares))))
    small = build.multiply(x, t.broadcast(scale, dims, outer))
    row, column = (t.iota(dims, axis, torch.int64) for axis in (batch, batch + 1))
    identity = t.convert(t.compare("EQ", row, column), kind)

    def term(i: ir.Value, total: ir.Value) -> list[ir.Value]:
        left = t.convert(build.subtract(t.constant(_TERMS, torch.int64), i), kind)
        product = dot(t, small, total, batch, (batch + 1, batch), kind)
        return [build.add(identity, build.divide(product, t.broadcast(left, dims, ())))]

    def square(i: ir.Value, total: ir.Value) -> list[ir.Value]:
        wanted = t.compare("LT", t.broadcast(i, dims, ()), t.broadcast(t.convert(squares, torch.int64), dims, outer))
        return [t.select(wanted, dot(t, total, total, batch, (batch + 1, batch), kind), total)]

    (series,) = counted(t, lambda: t.constant(_TERMS, torch.int64), [identity], term)
    counts = t.convert(squares, torch.int64)
    most = t.reduce([counts], [t.constant(0, torch.int64)], outer, "maximum")[0] if batch else counts
    return t.convert(counted(t, lambda: most, [series], square)[0], t.dtype)


def _squares(t: Graph, x: ir.Value) -> ir.Value:
    """The halvings of each matrix until its norm, the largest sum of the sizes of a column, is at most 1."""
    kind, batch = t.dtype_of(x), len(dims_of(x)) - 2
    sums = summed(t, build.abs(x), [batch])
    norm = t.reduce([sums], [t.constant(0, kind)], [batch], "maximum")[0]
    dims = dims_of(norm)
    least, most, base = (t.constant(number, kind, dims) for number in (1, _MOST, math.log(2)))
    halvings = build.ceil(build.divide(build.log(build.maximum(norm, least)), base))
    return build.minimum(halvings, most)
