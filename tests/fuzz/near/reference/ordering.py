# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorts, the first few of them, and the places of extrema."""

from __future__ import annotations

import numpy as np

from tests.fuzz.near.reference.numbers import Array, Number, Op, any_error, rule, unknown


@rule("sort")
def _sort(op: Op, *operands: Number) -> list[Number]:
    axis, keys = op.params["dimension"], op.params["num_keys"]
    order = np.lexsort([np.moveaxis(n.value, axis, -1) for n in reversed(operands[:keys])], axis=-1)
    order = np.moveaxis(order, -1, axis)
    close = _ties(operands[0], order, axis, only_errors=bool(op.params["is_stable"]) or keys > 1)
    results = []
    for position, x in enumerate(operands):
        value = np.take_along_axis(x.value, order, axis)
        if position == 0:
            results.append(_sorted_keys(x, value, axis))
        else:
            error = None if x.error is None else np.take_along_axis(x.error, order, axis)
            results.append(unknown(value, close, error))
    return results


def _sorted_keys(x: Number, value: Array, axis: int) -> Number:
    missing = np.isnan(x.value.astype(np.float64)).any(axis=axis, keepdims=True)
    if not any_error(x):
        return unknown(value, np.broadcast_to(missing, value.shape))
    error = np.broadcast_to(x.errors.max(axis=axis, keepdims=True), value.shape)
    return unknown(value, np.broadcast_to(missing, value.shape), error)


def _ties(key: Number, order: Array, axis: int, *, only_errors: bool) -> Array:
    """The places where another element may stand: its key is as near to the next one's as they may be off."""
    value = np.moveaxis(np.take_along_axis(key.value, order, axis), axis, -1).astype(np.float64)
    error = np.moveaxis(np.take_along_axis(key.errors, order, axis), axis, -1)
    gap = np.abs(np.diff(value, axis=-1))
    slack = error[..., 1:] + error[..., :-1]
    near = (gap <= slack) & (slack > 0) if only_errors else gap <= slack
    close = np.isnan(value)  # where NaN stands is the implementation's choice
    close |= close.any(axis=-1, keepdims=True)
    close[..., 1:] |= near
    close[..., :-1] |= near
    return np.moveaxis(close, -1, axis)


@rule("top_k")
def _top_k(op: Op, x: Number) -> list[Number]:
    k, axis = op.params["k"], op.params.get("axis", -1)
    axis = axis % x.value.ndim
    keys = np.moveaxis(x.value.astype(np.float64), axis, -1)
    order = np.moveaxis(np.lexsort((np.signbit(keys), -keys), axis=-1), -1, axis)  # 0 comes before -0
    close = _ties(x, order, axis, only_errors=True)
    first = np.take(order, np.arange(k), axis)
    values = _sorted_keys(x, np.take_along_axis(x.value, first, axis), axis)
    return [values, unknown(first.astype(op.dtypes[1]), np.take(close, np.arange(k), axis))]


def _add_place(name: str, sign: float) -> None:
    @rule(name)
    def apply(op: Op, x: Number) -> Number:
        (axis,) = op.params["axes"]
        signed = sign * x.value.astype(np.float64)
        value = np.argmax(signed, axis)
        if x.error is None:
            return unknown(value.astype(op.dtype), np.isnan(signed).any(axis))
        best = np.take_along_axis(signed - x.error, np.expand_dims(value, axis), axis)
        rivals = (signed + x.error >= best).sum(axis)
        return unknown(value.astype(op.dtype), (rivals > 1) | np.isnan(signed).any(axis))


_add_place("argmax", 1.0)
_add_place("argmin", -1.0)
