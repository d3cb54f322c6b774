# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions and cumulative ops."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tests.fuzz.near.reference.contractions import sum_is_exact
from tests.fuzz.near.reference.numbers import (
    EPSILON,
    SUM_EPSILON,
    TINY,
    Array,
    Number,
    Op,
    any_error,
    is_exact,
    rounded_number,
    rule,
    unknown,
)


@rule("reduce_sum")
def _reduce_sum(op: Op, x: Number) -> Number:
    axes = tuple(op.params["axes"])
    return summed(op, x, lambda a: a.sum(axes), math.prod(x.value.shape[i] for i in axes))


def summed(op: Op, x: Number, total: Callable[[Array], Array], terms: int) -> Number:
    """A sum of so many elements."""
    if not op.is_float:
        value = total(x.value).astype(op.dtype)
        return Number(value, total(x.error) if x.error is not None and any_error(x) else None)
    value, sizes = total(x.value), total(np.abs(x.value))
    if not any_error(x) and sum_is_exact(sizes, x.value) and is_exact(value, op.dtype):
        return Number(value)
    error = (terms + 2) * SUM_EPSILON[op.dtype] * sizes + EPSILON[op.dtype] * np.abs(value)
    return rounded_number(value, error if x.error is None else error + total(x.error), op.dtype)


def _add_extremum(name: str, function: Callable[..., Array]) -> None:
    @rule(f"reduce_{name}")
    def reduce(op: Op, x: Number) -> Number:
        axes = tuple(op.params["axes"])
        if math.prod(x.value.shape[i] for i in axes) == 0:
            return Number(np.full(op.shapes[0], _identity(name, op.dtype), x.value.dtype))
        value = function(x.value, axis=axes)
        if x.error is None:
            return Number(value)
        if not op.is_float:
            return unknown(value, x.error.max(axis=axes) > 0)
        return Number(value, _extremum_error(x, axes, name == "max"))


def _extremum_error(x: Number, axes: tuple[int, ...], largest: bool) -> Array:
    """Only elements that may be the extremum matter."""
    sign = 1.0 if largest else -1.0
    low = (sign * x.value - x.errors).max(axis=axes, keepdims=True)
    candidate = (sign * x.value + x.errors >= low) | (sign * x.value == np.inf)
    return np.where(candidate, x.errors, 0.0).max(axis=axes)


def _identity(name: str, dtype: str) -> float | int:
    if dtype in EPSILON:
        return -np.inf if name == "max" else np.inf
    if dtype == "bool":
        return name == "min"
    return np.iinfo(dtype).min if name == "max" else np.iinfo(dtype).max


_add_extremum("max", np.max)
_add_extremum("min", np.min)


def _add_logical(name: str, function: Callable[..., Array]) -> None:
    @rule(f"reduce_{name}")
    def reduce(op: Op, x: Number) -> Number:
        axes = tuple(op.params["axes"])
        return unknown(function.reduce(x.value, axis=axes), x.errors.sum(axis=axes) > 0)  # type: ignore[attr-defined]


_add_logical("and", np.bitwise_and)
_add_logical("or", np.bitwise_or)
_add_logical("xor", np.bitwise_xor)


@rule("reduce_prod")
def _reduce_prod(op: Op, x: Number) -> Number:
    axes = tuple(op.params["axes"])
    rest = [i for i in range(x.value.ndim) if i not in axes]
    count = math.prod(x.value.shape[i] for i in axes)

    def flat(a: Array) -> Array:
        return a.transpose([*rest, *axes]).reshape([*(a.shape[i] for i in rest), count])

    value, error = np.ones(op.shapes[0], x.value.dtype), np.zeros(op.shapes[0])
    for k in range(count):
        value, error = _times(value, error, flat(x.value)[..., k], flat(x.errors)[..., k], op.dtype)
    return _product_of(op, x, value, error)


def _product_of(op: Op, x: Number, value: Array, error: Array) -> Number:
    if not op.is_float:
        return unknown(value.astype(op.dtype), error > 0)
    if not any_error(x) and is_exact(value, op.dtype) and (x.value == np.round(x.value)).all():
        return Number(value)
    return rounded_number(value, error, op.dtype)


def _times(a: Array, ea: Array, b: Array, eb: Array, dtype: str) -> tuple[Array, Array]:
    value = a * b
    if dtype not in EPSILON:
        return value, ea + eb
    own = 4 * EPSILON[dtype] * np.abs(value) + np.where((a == 0) | (b == 0), 0.0, 2 * TINY[dtype])
    return value, np.abs(a) * eb + ea * np.abs(b) + ea * eb + own


# ---- cumulative -----------------------------------------------------------------------------------------------------


def _along(x: Array, axis: int, reverse: bool) -> Array:
    moved = np.moveaxis(x, axis, 0)
    return moved[::-1] if reverse else moved


def _back(x: Array, axis: int, reverse: bool) -> Array:
    return np.moveaxis(x[::-1] if reverse else x, 0, axis)


@rule("cumsum")
def _cumsum(op: Op, x: Number) -> Number:
    axis, reverse = op.params["axis"], op.params["reverse"]

    def total(a: Array) -> Array:
        return _back(np.cumsum(_along(a, axis, reverse), axis=0), axis, reverse)

    return summed(op, x, total, x.value.shape[axis])


def _add_cumulative(name: str, function: np.ufunc) -> None:
    @rule(name)
    def apply(op: Op, x: Number) -> Number:
        axis, reverse = op.params["axis"], op.params["reverse"]
        value = _back(function.accumulate(_along(x.value, axis, reverse), axis=0), axis, reverse)
        if x.error is None:
            return Number(value)
        error = _back(np.maximum.accumulate(_along(x.error, axis, reverse), axis=0), axis, reverse)
        return Number(value, error) if op.is_float else unknown(value, error > 0)


_add_cumulative("cummax", np.maximum)
_add_cumulative("cummin", np.minimum)


@rule("cumprod")
def _cumprod(op: Op, x: Number) -> Number:
    axis, reverse = op.params["axis"], op.params["reverse"]
    values, errors = _along(x.value, axis, reverse), _along(x.errors, axis, reverse)
    made, bounds = np.empty_like(values), np.empty(errors.shape)
    for k in range(len(values)):
        if k == 0:
            made[k], bounds[k] = values[k], errors[k]
        else:
            made[k], bounds[k] = _times(made[k - 1], bounds[k - 1], values[k], errors[k], op.dtype)
    return _product_of(op, x, _back(made, axis, reverse), _back(bounds, axis, reverse))


@rule("cumlogsumexp")
def _cumlogsumexp(op: Op, x: Number) -> Number:
    axis, reverse = op.params["axis"], op.params["reverse"]
    value = _back(np.logaddexp.accumulate(_along(x.value, axis, reverse), axis=0), axis, reverse)
    error = _back(np.maximum.accumulate(_along(x.errors, axis, reverse), axis=0), axis, reverse)
    own = 8 * EPSILON[op.dtype] * (x.value.shape[axis] + 1) * (1 + np.abs(value))
    return rounded_number(value, error + own, op.dtype)
