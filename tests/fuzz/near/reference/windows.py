# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions of windows, and what their gradients need."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.fuzz.near.reference.movement import padded
from tests.fuzz.near.reference.numbers import Array, Number, Op, any_error, rounded_number, rule, unknown
from tests.fuzz.near.reference.reductions import _identity, summed


def _views(x: Array, fill: Any, params: Any, shape: tuple[int, ...]) -> Iterator[Array]:
    """For each place in the window, the elements of `x` there in all windows."""
    rank = x.ndim
    dilation = params.get("window_dilation") or (1,) * rank
    base = params.get("base_dilation") or (1,) * rank
    config = [(low, high, d - 1) for (low, high), d in zip(params["padding"], base, strict=True)]
    whole = padded(x, np.asarray(fill).astype(x.dtype), config)
    for place in itertools.product(*(range(n) for n in params["window_dimensions"])):
        starts = [p * d for p, d in zip(place, dilation, strict=True)]
        yield whole[
            tuple(
                slice(a, a + (n - 1) * s + 1, s)
                for a, n, s in zip(starts, shape, params["window_strides"], strict=True)
            )
        ]


@rule("reduce_window_sum")
def _window_sum(op: Op, x: Number) -> Number:
    def total(a: Array) -> Array:
        return sum(_views(a, 0, op.params, op.shapes[0]), np.zeros(op.shapes[0], a.dtype))

    return summed(op, x, total, math.prod(op.params["window_dimensions"]))


def _add_extremum(name: str, function: Any) -> None:
    @rule(f"reduce_window_{name}")
    def apply(op: Op, x: Number) -> Number:
        fill = _identity(name, op.dtype)
        value = function.reduce(list(_views(x.value, fill, op.params, op.shapes[0])))
        if x.error is None:
            return Number(value)
        error = np.maximum.reduce(list(_views(x.error, 0.0, op.params, op.shapes[0])))
        return Number(value, error) if op.is_float else unknown(value, error > 0)


_add_extremum("max", np.maximum)
_add_extremum("min", np.minimum)


@rule("select_and_scatter_add")
def _select_and_scatter_add(op: Op, source: Number, x: Number) -> Number:
    largest = str(op.params["select_prim"]) == "ge"
    shape = source.value.shape
    places = np.arange(x.value.size).reshape(x.value.shape)
    sign = 1.0 if largest else -1.0
    values = np.stack(list(_views(sign * x.value, -np.inf, op.params, shape)))
    where = np.stack(list(_views(places, -1, op.params, shape)))
    errors = np.stack(list(_views(x.errors, 0.0, op.params, shape)))
    chosen = values.argmax(0)[None]
    best = np.take_along_axis(values - errors, chosen, 0)
    doubtful = bool(((values + errors >= best).sum(0) > 1).any()) and any_error(x)
    target = np.take_along_axis(where, chosen, 0)[0].ravel()
    total, error = np.zeros(x.value.size), np.zeros(x.value.size)
    size = np.zeros(x.value.size)
    inside = target >= 0  # a window of nothing but padding selects no element
    for sums, terms in ((total, source.value), (error, source.errors), (size, np.abs(source.value))):
        np.add.at(sums, target[inside], terms.ravel()[inside])
    eps = 2.0**-20 if op.dtype == "float32" else 2.0**-48 if op.dtype == "float64" else 2.0**-5
    found = rounded_number(total.reshape(x.value.shape), (error + eps * size).reshape(x.value.shape), op.dtype)
    return unknown(found.value, doubtful, found.error)


@rule("select_and_gather_add")
def _select_and_gather_add(op: Op, tangent: Number, x: Number) -> Number:
    largest = str(op.params["select_prim"]) == "ge"
    sign = 1.0 if largest else -1.0
    values = np.stack(list(_views(sign * x.value, -np.inf, op.params, op.shapes[0])))
    chosen = values.argmax(0)[None]

    def take(a: Array) -> Array:
        return np.take_along_axis(np.stack(list(_views(a, 0, op.params, op.shapes[0]))), chosen, 0)[0]

    return unknown(take(tangent.value), any_error(x), take(tangent.errors))
