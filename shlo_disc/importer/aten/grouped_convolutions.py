# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions whose number of feature groups is a size, as of filters that are applied to each channel of an image.

StableHLO's convolution has a number of groups, and a window of known size. Here the products of each place of a small
window are added up: those of one feature by one feature are elementwise, others are a `dot_general` in batches of
groups. A large window, or one whose size is a symbol, is a `dot_general` of patches that are gathered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr, as_expr
from shlo_disc.shape_dialect.symbolic.facts_simplify import divide

from .graph import Graph, working
from .indexing import gather_at
from .products import dot
from .shapes import join, pad, piece

_FEW_PLACES = 64
_INSTEAD = "fix the number of channels, as by torch._dynamo.mark_static(x, 1) or Dim.STATIC"


class Slide(NamedTuple):
    """The parameters of a kernel's slide over its operand: a number for each axis, and the number of feature groups."""

    stride: list[int]
    padding: list[int]
    dilation: list[int]
    groups: Any


def convolved_in_groups(t: Graph, x: ir.Value, kernel: ir.Value, dims: Dims, slide: Slide) -> ir.Value:
    """The convolution of [b, groups * i, ...] with a kernel [groups * o, i, ...], to `dims`: [b, groups * o, ...]."""
    dtype, groups = t.dtype_of(x), as_expr(slide.groups)
    x, kernel = (t.convert(v, working(dtype)) for v in (_padded(t, x, slide.padding), kernel))
    outer, rest = divide(dims[1], groups)  # exact, whether or not there are groups
    split = (dims[0], groups, outer if rest.constant == 0 else dims[1] // groups, *dims[2:])
    places = math.prod(dims_of(kernel)[2:], start=build.ONE).constant
    is_small = places is not None and places <= _FEW_PLACES
    build_sum = _sum_over_places if is_small else _products_of_patches
    return t.convert(t.reshape(build_sum(t, x, kernel, split, slide), dims), dtype)


def check_groups(t: Graph, groups: int | Expr, what: str) -> int:
    """The number of groups. Raises UnsupportedError where it is a size."""
    number = as_expr(groups).constant
    if number is None:
        raise t.refuse(f"{what} whose number of groups is a size has no lowering", _INSTEAD)
    return number


def _padded(t: Graph, x: ir.Value, padding: Sequence[int]) -> ir.Value:
    if not any(padding):
        return x
    around = [Expr.const(n) for n in (0, 0, *padding)]
    dims = tuple(d + 2 * n for d, n in zip(dims_of(x), around, strict=True))
    return pad(t, x, t.constant(0, t.dtype_of(x)), around, around, dims)


def _sum_over_places(t: Graph, x: ir.Value, kernel: ir.Value, dims: Dims, slide: Slide) -> ir.Value:
    """[b, groups, o, ...], a place of the window after the other."""
    batch, groups, outer, *space = dims
    inner, *window = dims_of(kernel)[1:]
    total = t.constant(0, t.dtype_of(x), dims)
    for place in product(*(range(size.constant or 0) for size in window)):
        part, weights = x, kernel
        for axis, at in enumerate(place):
            start = Expr.const(at * slide.dilation[axis])
            part = piece(t, part, axis + 2, start, space[axis], slide.stride[axis])
            weights = piece(t, weights, axis + 2, Expr.const(at), build.ONE)
        part, weights = t.reshape(part, (batch, groups, inner, *space)), t.reshape(weights, (groups, outer, inner))
        total = build.add(total, _products(t, part, weights, dims))
    return total


def _products(t: Graph, x: ir.Value, weights: ir.Value, dims: Dims) -> ir.Value:
    """[b, groups, o, ...] of x [b, groups, i, ...] and weights [groups, o, i]."""
    batch, groups, outer, *space = dims
    if dims_of(x)[2].constant == 1:
        one = t.broadcast(t.reshape(x, (batch, groups, *space)), dims, [0, 1, *range(3, len(dims))])
        return build.multiply(one, t.broadcast(t.reshape(weights, (groups, outer)), dims, [1, 2]))
    by_group = t.transpose(x, [1, 0, *range(3, len(dims)), 2])
    return _outer_to_front(t, dot(t, by_group, weights, 1, (len(dims) - 1, 2)))


def _outer_to_front(t: Graph, x: ir.Value) -> ir.Value:
    """[groups, b, ..., o] as [b, groups, o, ...]."""
    rank = len(dims_of(x))
    return t.transpose(x, [1, 0, rank - 1, *range(2, rank - 1)])


def _products_of_patches(t: Graph, x: ir.Value, kernel: ir.Value, dims: Dims, slide: Slide) -> ir.Value:
    """[b, groups, o, ...], from what each window of x holds."""
    batch, groups, outer, *space = dims
    inner, *window = dims_of(kernel)[1:]
    rank, sizes = len(space), (*space, *window)
    places = [
        build.add(
            build.multiply(t.iota(sizes, a, torch.int64), t.constant(slide.stride[a], torch.int64, sizes)),
            build.multiply(t.iota(sizes, a + rank, torch.int64), t.constant(slide.dilation[a], torch.int64, sizes)),
        )
        for a in range(rank)
    ]
    ends = [t.reshape(place, (*sizes, build.ONE)) for place in places]
    patches = gather_at(t, x, list(range(2, rank + 2)), join(t, ends, 2 * rank, (*sizes, Expr.const(rank))))
    patches = t.reshape(patches, (*sizes, batch, groups, inner))
    order = [2 * rank + 1, 2 * rank, *range(rank), 2 * rank + 2, *range(rank, 2 * rank)]
    terms = inner * math.prod(window, start=build.ONE)
    by_group = t.reshape(t.transpose(patches, order), (groups, batch, *space, terms))
    weights = t.reshape(kernel, (groups, outer, terms))
    return _outer_to_front(t, dot(t, by_group, weights, 1, (rank + 2, 2)))
