# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy functions whose results have data-dependent sizes: `nonzero`, `unique`, boolean indexing; and functions that
`jax.numpy` does not trace for symbolic sizes: `searchsorted`, `interp`.

You can call them with arrays; each function is compiled once for each dtype and rank. You can also call them in
functions that `shlo_disc.jit` or `shlo_disc.compile` traces; the result then has a symbolic size, and you can pass it
to any function of `jax.numpy`. Gradients flow through the selected elements. Under plain `jax.jit` or `jax.vmap` those
of data-dependent sizes raise ProgramError.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from shlo_disc.errors import ShapeError
from shlo_disc.importer.requested_sizes import traced_flatnonzero

_Function = TypeVar("_Function", bound=Callable[..., Any])

_compiled: dict[Any, Any] = {}
_compiling = threading.RLock()


Shapes = Callable[..., tuple[Sequence[str], ...]]
"""The symbolic shape of each array, from the options and the arrays' ranks."""


def _own_sizes(options: dict[str, Any], rank: int) -> tuple[Sequence[str], ...]:
    return ([f"d{axis}" for axis in range(rank)],)


def _also_on_arrays(shapes: Shapes = _own_sizes) -> Callable[[_Function], _Function]:
    """Positional arguments are arrays; when none of them is traced, the function is compiled for every size and run."""

    def decorated(function: _Function) -> _Function:
        @functools.wraps(function)
        def call(*arrays: Any, **options: Any) -> Any:
            if any(isinstance(array, jax.core.Tracer) for array in arrays):
                return function(*map(jnp.asarray, arrays), **options)
            arrays = tuple(array if hasattr(array, "dtype") else np.asarray(array) for array in arrays)
            return _executable(function, shapes, arrays, options)(*arrays)

        return call  # type: ignore[return-value]

    return decorated


def _executable(function: Callable[..., Any], shapes: Shapes, arrays: tuple[Any, ...], options: dict[str, Any]) -> Any:
    from shlo_disc.api.compile import compile

    static = any(0 in a.shape for a in arrays)  # variables of JAX start at 1
    sizes = [a.shape for a in arrays] if static else shapes(options, *(len(a.shape) for a in arrays))
    specs = [(tuple(shape), str(a.dtype)) for shape, a in zip(sizes, arrays, strict=True)]
    # The indices of NumPy are 64 bits wide.
    wide = jax.config.read("jax_enable_x64") or not any(isinstance(a, jax.Array) for a in arrays)
    key = (function, *specs, *sorted(options.items()), wide)
    with _compiling:
        if key not in _compiled:
            with jax.enable_x64(wide):
                _compiled[key] = compile(functools.partial(function, **options), args=specs)
        return _compiled[key]


def _mask_first(options: dict[str, Any], mask_rank: int, rank: int) -> tuple[Sequence[str], ...]:
    (sizes,) = _own_sizes(options, rank)
    return (sizes[:mask_rank], sizes)


def _compress_shapes(options: dict[str, Any], condition_rank: int, rank: int) -> tuple[Sequence[str], ...]:
    (sizes,) = _own_sizes(options, rank)
    axis = options.get("axis")
    return ("*".join(sizes) if axis is None else sizes[axis],), sizes


def _mask_last(options: dict[str, Any], rank: int, mask_rank: int) -> tuple[Sequence[str], ...]:
    mask, sizes = _mask_first(options, mask_rank, rank)
    return (sizes, mask)


@_also_on_arrays()
def flatnonzero(a: Any) -> Any:
    """The positions of the nonzero elements in the flattened `a`, as in `numpy.flatnonzero`."""
    return traced_flatnonzero(jax.lax.stop_gradient(a).reshape(-1) != 0)


@_also_on_arrays()
def nonzero(a: Any) -> tuple[Any, ...]:
    """The indices of the nonzero elements, one array for each axis, as in `numpy.nonzero`."""
    if a.ndim == 0:
        raise ShapeError("nonzero of a scalar: use a.reshape(1)")
    return _unravel(flatnonzero(a), a.shape)


@_also_on_arrays()
def where(condition: Any) -> tuple[Any, ...]:
    """`nonzero(condition)`, like `numpy.where` with one argument; for three arguments use `jax.numpy.where`."""
    return nonzero(condition)


