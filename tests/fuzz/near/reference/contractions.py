# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products and convolutions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.fuzz.near.reference.movement import padded
from tests.fuzz.near.reference.numbers import (
    EPSILON,
    SUM_EPSILON,
    Array,
    Number,
    Op,
    any_error,
    is_exact,
    rounded_number,
    rule,
    unknown,
)


def sum_is_exact(total: Array, *terms: Array) -> bool:
    """Tells whether sums of products of these integers stay below what the accumulator holds exactly."""
    return all((t == np.round(t)).all() for t in terms) and bool((total < 2.0**24).all())


def _bilinear(op: Op, x: Number, y: Number, product: Callable[[Array, Array], Array], terms: int) -> Number:
    """A sum of so many products of elements of both."""
    value = product(x.value, y.value)
    if not op.is_float:
        value = value.astype(op.dtype)
        if not any_error(x, y):
            return Number(value)
        return unknown(
            value, product(x.errors + 0.0, np.ones_like(y.errors)) + product(1.0 + 0 * x.errors, y.errors) > 0
        )
    sizes = product(np.abs(x.value), np.abs(y.value))
    if not any_error(x, y) and sum_is_exact(sizes, x.value, y.value) and is_exact(value, op.dtype):
        return Number(value)
    error = (terms + 4) * SUM_EPSILON[op.dtype] * sizes + 2 * EPSILON[op.dtype] * np.abs(value)
    if x.error is not None:
        error = error + product(x.error, np.abs(y.value) + y.errors)
    if y.error is not None:
        error = error + product(np.abs(x.value), y.error)
    return rounded_number(value, np.where(np.isnan(error), np.inf, error), op.dtype)  # of what has overflowed


@rule("dot_general")
def _dot_general(op: Op, x: Number, y: Number) -> Number:
    (lhs_inner, rhs_inner), (lhs_batch, rhs_batch) = op.params["dimension_numbers"]
    terms = math.prod(x.value.shape[i] for i in lhs_inner)

    def product(a: Array, b: Array) -> Array:
        a = _matrices(a, lhs_batch, lhs_inner, inner_last=True)
        b = _matrices(b, rhs_batch, rhs_inner, inner_last=False)
        if a.dtype == bool:
            a, b = a.astype(int), b.astype(int)
        return (a @ b).reshape(op.shapes[0])

    return _bilinear(op, x, y, product, terms)


def _matrices(a: Array, batch: Sequence[int], inner: Sequence[int], *, inner_last: bool) -> Array:
    """An operand as matrices [batch, free, inner], or [batch, inner, free]."""
    free = [i for i in range(a.ndim) if i not in (*batch, *inner)]
    sizes = [math.prod(a.shape[i] for i in axes) for axes in (batch, free, inner)]
    if inner_last:
        return a.transpose([*batch, *free, *inner]).reshape(sizes)
    return a.transpose([*batch, *inner, *free]).reshape(sizes[0], sizes[2], sizes[1])


@rule("conv_general_dilated")
def _convolution(op: Op, x: Number, y: Number) -> Number:
    numbers = op.params["dimension_numbers"]
    weights = y.value.transpose(numbers.rhs_spec)
    terms = math.prod(weights.shape[1:])

    def product(a: Array, b: Array) -> Array:
        result = _convolve(a.transpose(numbers.lhs_spec), b.transpose(numbers.rhs_spec), op.params)
        return result.transpose(np.argsort(numbers.out_spec))

    # Winograd's algorithm adds and subtracts neighbours: as much as the largest window may be off anywhere.
    result = _bilinear(op, x, y, product, terms)
    if result.error is None or not op.is_float:
        return result
    most = np.max(product(np.abs(x.value), np.abs(y.value)), initial=0.0)
    return rounded_number(result.value, result.error + 64 * SUM_EPSILON[op.dtype] * most, op.dtype)


def _convolve(x: Array, w: Array, params: Any) -> Array:
    """x [batch, features, spatial...], w [out features, in features of a group, spatial...]."""
    zero = np.zeros((), x.dtype)
    no = [(0, 0, 0)] * 2
    inner = [(low, high, d - 1) for (low, high), d in zip(params["padding"], params["lhs_dilation"], strict=True)]
    x = padded(x, zero, [*no, *inner])
    w = padded(w, np.zeros((), w.dtype), [*no, *((0, 0, d - 1) for d in params["rhs_dilation"])])
    groups, batches = params["feature_group_count"], params["batch_group_count"]
    if batches > 1:
        parts = zip(np.split(x, batches, 0), np.split(w, batches, 0), strict=True)
        return np.concatenate([_windows(a, b, params["window_strides"]) for a, b in parts], 1)
    parts = zip(np.split(x, groups, 1), np.split(w, groups, 0), strict=True)
    return np.concatenate([_windows(a, b, params["window_strides"]) for a, b in parts], 1)


def _windows(x: Array, w: Array, strides: Sequence[int]) -> Array:
    sizes = [max((n - k) // s + 1, 0) for n, k, s in zip(x.shape[2:], w.shape[2:], strides, strict=True)]
    total = np.zeros((x.shape[0], w.shape[0], *sizes), np.result_type(x, w))
    for offset in itertools.product(*(range(k) for k in w.shape[2:])):
        taps = w[(slice(None), slice(None), *offset)]
        if not taps.any():
            continue
        places = tuple(slice(o, o + (n - 1) * s + 1, s) for o, n, s in zip(offset, sizes, strides, strict=True))
        window = x[(slice(None), slice(None), *places)] if all(sizes) else np.zeros((*x.shape[:2], *sizes))
        total += np.einsum("bi...,oi->bo...", window, taps)
    return total


__all__ = ["sum_is_exact"]
