# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of different lengths without padding: `shlo_disc.ragged`.

A `Ragged` has the rows' values, one row behind the other, and where each row begins. It is a pytree, so that functions
of it are traced by `jax.jit`, `jax.grad`, `shlo_disc.jit` and `shlo_disc.compile`; with symbolic sizes, as in
`Ragged(("t, 8", "float32"), ("r + 1", "int32"))`, one program serves any lengths and any number of rows. All functions
here but the conversions are plain functions of `jax.numpy`, and run on any backend of JAX.

Below, t is the number of values, r that of rows. Values behind the last row belong to no row: reductions leave them
out, and functions that return a `Ragged` make them 0 or leave them as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from shlo_disc.errors import ShapeError


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths. values: (t, ...); offsets: (r + 1,) integers that do not descend, from 0 to at most t.

    Row i has the values from `offsets[i]` up to `offsets[i + 1]`.
    """

    values: Any
    offsets: Any

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.offsets.shape[0] - 1

    @property
    def lengths(self) -> jax.Array:
        """The number of values of each row, (r,)."""
        return self.offsets[1:] - self.offsets[:-1]

    def with_values(self, values: Any) -> Ragged:
        """Other values, (t, ...), in the same rows."""
        return Ragged(values, self.offsets)


def from_lengths(values: Any, lengths: Any) -> Ragged:
    """The rows of `lengths`, (r,) integers, in `values`, (t, ...)."""
    ends = jnp.cumsum(lengths)
    return Ragged(values, jnp.concatenate([jnp.zeros(1, ends.dtype), ends]))


# ---- indices --------------------------------------------------------------------------------------------------------


def row_ids(ragged: Ragged) -> jax.Array:
    """The row of each value, (t,) of the offsets' dtype; r for values that are in no row."""
    total = ragged.values.shape[0]
    begins = jnp.zeros(total, ragged.offsets.dtype).at[ragged.offsets[1:]].add(1, mode="drop")
    return jnp.cumsum(begins, dtype=ragged.offsets.dtype)


def positions(ragged: Ragged) -> jax.Array:
    """The place of each value in its row, (t,) of the offsets' dtype, from 0."""
    indices = jnp.arange(ragged.values.shape[0], dtype=ragged.offsets.dtype)
    return indices - jnp.take(ragged.offsets, row_ids(ragged), mode="clip")


def is_in_row(ragged: Ragged) -> jax.Array:
    """The values that a row has, (t,) booleans."""
    return jnp.arange(ragged.values.shape[0], dtype=ragged.offsets.dtype) < ragged.offsets[-1]


# ---- padding --------------------------------------------------------------------------------------------------------


def mask(ragged: Ragged, width: Any) -> jax.Array:
    """The elements of rows padded to `width` that are values, (r, width) booleans."""
    return jnp.arange(width, dtype=ragged.offsets.dtype)[None, :] < ragged.lengths[:, None]


def pad(ragged: Ragged, width: Any, fill: Any = 0) -> jax.Array:
    """The rows side by side, (r, width, ...), with `fill` behind their values. Longer rows are cut."""
    columns = jnp.arange(width, dtype=ragged.offsets.dtype)
    places = ragged.offsets[:-1, None] + columns[None, :]
    is_value = mask(ragged, width).reshape(ragged.rows, width, *[1] * (ragged.values.ndim - 1))
    found = jnp.take(ragged.values, places, axis=0, mode="clip")
    return jnp.where(is_value, found, jnp.asarray(fill, ragged.values.dtype))


def unpad(padded: Any, lengths: Any, total: Any) -> Ragged:
    """The first values of the rows of `padded`, (r, width, ...), as many as `lengths`, (r,), says.

    total: t, a size that all lengths fit in; what is left of it is 0. A length is at most the width.
    """
    offsets = from_lengths(padded, jnp.clip(lengths, 0, padded.shape[1])).offsets
    shape = Ragged(jnp.zeros(total, jnp.int8), offsets)
    found = padded[jnp.clip(row_ids(shape), 0, padded.shape[0] - 1), jnp.clip(positions(shape), 0, padded.shape[1] - 1)]
    return Ragged(_where(shape, found, 0), offsets)


