# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Primitives that move data and know at once where to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.fuzz.near.reference.numbers import EPSILON, Array, Number, Op, any_error, moved, rule, unknown


@rule("broadcast_in_dim")
def _broadcast(op: Op, x: Number, *_: Number) -> Number:
    axes, shape = op.params["broadcast_dimensions"], op.shapes[0]

    def apply(a: Array) -> Array:
        inner = [1] * len(shape)
        for size, axis in zip(a.shape, axes, strict=True):
            inner[axis] = size
        return np.broadcast_to(a.reshape(inner), shape)

    return moved(apply, x)


@rule("reshape")
def _reshape(op: Op, x: Number, *_: Number) -> Number:
    order = op.params["dimensions"]
    return moved(lambda a: (a if order is None else a.transpose(order)).reshape(op.shapes[0]), x)


@rule("squeeze", "expand_dims")
def _squeeze(op: Op, x: Number) -> Number:
    return moved(lambda a: a.reshape(op.shapes[0]), x)


@rule("transpose")
def _transpose(op: Op, x: Number) -> Number:
    return moved(lambda a: a.transpose(op.params["permutation"]), x)


@rule("rev")
def _rev(op: Op, x: Number) -> Number:
    return moved(lambda a: np.flip(a, op.params["dimensions"]), x)


@rule("slice")
def _slice(op: Op, x: Number) -> Number:
    starts, limits = op.params["start_indices"], op.params["limit_indices"]
    strides = op.params["strides"] or [1] * len(starts)
    places = tuple(slice(a, b, c) for a, b, c in zip(starts, limits, strides, strict=True))
    return moved(lambda a: a[places], x)


@rule("concatenate")
def _concatenate(op: Op, *operands: Number) -> Number:
    return moved(lambda *a: np.concatenate(a, op.params["dimension"]), *operands)


@rule("stack")
def _stack(op: Op, *operands: Number) -> Number:
    return moved(lambda *a: np.stack(a, op.params.get("axis", 0)), *operands)


@rule("unstack")
def _unstack(op: Op, x: Number) -> list[Number]:
    axis = op.params.get("axis", 0)
    return [moved(lambda a, i=i: np.take(a, i, axis), x) for i in range(len(op.shapes))]


@rule("tile")
def _tile(op: Op, x: Number) -> Number:
    return moved(lambda a: np.tile(a, op.params["reps"]), x)


@rule("split")
def _split(op: Op, x: Number) -> list[Number]:
    axis, ends = op.params["axis"], np.cumsum(op.params["sizes"])
    return [
        moved(lambda a, lo=int(end - size), hi=int(end): np.take(a, np.arange(lo, hi), axis), x)
        for end, size in zip(ends, op.params["sizes"], strict=True)
    ]


@rule("pad")
def _pad(op: Op, x: Number, fill: Number) -> Number:
    return moved(lambda a, f: padded(a, f, op.params["padding_config"]), x, fill)


def padded(array: Array, fill: Array, config: Sequence[tuple[int, int, int]]) -> Array:
    """`array` with (low, high, interior) padding of each axis, negative amounts cut."""
    shape = [low + high + n + max(n - 1, 0) * inner for n, (low, high, inner) in zip(array.shape, config, strict=True)]
    result = np.full([max(s, 0) for s in shape], fill, array.dtype)
    source, target = [], []
    for size, length, (low, _, inner) in zip(array.shape, result.shape, config, strict=True):
        places = low + np.arange(size) * (inner + 1)
        inside = (places >= 0) & (places < length)
        source.append(np.flatnonzero(inside))
        target.append(places[inside])
    result[np.ix_(*target)] = array[np.ix_(*source)]
    return result


@rule("iota")
def _iota(op: Op, *_: Number) -> Number:
    shape, axis = op.shapes[0], op.params["dimension"]
    sizes = [1] * len(shape)
    sizes[axis] = shape[axis]
    values = np.arange(shape[axis]).reshape(sizes)
    return Number(np.broadcast_to(values, shape).astype(np.float64 if op.dtype in EPSILON else op.dtype))


@rule("empty", "empty2")
def _empty(op: Op) -> Number:
    """Uninitialised elements: nothing may depend on them."""
    zeros = np.zeros(op.shapes[0], np.float64 if op.dtype in EPSILON else op.dtype)
    return unknown(zeros, np.ones(zeros.shape, bool))


@rule("dynamic_slice")
def _dynamic_slice(op: Op, x: Number, *starts: Number) -> Number:
    sizes = op.params["slice_sizes"]
    places = _places(x, starts, sizes)
    result = moved(lambda a: a[places], x)
    return unknown(result.value, any_error(*starts), result.error)


@rule("dynamic_update_slice")
def _dynamic_update_slice(op: Op, x: Number, update: Number, *starts: Number) -> Number:
    places = _places(x, starts, update.value.shape)

    def apply(a: Array, b: Array) -> Array:
        result = a.copy()
        result[places] = b
        return result

    result = moved(apply, x, update)
    return unknown(result.value, any_error(*starts), result.error)


def _places(x: Number, starts: Sequence[Number], sizes: Sequence[int]) -> tuple[slice, ...]:
    """A window of these sizes, moved to where it is inside."""
    found = []
    for start, size, whole in zip(starts, sizes, x.value.shape, strict=True):
        first = min(max(int(start.value), 0), whole - size)
        found.append(slice(first, first + size))
    return tuple(found)


__all__ = ["padded"]