@_also_on_arrays()
def argwhere(a: Any) -> Any:
    """The indices of the nonzero elements, one row for each, as in `numpy.argwhere`."""
    if a.ndim == 0:
        return jnp.zeros((flatnonzero(a).shape[0], 0), jax.dtypes.canonicalize_dtype(np.int64))
    return jnp.stack(_unravel(flatnonzero(a), a.shape), axis=-1)


@_also_on_arrays(_compress_shapes)
def compress(condition: Any, a: Any, *, axis: int | None = None) -> Any:
    """The slices of `a` along `axis` (of the flattened `a` by default) for which the vector `condition` is true."""
    a = a.reshape(-1) if axis is None else a
    axis = axis or 0
    if condition.ndim != 1 or condition.shape[0] != a.shape[axis]:
        raise ShapeError(f"the condition has shape {condition.shape}; axis {axis} of the array has {a.shape[axis]}")
    return _take(a, flatnonzero(condition), axis)


@_also_on_arrays(_mask_first)
def extract(condition: Any, a: Any) -> Any:
    """The elements of `a` where `condition`, of the same shape, is true, as in `numpy.extract`."""
    return boolean_index(a, condition)


@_also_on_arrays(_mask_last)
def boolean_index(a: Any, mask: Any) -> Any:
    """`a[mask]`: the slices of `a` for which `mask`, over its leading axes, is true."""
    if mask.ndim == 0 or mask.ndim > a.ndim or mask.shape != a.shape[: mask.ndim]:
        raise ShapeError(f"the mask has shape {mask.shape}, which is not how {a.shape} begins")
    return _take(a.reshape(math.prod(mask.shape), *a.shape[mask.ndim :]), flatnonzero(mask))