# ---- reductions -----------------------------------------------------------------------------------------------------


def sum(ragged: Ragged) -> jax.Array:
    """The sum of each row, (r, ...); 0 for an empty one."""
    return _reduce(jax.ops.segment_sum, ragged)


def mean(ragged: Ragged) -> jax.Array:
    """The mean of each row, (r, ...); NaN for an empty one, as `jnp.mean`."""
    return sum(ragged) / _of_rows(ragged.lengths, ragged).astype(ragged.values.dtype)


def max(ragged: Ragged) -> jax.Array:
    """The largest value of each row, (r, ...); the least one of the dtype for an empty one."""
    return _reduce(jax.ops.segment_max, ragged)


def min(ragged: Ragged) -> jax.Array:
    """The least value of each row, (r, ...); the largest one of the dtype for an empty one."""
    return _reduce(jax.ops.segment_min, ragged)


def norm(ragged: Ragged) -> jax.Array:
    """The root of the sum of squares of each row, (r, ...)."""
    return jnp.sqrt(sum(ragged.with_values(jnp.square(ragged.values))))


def logsumexp(ragged: Ragged) -> jax.Array:
    """The logarithm of the sum of exponentials of each row, (r, ...); -inf for an empty one."""
    largest = jax.lax.stop_gradient(max(ragged))
    largest = jnp.where(jnp.isfinite(largest), largest, 0)
    shifted = ragged.values - take_rows(ragged, largest)
    return jnp.log(sum(ragged.with_values(jnp.exp(_where(ragged, shifted, 0))))) + largest


def softmax(ragged: Ragged) -> Ragged:
    """The softmax of each row, of the same shape."""
    largest = take_rows(ragged, jax.lax.stop_gradient(max(ragged)))
    weights = jnp.exp(_where(ragged, ragged.values - largest, 0))
    total = take_rows(ragged, sum(ragged.with_values(weights)))
    return ragged.with_values(_where(ragged, weights / _where(ragged, total, 1), 0))


def take_rows(ragged: Ragged, table: Any) -> jax.Array:
    """The entry of each value's row in `table`, (r, ...): (t, ...). Values in no row have the last one."""
    return jnp.take(table, row_ids(ragged), axis=0, mode="clip")


# ---- functions of rows ----------------------------------------------------------------------------------------------


def map(function: Callable[..., Any], ragged: Ragged, width: Any) -> Ragged:
    """`function(row, length)` of each row, padded to `width` with zeros: it returns a row of as many elements.

    Longer rows are cut to `width`, and so are theirs in the result. Rows are worked on together, by `jax.vmap`.
    """
    lengths = jnp.minimum(ragged.lengths, width)
    return unpad(jax.vmap(function)(pad(ragged, width), lengths), lengths, ragged.values.shape[0])


def dot(ragged: Ragged, matrices: Any) -> Ragged:
    """The values of each row, (t, k), times the row's matrix of `matrices`, (r, k, n): (t, n).

    By `jax.lax.ragged_dot`, for which JAX needs r as a number. One matrix for all rows is `ragged.values @ matrix`.
    """
    return ragged.with_values(jax.lax.ragged_dot(ragged.values, matrices, ragged.lengths))


# ---- conversions ----------------------------------------------------------------------------------------------------


def from_rows(rows: Sequence[Any], dtype: Any = None) -> Ragged:
    """Arrays, or lists of numbers, whose sizes agree but for the first. Not for tracing.

    Raises ShapeError where they do not, or where there are none.
    """
    arrays = [np.asarray(row, dtype) for row in rows]
    if not arrays:
        raise ShapeError("from_rows needs a row, from which it has the shape and the dtype of the values")
    filled = [array for array in arrays if array.shape[0]] or arrays[:1]
    if any(array.shape[1:] != filled[0].shape[1:] for array in filled):
        raise ShapeError(f"rows have values of the shapes {sorted({array.shape[1:] for array in filled})}")
    offsets = np.cumsum([0, *(len(array) for array in arrays)]).astype(np.int32)
    return Ragged(np.concatenate(filled), offsets)


