# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of matrices, and attention in its mathematical form, which fusion finds again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from shlo_disc.mlir import ir, stablehlo
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .graph import Graph, working
from .neural import softmax_along
from .table import translates


def dot(t: Graph, x: ir.Value, y: ir.Value, batch: int, inner: tuple[int, int]) -> ir.Value:
    """The first `batch` axes of both stay in step and the `inner` ones are summed along; the others follow in order."""
    axes = list(range(batch))
    numbers: Any = stablehlo.DotDimensionNumbers.get(
        lhs_batching_dimensions=axes,
        rhs_batching_dimensions=axes,
        lhs_contracting_dimensions=[inner[0]],
        rhs_contracting_dimensions=[inner[1]],
    )
    left = [d for a, d in enumerate(dims_of(x)) if a != inner[0]]
    right = [d for a, d in enumerate(dims_of(y)) if a != inner[1]]
    dims = (*left, *right[batch:])
    return t.op("dot_general", [x, y], dims, t.element(t.dtype_of(x)), dot_dimension_numbers=numbers)


@translates("mm", "dot", "mv", "bmm")
def plain_product(t: Graph, x: ir.Value, y: ir.Value, *_: Any) -> ir.Value:
    """A product of matrices, of a matrix and a vector, of vectors, or of as many matrices of each."""
    batch = len(dims_of(x)) - 2 if len(dims_of(x)) == 3 else 0
    return dot(t, x, y, batch, (len(dims_of(x)) - 1, batch))


def _added(t: Graph, bias: ir.Value, found: ir.Value, beta: Any, alpha: Any) -> ir.Value:
    """beta * bias + alpha * product; a bias that counts 0 times is not read."""
    kind = working(t.dtype)
    value = t.convert(found, kind)
    if alpha != 1:
        value = t.pointwise("multiply", value, t.operand(alpha, kind))
    if beta == 0 and not isinstance(beta, Expr):
        return t.convert(value, t.dtype)
    first = t.operand(bias, kind)
    if beta != 1:
        first = t.pointwise("multiply", first, t.operand(beta, kind))
    return t.convert(t.pointwise("add", value, first), t.dtype)


@translates("addmm", "addmv", "baddbmm")
def product_and_sum(t: Graph, bias: ir.Value, x: ir.Value, y: ir.Value, beta: Any = 1, alpha: Any = 1) -> ir.Value:
    """beta * bias + alpha * (x @ y)."""
    return _added(t, bias, plain_product(t, x, y), beta, alpha)


@translates("addbmm")
def products_and_sum(t: Graph, bias: ir.Value, x: ir.Value, y: ir.Value, beta: Any = 1, alpha: Any = 1) -> ir.Value:
    """beta * bias + alpha * the sum of the products of all pairs of matrices."""
    kind = working(t.dtype)
    each = t.convert(plain_product(t, x, y), kind)
    found = t.reduce([each], [t.constant(0, kind)], [0], "add")[0]
    return _added(t, bias, t.convert(found, t.dtype), beta, alpha)


@translates("linear")
def linear(t: Graph, x: ir.Value, weight: ir.Value, bias: ir.Value | None = None) -> ir.Value:
    """x @ weight.T + bias along the last axis."""
    found = dot(t, x, weight, 0, (len(dims_of(x)) - 1, len(dims_of(weight)) - 1))
    return found if bias is None else _added(t, bias, found, 1, 1)


@translates("matmul")
def matmul(t: Graph, x: ir.Value, y: ir.Value) -> ir.Value:
    """Python's @: the last two axes are matrices, a vector is one row or column, the other axes are broadcast."""
    left, right = dims_of(x), dims_of(y)
    if len(right) <= 2:
        return dot(t, x, y, 0, (len(left) - 1, max(len(right) - 2, 0)))
    if len(left) == 1:
        return t.reshape(matmul_of(t, t.reshape(x, (Expr.const(1), *left)), y, t.dims[:-1]), t.dims)
    return matmul_of(t, x, y, t.dims[:-2])


def matmul_of(t: Graph, x: ir.Value, y: ir.Value, batch: Sequence[Expr]) -> ir.Value:
    """A product of matrices over the axes `batch`, to which both are broadcast."""
    left, right = (t.stretch(v, (*batch, *dims_of(v)[-2:])) for v in (x, y))
    return dot(t, left, right, len(batch), (len(batch) + 1, len(batch)))


@translates("scaled_dot_product_attention")
def attention(
    t: Graph,
    query: ir.Value,
    key: ir.Value,
    value: ir.Value,
    mask: ir.Value | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    scale: Any = None,
    grouped: bool = False,
) -> ir.Value:
    """softmax(scale * query @ key.T + mask) @ value; rows of which the mask lets nothing through are 0."""
    if dropout:
        raise t.refuse("attention with dropout has no translation", "decompose it")
    batch = t.dims[:-2]
    query, key, value = (_heads(t, v, batch, grouped) for v in (query, key, value))
    rank = len(batch)
    width = dims_of(query)[-1].constant
    if scale is None and width is None:
        raise t.refuse("attention whose width is a symbol needs a scale", "give scale=")
    kind = working(t.dtype)
    scores = t.convert(dot(t, query, key, rank, (rank + 1, rank + 1)), kind)
    factor = 1 / math.sqrt(width) if scale is None else scale  # type: ignore[arg-type]
    scores = t.pointwise("multiply", scores, t.operand(factor, kind, dims_of(scores)))
    allowed = _allowed(t, scores, mask, causal)
    if mask is not None and allowed is None:
        scores = t.pointwise("add", scores, t.operand(mask, kind, dims_of(scores)))
    if allowed is not None:
        scores = t.select(allowed, scores, t.constant(-math.inf, kind, dims_of(scores)))
    weights = softmax_along(t, scores, rank + 1, is_masked=mask is not None)
    return dot(t, t.convert(weights, t.dtype), value, rank, (rank + 1, rank))


def _heads(t: Graph, x: ir.Value, batch: Sequence[Expr], grouped: bool) -> ir.Value:
    """An operand over the axes `batch`; with `grouped`, each head stands for as many of the query's as there are."""
    dims = dims_of(x)
    if grouped and dims[-3] != batch[-1]:
        times = batch[-1] // dims[-3]
        wide = (*dims[:-2], times, *dims[-2:])
        axes = [a for a in range(len(wide)) if a != len(dims) - 2]
        x = t.reshape(t.broadcast(x, wide, axes), (*dims[:-3], batch[-1], *dims[-2:]))
    return t.stretch(x, (*batch, *dims[-2:]))


def _allowed(t: Graph, scores: ir.Value, mask: ir.Value | None, causal: bool) -> ir.Value | None:
    dims = dims_of(scores)
    if causal:
        row, column = (t.iota(dims, len(dims) - n, torch.int64) for n in (2, 1))
        return t.compare("LE", column, row)
    if mask is not None and t.dtype_of(mask) == torch.bool:
        return t.stretch(mask, dims)
    return None
