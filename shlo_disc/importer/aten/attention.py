# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention in its mathematical form, which fusion finds again, and the layer of an encoder that is made of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .elementwise import gelu, relu
from .graph import Graph, working
from .neural import layer_norm, log_total, softmax_along
from .products import dot, linear
from .shapes import slices
from .table import translates


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
    """softmax(scale * query @ key.T + mask) @ value; fully masked rows are 0."""
    if dropout:
        raise t.refuse("attention with dropout has no translation", "decompose it")
    batch = t.dims[:-2]
    query, key, value = (_heads(t, v, batch, grouped) for v in (query, key, value))
    return _weighted(t, _scores(t, query, key, mask, causal, scale), value, mask is not None)


@translates("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(
    t: Graph,
    query: ir.Value,
    key: ir.Value,
    value: ir.Value,
    dropout: float = 0.0,
    causal: bool = False,
    mask: ir.Value | None = None,
    scale: Any = None,
) -> tuple[ir.Value, ir.Value]:
    """Attention, and the logarithm of the sum of each row of exp(scores)."""
    if dropout:
        raise t.refuse("attention with dropout has no translation", "decompose it")
    batch = t.dims[:-2]
    query, key, value = (_heads(t, v, batch, True) for v in (query, key, value))
    scores = _scores(t, query, key, mask, causal, scale)
    total = t.convert(log_total(t, scores, len(batch) + 1), t.outs[1].dtype)
    return _weighted(t, scores, value, mask is not None), total


def _scores(
    t: Graph, query: ir.Value, key: ir.Value, mask: ir.Value | None, causal: bool, scale: Any = None
) -> ir.Value:
    """scale * query @ key.T + mask, -inf where nothing is let through; scale is by default 1 / sqrt(width)."""
    rank, kind = len(dims_of(query)) - 2, working(t.dtype)
    scores = t.convert(dot(t, query, key, rank, (rank + 1, rank + 1)), kind)
    factor = _inverse_root(t, dims_of(query)[-1], kind) if scale is None else scale
    scores = build.multiply(scores, t.operand(factor, kind, dims_of(scores)))
    dims = dims_of(scores)
    if mask is not None and t.dtype_of(mask) != torch.bool:
        scores = build.add(scores, t.operand(mask, kind, dims))
    elif mask is not None:
        scores = t.select(t.stretch(mask, dims), scores, t.constant(-math.inf, kind, dims))
    if causal:
        row, column = (t.iota(dims, axis, torch.int64) for axis in (rank, rank + 1))
        scores = t.select(t.compare("LE", column, row), scores, t.constant(-math.inf, kind, dims))
    return scores


def _inverse_root(t: Graph, size: Expr, dtype: torch.dtype) -> float | ir.Value:
    """1 / sqrt(size)."""
    if size.constant is not None:
        return 1 / math.sqrt(size.constant)
    return build.rsqrt(t.size(size, dtype))


def _weighted(t: Graph, scores: ir.Value, value: ir.Value, is_masked: bool) -> ir.Value:
    """softmax(scores) @ value."""
    rank = len(dims_of(value)) - 2
    weights = softmax_along(t, scores, rank + 1, is_masked)
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


# ---- layers ---------------------------------------------------------------------------------------------------------


@translates("_transformer_encoder_layer_fwd")
def encoder_layer(
    t: Graph,
    x: ir.Value,
    width: int,
    heads: int,
    weights: ir.Value,
    biases: ir.Value,
    projection: ir.Value,
    projection_bias: ir.Value,
    use_gelu: bool,
    norm_first: bool,
    epsilon: float,
    scale: ir.Value,
    shift: ir.Value,
    second_scale: ir.Value,
    second_shift: ir.Value,
    up: ir.Value,
    up_bias: ir.Value,
    down: ir.Value,
    down_bias: ir.Value,
    mask: ir.Value | None = None,
    mask_type: int | None = None,
) -> ir.Value:
    """The op that `torch.nn.TransformerEncoderLayer` calls in evaluation. Fully masked rows are NaN."""

    def norm(value: ir.Value, weight: ir.Value, bias: ir.Value) -> ir.Value:
        return layer_norm(t, value, (width,), weight, bias, epsilon)

    def attend(value: ir.Value) -> ir.Value:
        query, key, content = _parts(t, linear(t, value, weights, biases), heads)
        hidden = None if mask is None else _hidden(t, mask, mask_type == _OF_KEYS)
        found = _weighted(t, _scores(t, query, key, hidden, causal=False), content, is_masked=False)
        return linear(t, t.reshape(t.transpose(found, (0, 2, 1, 3)), t.dims), projection, projection_bias)

    def network(value: ir.Value) -> ir.Value:
        wide = linear(t, value, up, up_bias)
        return linear(t, gelu(t, wide) if use_gelu else relu(t, wide), down, down_bias)

    def add(left: ir.Value, right: ir.Value) -> ir.Value:
        return build.add(left, right)

    if norm_first:
        x = add(x, attend(norm(x, scale, shift)))
        return add(x, network(norm(x, second_scale, second_shift)))
    x = norm(add(x, attend(x)), scale, shift)
    return norm(add(x, network(x)), second_scale, second_shift)


_OF_KEYS = 1
"""The type of a mask that has a row of keys for each sample; others are broadcast over samples and heads."""


def _parts(t: Graph, joined: ir.Value, heads: int) -> list[ir.Value]:
    """Queries, keys and values of heads, [b, heads, s, w], from [b, s, 3 * heads * w]."""
    batch, length, width = dims_of(joined)
    head = width // (3 * heads)
    apart: Dims = (batch, length, Expr.const(3), Expr.const(heads), head)
    of_rows: Dims = (batch, length, Expr.const(heads), head)
    return [t.transpose(t.reshape(part, of_rows), (0, 2, 1, 3)) for part in slices(t, t.reshape(joined, apart), 2, 3)]


def _hidden(t: Graph, mask: ir.Value, is_of_keys: bool) -> ir.Value:
    """The summand of scores: -inf where a mask is not 0."""
    hidden = t.convert(mask, torch.bool)
    dims = dims_of(hidden)
    if is_of_keys:
        dims = (dims[0], Expr.const(1), Expr.const(1), dims[1])
        hidden = t.reshape(hidden, dims)
    kind = working(t.dtype)
    return t.select(hidden, t.constant(-math.inf, kind, dims), t.constant(0, kind, dims))