@_also_on_arrays()
def unique(a: Any, *, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """The sorted distinct elements of `a`, as in `numpy.unique`: NaNs count as equal.

    `return_index` adds the position of the first occurrence of each in the flattened `a`, `return_inverse` the index of
    each element of `a` among the distinct elements, and `return_counts` the number of occurrences of each.
    """
    shape = a.shape
    a = a.reshape(-1)
    order = jnp.argsort(a, stable=True) if return_index or return_inverse else None
    ordered = jnp.sort(a) if order is None else _take(a, order)
    length = a.shape[0]
    position = jnp.arange(length)
    previous = _take(ordered, jnp.maximum(position - 1, 0))
    is_new = ordered != previous
    if jnp.issubdtype(a.dtype, jnp.inexact):
        is_new &= ~(jnp.isnan(ordered) & jnp.isnan(previous))
    first = flatnonzero(is_new | (position == 0))
    results = [_take(ordered, first)]
    if return_index:
        results.append(_take(order, first))
    if return_inverse:
        number = jnp.cumsum(is_new & (position > 0), dtype=first.dtype)
        results.append(jnp.zeros(length, first.dtype).at[order].set(number).reshape(shape))
    if return_counts:
        number = jnp.arange(first.shape[0])
        following = _take(first, number + 1)
        results.append(jnp.where(number + 1 < first.shape[0], following, length) - first)
    return results[0] if len(results) == 1 else tuple(results)


def _sorted_shapes(options: dict[str, Any], *ranks: int) -> tuple[Sequence[str], ...]:
    return (["n"], [f"d{axis}" for axis in range(ranks[1])])


@_also_on_arrays(_sorted_shapes)
def searchsorted(a: Any, v: Any, *, side: str = "left") -> Any:
    """The positions in the sorted vector `a` at which each element of `v` can be put, as in `numpy.searchsorted`.

    NaNs count as the largest numbers. By binary search. Raises ShapeError where `a` is no vector, and ValueError for
    another `side` than "left" or "right".
    """
    if side not in ("left", "right"):
        raise ValueError(f"side is 'left' or 'right', not {side!r}")
    if a.ndim != 1:
        raise ShapeError(f"searchsorted takes a sorted vector, not an array of rank {a.ndim}")
    return _positions(a, v, side)


def _positions(a: Any, v: Any, side: str) -> Any:
    kind = jnp.promote_types(a.dtype, v.dtype)
    if jnp.issubdtype(kind, jnp.floating) and any(jnp.issubdtype(x.dtype, jnp.integer) for x in (a, v)):
        kind = jnp.promote_types(kind, jax.dtypes.canonicalize_dtype(float))  # which has more integers
    a, v = (jax.lax.stop_gradient(x).astype(kind) for x in (a, v))
    index = jax.dtypes.canonicalize_dtype(int)
    count = jnp.asarray(a.shape[0], index)

    def halved(_: Any, bounds: Any) -> Any:
        low, high = bounds
        middle = (low + high) // 2
        here = _take(a, middle)
        is_before = _is_less(here, v) if side == "left" else ~_is_less(v, here)
        return jnp.where(is_before & (low < high), middle + 1, low), jnp.where(is_before, high, middle)

    bits = 8 * index.itemsize - jax.lax.clz(count)
    return jax.lax.fori_loop(0, bits, halved, (jnp.zeros(v.shape, index), jnp.broadcast_to(count, v.shape)))[0]


def _is_less(x: Any, y: Any) -> Any:
    """The order of sorted arrays: NaNs come last."""
    return (x < y) | (jnp.isnan(y) & ~jnp.isnan(x)) if jnp.issubdtype(x.dtype, jnp.floating) else x < y


def _interp_shapes(options: dict[str, Any], *ranks: int) -> tuple[Sequence[str], ...]:
    return ([f"d{axis}" for axis in range(ranks[0])], ["n"], ["n"])


@_also_on_arrays(_interp_shapes)
def interp(x: Any, xp: Any, fp: Any, *, left: float | None = None, right: float | None = None) -> Any:
    """The piecewise linear function through the points (`xp`, `fp`) at `x`, as in `numpy.interp`.

    xp: increasing. left, right: the values outside of the points; by default those of the first and last one. Floats
    keep their dtype, as in jax.numpy. Raises ShapeError where `xp` and `fp` are no vectors of one length, and TypeError
    for complex numbers.
    """
    if xp.ndim != 1 or xp.shape != fp.shape:
        raise ShapeError(
            f"interp takes points as two vectors of one length, not of the shapes {xp.shape} and {fp.shape}"
        )
    kind = jnp.promote_types(jnp.promote_types(x.dtype, xp.dtype), fp.dtype)
    if jnp.issubdtype(kind, jnp.complexfloating):
        raise TypeError(f"interp takes real numbers, not {kind}")
    kind = kind if jnp.issubdtype(kind, jnp.floating) else jax.dtypes.canonicalize_dtype(float)
    x, xp, fp = x.astype(kind), xp.astype(kind), fp.astype(kind)
    last = jnp.asarray(xp.shape[0]) - 1
    behind = jnp.minimum(jnp.maximum(_positions(xp, x, "right"), 1), last)
    before = jnp.maximum(behind - 1, 0)
    x0, x1, y0, y1 = xp[before], xp[behind], fp[before], fp[behind]
    width = jnp.where(x1 == x0, 1, x1 - x0)
    inside = jnp.where(x1 == x0, y0, y0 + (x - x0) / width * (y1 - y0))
    inside = jnp.where(x < xp[0], fp[0] if left is None else left, inside)
    return jnp.where(x > xp[last], fp[last] if right is None else right, inside)


def _take(a: Any, positions: Any, axis: int = 0) -> Any:
    """The slices of `a` at positions inside of it, of which an array without elements has none."""
    if a.shape[axis] == 0:
        axis %= a.ndim
        return jnp.zeros((*a.shape[:axis], *positions.shape, *a.shape[axis + 1 :]), a.dtype)
    return jnp.take(a, positions, axis=axis, mode="clip")


def _unravel(flat: Any, shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """The index along each axis of positions in the flattened array."""
    indices = []
    for size in reversed(shape[1:]):
        size = jnp.maximum(jnp.asarray(size, flat.dtype), 1)
        indices.append(flat % size)
        flat = flat // size
    return (flat, *reversed(indices))


def __dir__() -> list[str]:
    """The public names: what completion offers."""
    return __all__


__all__ = [
    "argwhere", "boolean_index", "compress", "extract", "flatnonzero", "interp", "nonzero", "searchsorted", "unique",
    "where",
]  # fmt: skip
