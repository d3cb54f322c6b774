# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gathers, scatters, windows at places that are data, and updates of parts of an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from tests.fuzz.near.pieces.movement import check_axis, other_axes
from tests.fuzz.near.program import Params, Rejected, Type, piece


def _needs_index(*arrays: Any) -> None:
    if any(a.dtype != jnp.int32 for a in arrays):
        raise Rejected("indices are i32")


def _suggest_take(b: Any) -> int:
    x = b.some(lambda t: len(t.shape) >= 1)
    axis = b.axis(x)
    places = [i for i, t in b.types.items() if t.dtype == jnp.int32 and len(t.shape) == 1]
    at = b.any(places) if places and b.flip(0.3) else b.arg(b.dim(), dtype="int32", fill=f"index:{b.shape(x)[axis]}")
    return int(b.add("take", x, at, axis=axis, mode=b.any(["clip", "fill"])))


@piece(
    "take", lambda p, t: other_axes(p, t) + [{**p, "mode": "fill" if p["mode"] == "clip" else "clip"}], _suggest_take
)
def _take(arrays: list[Any], params: Params) -> Any:
    x, at = arrays
    check_axis(x, params["axis"])
    _needs_index(at)
    return jnp.take(x, at, axis=params["axis"], mode=params["mode"])


def _other_places(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    lists = ([0], [1, 0], [0, 0, 1], [-1], [2, 1])
    return other_axes(params, types) + [{**params, "at": i} for i in lists if i != params["at"]]


def _suggest_take_list(b: Any) -> int:
    x = b.some(lambda t: len(t.shape) >= 1)
    return int(b.add("take_list", x, axis=b.axis(x), at=b.any([[0], [1, 0], [0, 0, 1]])))


@piece("take_list", _other_places, _suggest_take_list)
def _take_list(arrays: list[Any], params: Params) -> Any:
    check_axis(arrays[0], params["axis"])
    return jnp.take(arrays[0], jnp.array(params["at"], jnp.int32), axis=params["axis"], mode="clip")


@piece("take_along", other_axes)
def _take_along(arrays: list[Any], params: Params) -> Any:
    x, at = arrays
    check_axis(x, params["axis"])
    _needs_index(at)
    return jnp.take_along_axis(x, at, params["axis"], mode="clip")


def _scalar(b: Any, limit: Any) -> int:
    found = [i for i, t in b.types.items() if t.dtype == jnp.int32 and not t.shape]
    return int(b.any(found)) if found and b.flip(0.5) else int(b.arg(dtype="int32", fill=f"wild:{limit}"))


def _suggest_dynamic_index(b: Any) -> int:
    x = b.some(lambda t: len(t.shape) >= 1)
    axis = b.axis(x)
    return int(b.add("dynamic_index", x, _scalar(b, b.shape(x)[axis]), axis=axis))


@piece("dynamic_index", other_axes, _suggest_dynamic_index)
def _dynamic_index(arrays: list[Any], params: Params) -> Any:
    x, at = arrays
    check_axis(x, params["axis"])
    _needs_index(at)
    return jax.lax.dynamic_index_in_dim(x, at, params["axis"], keepdims=params.get("keep", False))


def _other_sizes(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    return other_axes(params, types) + [{**params, "size": n} for n in (1, 2, 4) if n != params["size"]]


def _suggest_dynamic_slice(b: Any) -> int:
    x = b.some(lambda t: any(isinstance(d, int) and d > 1 for d in t.shape))
    axis = b.any([i for i, d in enumerate(b.shape(x)) if isinstance(d, int) and d > 1])
    size = b.rng.randrange(1, b.shape(x)[axis])
    return int(b.add("dynamic_slice", x, _scalar(b, b.shape(x)[axis]), axis=axis, size=size))


@piece("dynamic_slice", _other_sizes, _suggest_dynamic_slice)
def _dynamic_slice(arrays: list[Any], params: Params) -> Any:
    x, at = arrays
    check_axis(x, params["axis"])
    _needs_index(at)
    return jax.lax.dynamic_slice_in_dim(x, at, params["size"], params["axis"])


def _suggest_update(b: Any) -> int:
    x = b.some(lambda t: len(t.shape) >= 1)
    axis = b.axis(x)
    whole = b.types[x]
    rest = tuple(d for i, d in enumerate(whole.shape) if i != axis)
    fitting = [i for i, t in b.types.items() if t.shape == rest and t.dtype == whole.dtype]
    if not fitting:
        raise Rejected("nothing to write")
    part = b.add("expand", b.any(fitting), axis=axis)
    return int(b.add("dynamic_update", x, part, _scalar(b, whole.shape[axis]), axis=axis))


@piece("dynamic_update", other_axes, _suggest_update)
def _dynamic_update(arrays: list[Any], params: Params) -> Any:
    x, part, at = arrays
    check_axis(x, params["axis"])
    _needs_index(at)
    if part.ndim == x.ndim - 1:
        return jax.lax.dynamic_update_index_in_dim(x, part, at, params["axis"])
    return jax.lax.dynamic_update_slice_in_dim(x, part, at, params["axis"])


@piece("put", other_axes)
def _put(arrays: list[Any], params: Params) -> Any:
    """A window at a place that is not negative, such as a counter."""
    x, part, at = arrays
    check_axis(x, params["axis"])
    _needs_index(at)
    starts = [at if axis == params["axis"] else jnp.zeros((), at.dtype) for axis in range(x.ndim)]
    return jax.lax.dynamic_update_slice(x, part, starts, allow_negative_indices=False)


_WRITES = ("set", "add", "max", "min", "mul")


def _write(x: Any, place: Any, value: Any, how: str, mode: str | None = None) -> Any:
    return getattr(x.at[place], how)(value, **({} if mode is None else {"mode": mode}))


def _other_writes(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    found = other_axes(params, types) + [{**params, "how": h} for h in _WRITES if h != params["how"]]
    if "mode" in params:
        found += [{**params, "mode": m} for m in ("drop", "clip", "promise_in_bounds") if m != params["mode"]][:1]
    if "cut" in params:
        found += [
            {**params, "cut": c} for c in ([0, 1, 1], [1, None, 1], [0, None, 2], [0, None, 1]) if c != params["cut"]
        ]
    return found


def _suggest_scatter(b: Any) -> int:
    x = b.some(lambda t: len(t.shape) >= 1 and t.dtype != bool)
    axis, whole = b.axis(x), b.types[x]
    rest = [str(d) for d in whole.shape]
    rest[axis] = str(b.dim())
    at = b.arg(rest[axis], dtype="int32", fill=f"index:{whole.shape[axis]}")
    name = "float" if whole.dtype.name == b.dtype else whole.dtype.name
    return int(b.add("scatter", x, at, b.arg(*rest, dtype=name), axis=axis, how=b.any(["add", "add", "max", "set"]),
                     mode="drop"))  # fmt: skip


@piece("scatter", _other_writes, _suggest_scatter)
def _scatter(arrays: list[Any], params: Params) -> Any:
    """Rows of operand 2 written into operand 0 where operand 1 says."""
    x, at, value = arrays
    check_axis(x, params["axis"])
    _needs_index(at)
    if value.dtype != x.dtype or params["mode"] == "promise_in_bounds":
        raise Rejected("not this scatter")
    return _write(x, (slice(None),) * params["axis"] + (at,), value, params["how"], params["mode"])


def _suggest_write(b: Any) -> int:
    x = b.some(lambda t: len(t.shape) >= 1 and t.dtype != bool)
    axis, whole = b.axis(x), b.types[x]
    rest = tuple(d for i, d in enumerate(whole.shape) if i != axis)
    fitting = [i for i, t in b.types.items() if t.shape == rest and t.dtype == whole.dtype]
    return int(b.add("write", x, b.any(fitting), axis=axis, at=b.any([0, -1, 1]), how=b.any(_WRITES)))


def _other_rows(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    found = other_axes(params, types) + [{**params, "how": h} for h in _WRITES if h != params["how"]]
    return found + [{**params, "at": i} for i in (0, -1, 1) if i != params["at"]]


@piece("write", _other_rows, _suggest_write)
def _write_row(arrays: list[Any], params: Params) -> Any:
    """One row of operand 0 replaced by, or combined with, operand 1."""
    x, value = arrays
    check_axis(x, params["axis"])
    if value.dtype != x.dtype:
        raise Rejected("operands of two types")
    return _write(x, (slice(None),) * params["axis"] + (params["at"],), value, params["how"])


@piece("write_cut", _other_writes)
def _write_cut(arrays: list[Any], params: Params) -> Any:
    """Some rows of operand 0 combined with the same rows of operand 1."""
    x, y = arrays
    check_axis(x, params["axis"])
    if y.dtype != x.dtype or x.shape != y.shape:
        raise Rejected("operands of two types")
    place = (slice(None),) * params["axis"] + (slice(*params["cut"]),)
    return _write(x, place, y[place], params["how"])


@piece("one_hot", lambda p, t: [{**p, "n": n} for n in (1, 4, 8) if n != p["n"]])
def _one_hot(arrays: list[Any], params: Params) -> Any:
    _needs_index(arrays[0])
    return jax.nn.one_hot(arrays[0], params["n"], dtype=params["float"])