def to_rows(ragged: Ragged) -> list[np.ndarray]:
    """The rows as arrays of NumPy. Not for tracing."""
    values, offsets = np.asarray(ragged.values), np.asarray(ragged.offsets)
    return [values[first:past] for first, past in zip(offsets[:-1], offsets[1:], strict=True)]


def from_nested(tensor: Any) -> Ragged:
    """A nested tensor of PyTorch with the jagged layout, whose rows lie without gaps. Raises ShapeError for others."""
    if not getattr(tensor, "is_nested", False) or str(tensor.layout) != "torch.jagged" or tensor.lengths() is not None:
        raise ShapeError("from_nested takes a nested tensor with layout=torch.jagged, whose rows lie without gaps")
    return Ragged(tensor.values().detach().numpy(), tensor.offsets().numpy())


def to_nested(ragged: Ragged) -> Any:
    """A nested tensor of PyTorch with the jagged layout; its values are a copy."""
    import torch

    values, offsets = (torch.from_numpy(np.array(part)) for part in (ragged.values, ragged.offsets))
    return torch.nested.nested_tensor_from_jagged(values, offsets.to(torch.int64))


def from_awkward(array: Any) -> Ragged:
    """An array of Awkward Array whose rows are lists of numbers, or of regular arrays of these."""
    import awkward

    lengths = awkward.to_numpy(awkward.num(array, axis=1))
    offsets = np.cumsum([0, *lengths]).astype(np.int32)
    return Ragged(awkward.to_numpy(awkward.flatten(array, axis=1)), offsets)


def to_awkward(ragged: Ragged) -> Any:
    """An array of Awkward Array."""
    import awkward

    values, offsets = np.asarray(ragged.values), np.asarray(ragged.offsets)
    return awkward.unflatten(values[: offsets[-1]], np.diff(offsets))


def from_keyed(features: Any) -> dict[str, Ragged]:
    """The features of a `KeyedJaggedTensor` of TorchRec, or of what has its `keys`, `values` and `lengths`, by key.

    `lengths` has the lengths of the first key's rows, then those of the second's, and so on.
    """
    keys, values, lengths = (part() if callable(part) else part for part in _parts_of(features))
    values, lengths = np.asarray(values), np.asarray(lengths).reshape(len(keys), -1)
    ends = np.cumsum(lengths.sum(axis=1))
    found = {}
    for key, past, own in zip(keys, ends, lengths, strict=True):
        found[key] = Ragged(values[past - own.sum() : past], np.cumsum([0, *own]).astype(np.int32))
    return found


def _parts_of(features: Any) -> tuple[Any, Any, Any]:
    names = ("keys", "values", "lengths")
    keys, values, lengths = (
        features[name] if isinstance(features, Mapping) else getattr(features, name) for name in names
    )
    return keys, values, lengths


def _reduce(reduction: Callable[..., jax.Array], ragged: Ragged) -> jax.Array:
    return reduction(ragged.values, row_ids(ragged), num_segments=ragged.rows, indices_are_sorted=True)


def _of_rows(numbers: jax.Array, ragged: Ragged) -> jax.Array:
    """Numbers of rows, (r,), with as many axes as reduced values."""
    return numbers.reshape(numbers.shape[0], *[1] * (ragged.values.ndim - 1))


def _where(ragged: Ragged, values: jax.Array, otherwise: float) -> jax.Array:
    """The values that rows have, and a number elsewhere."""
    own = is_in_row(Ragged(values, ragged.offsets)).reshape(-1, *[1] * (values.ndim - 1))
    return jnp.where(own, values, jnp.asarray(otherwise, values.dtype))


__all__ = [
    "Ragged", "dot", "from_awkward", "from_keyed", "from_lengths", "from_nested", "from_rows", "is_in_row", "logsumexp",
    "map", "mask", "max", "mean", "min", "norm", "pad", "positions", "row_ids", "softmax", "sum", "take_rows",
    "to_awkward", "to_nested", "to_rows", "unpad",
]  # fmt: skip
