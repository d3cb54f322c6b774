# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gathers and scatters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.fuzz.near.reference.numbers import EPSILON, Array, Number, Op, any_error, rounded_number, rule, unknown


def _mode(op: Op) -> str:
    return str(op.params["mode"]).rsplit(".", 1)[-1]


def _starts(indices: Array, index_map: Sequence[int], batching: dict[int, Array], rank: int) -> list[Array]:
    """For each axis of the operand, where the windows start: arrays of the shape of the batch."""
    batch = indices.shape[:-1]
    starts = [np.zeros(batch, np.int64) for _ in range(rank)]
    for position, axis in enumerate(index_map):
        starts[axis] = indices[..., position].astype(np.int64)
    for axis, places in batching.items():
        starts[axis] = places
    return starts


def _batching(batch: Sequence[int], operand_axes: Sequence[int], index_axes: Sequence[int]) -> dict[int, Array]:
    found = {}
    for operand_axis, index_axis in zip(operand_axes, index_axes, strict=True):
        shape = [1] * len(batch)
        shape[index_axis] = batch[index_axis]
        found[operand_axis] = np.broadcast_to(np.arange(batch[index_axis]).reshape(shape), batch)
    return found


class _Windows:
    """The places of the windows' elements in the operand: for each axis an array [batch..., window...]."""

    def __init__(self, starts: Sequence[Array], sizes: Sequence[int], shape: Sequence[int], clamp: bool):
        limits = [n - size for n, size in zip(shape, sizes, strict=True)]
        self.inside = np.ones(starts[0].shape if starts else (), bool)
        for start, limit in zip(starts, limits, strict=True):
            self.inside = self.inside & (start >= 0) & (start <= limit)
        batch, rank = self.inside.ndim, len(sizes)
        self.places = []
        for axis, (start, size, limit) in enumerate(zip(starts, sizes, limits, strict=True)):
            first = np.clip(start, 0, max(limit, 0)) if clamp else np.where(self.inside, start, 0)
            window = np.arange(size).reshape([size if i == axis else 1 for i in range(rank)])
            self.places.append(first.reshape([*first.shape, *[1] * rank]) + window)
        self.batch = batch


@rule("gather")
def _gather(op: Op, x: Number, indices: Number) -> Number:
    numbers: Any = op.params["dimension_numbers"]
    sizes, rank = op.params["slice_sizes"], x.value.ndim
    batch = indices.value.shape[:-1]
    batching = _batching(batch, numbers.operand_batching_dims, numbers.start_indices_batching_dims)
    starts = _starts(indices.value, numbers.start_index_map, batching, rank)
    mode = _mode(op)
    windows = _Windows(starts, sizes, x.value.shape, clamp=mode != "FILL_OR_DROP")
    dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    offsets = list(numbers.offset_dims)
    others = [i for i in range(len(op.shapes[0])) if i not in offsets]

    def take(a: Array, fill: Any) -> Array:
        found = a[tuple(np.broadcast_arrays(*windows.places))] if rank else np.broadcast_to(a, batch)
        if mode == "FILL_OR_DROP":
            shape = [*windows.inside.shape, *[1] * rank]
            found = np.where(windows.inside.reshape(shape), found, fill)
        found = found.squeeze(tuple(len(batch) + i for i in dropped))
        return found.transpose(np.argsort([*others, *offsets]))

    fill = op.params.get("fill_value")
    if fill is None:
        fill = _fill(op.dtype)
    if any(n == 0 for n in x.value.shape):
        return Number(np.full(op.shapes[0], fill, x.value.dtype))
    value = take(x.value, np.asarray(fill).astype(x.value.dtype))
    error = None if x.error is None else take(x.error, 0.0)
    return unknown(value, any_error(indices), error)


def _fill(dtype: str) -> Any:
    if dtype in EPSILON:
        return np.nan
    if dtype == "bool":
        return True
    return np.iinfo(dtype).min if dtype.startswith("int") else np.iinfo(dtype).max


def _add_scatter(name: str) -> None:
    @rule(name)
    def apply(op: Op, x: Number, indices: Number, updates: Number) -> Number:
        numbers: Any = op.params["dimension_numbers"]
        rank, batch = x.value.ndim, indices.value.shape[:-1]
        window_axes = list(numbers.update_window_dims)
        missing = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
        kept = [i for i in range(rank) if i not in missing]
        sizes = [1] * rank
        for axis, position in zip(kept, window_axes, strict=True):
            sizes[axis] = updates.value.shape[position]
        batching = _batching(batch, numbers.operand_batching_dims, numbers.scatter_indices_batching_dims)
        starts = _starts(indices.value, numbers.scatter_dims_to_operand_dims, batching, rank)
        windows = _Windows(starts, sizes, x.value.shape, clamp=_mode(op) == "CLIP")
        others = [i for i in range(updates.value.ndim) if i not in window_axes]

        def spread(a: Array) -> Array:
            return a.transpose([*others, *window_axes]).reshape([*batch, *sizes])

        applied = np.broadcast_to(windows.inside.reshape([*windows.inside.shape, *[1] * rank]), [*batch, *sizes])
        if _mode(op) == "CLIP":
            applied = np.ones_like(applied)
        places = tuple(np.broadcast_to(p, [*batch, *sizes])[applied] for p in windows.places)
        result = _combine(name, op, x, places, spread(updates.value)[applied], spread(updates.errors)[applied])
        return unknown(result.value, any_error(indices), result.error)


def _combine(name: str, op: Op, x: Number, places: tuple[Array, ...], update: Array, errors: Array) -> Number:
    value, error = x.value.copy(), x.errors.copy()
    count = np.zeros(value.shape)
    np.add.at(count, places, 1)
    if name == "scatter":
        value[places], error[places] = update, errors
        if (count > 1).any():
            low, high = np.full(value.shape, np.inf), np.full(value.shape, -np.inf)
            np.minimum.at(low, places, update.astype(np.float64))
            np.maximum.at(high, places, update.astype(np.float64))
            error = np.where((count > 1) & (low != high), np.inf, error)
    elif name in ("scatter-add", "scatter-sub"):
        sizes = np.abs(value).astype(np.float64)
        np.add.at(value, places, update if name == "scatter-add" else -update)
        np.add.at(error, places, errors)
        np.add.at(sizes, places, np.abs(update))
        if op.is_float and not (_whole(x.value) and _whole(update) and (sizes < 2.0**24).all()):
            error = error + (count + 1) * EPSILON[op.dtype] * sizes * (count > 0)
    elif name == "scatter-mul":
        np.multiply.at(value, places, update)
        error = np.where(count > 0, (count + 1) * 8 * EPSILON.get(op.dtype, 0) * np.abs(value), error)
        if errors.any() or (op.is_float and x.errors.any()):
            error = np.where(count > 0, np.inf, error)
    else:
        (np.maximum if name == "scatter-max" else np.minimum).at(value, places, update)
        np.maximum.at(error, places, errors)
    if not op.is_float:
        return unknown(value, error > 0)
    return rounded_number(value, error, op.dtype) if error.any() else Number(value)


def _whole(a: Array) -> bool:
    return bool((a == np.round(a)).all())


for _name in ("scatter", "scatter-add", "scatter-mul", "scatter-min", "scatter-max", "scatter-sub"):
    _add_scatter(_name)
