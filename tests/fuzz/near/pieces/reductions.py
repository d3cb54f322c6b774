# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions, what is made of rows with them, and cumulative pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from tests.fuzz.near.pieces.elementwise import is_float
from tests.fuzz.near.program import Params, Rejected, Type, piece

REDUCE: dict[str, Callable[..., Any]] = {
    "sum": jnp.sum, "mean": jnp.mean, "max": jnp.max, "min": jnp.min, "var": jnp.var,
    "std1": lambda x, axis, keepdims: jnp.sqrt(1 + jnp.var(x, axis=axis, keepdims=keepdims)),
    "lse": lambda x, axis, keepdims: jax.nn.logsumexp(x, axis=axis, keepdims=keepdims),
    "sumsq": lambda x, axis, keepdims: jnp.sum(x * x, axis=axis, keepdims=keepdims),
    "norm1": lambda x, axis, keepdims: jnp.sqrt(1 + jnp.sum(x * x, axis=axis, keepdims=keepdims)),
    "abs_sum": lambda x, axis, keepdims: jnp.sum(jnp.abs(x), axis=axis, keepdims=keepdims),
    "range": lambda x, axis, keepdims: jnp.max(x, axis, keepdims=keepdims) - jnp.min(x, axis, keepdims=keepdims),
    "prod": lambda x, axis, keepdims: jnp.prod(jnp.clip(x, -1, 1), axis=axis, keepdims=keepdims),
    "count": lambda x, axis, keepdims: jnp.sum(x > 0, axis=axis, keepdims=keepdims),
}  # fmt: skip
PLACES: dict[str, Callable[..., Any]] = {"argmax": jnp.argmax, "argmin": jnp.argmin}
LOGICAL: dict[str, Callable[..., Any]] = {"any": jnp.any, "all": jnp.all}
INTEGER = ("sum", "max", "min", "sumsq", "abs_sum", "count")


def _axes(rank: int) -> list[Any]:
    single: list[Any] = list(range(rank))
    if rank == 2:
        single.append([0, 1])
    if rank > 2:
        single += [[0, 1], [rank - 2, rank - 1], [0, rank - 1]]
    return single


def _other_reduce(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    found = [{**params, "axis": a} for a in _axes(len(types[0].shape)) if a != params["axis"]]
    found.append({**params, "keep": not params["keep"]})
    table = REDUCE if params["f"] in REDUCE else PLACES if params["f"] in PLACES else LOGICAL
    return 2 * found + [{**params, "f": f} for f in table if f != params["f"]]


def _suggest_reduce(b: Any) -> int:
    x = b.some(lambda t: len(t.shape) >= 1)
    table = list(REDUCE) * 4 + list(PLACES) if b.is_float(x) else list(INTEGER) + list(PLACES)
    if b.types[x].dtype == bool:
        table = list(LOGICAL)
    return int(b.add("reduce", x, f=b.any(table), axis=b.any(_axes(b.rank(x))), keep=b.flip(0.3)))


@piece("reduce", _other_reduce, _suggest_reduce)
def _reduce(arrays: list[Any], params: Params) -> Any:
    (x,) = arrays
    axis = tuple(params["axis"]) if isinstance(params["axis"], list) else params["axis"]
    if axis is not None and any(not 0 <= a < x.ndim for a in (axis if isinstance(axis, tuple) else (axis,))):
        raise Rejected("no such axis")
    if params["f"] in PLACES:
        if isinstance(axis, tuple):
            raise Rejected("the place of an extremum is along one axis")
        return PLACES[params["f"]](x, axis=axis, keepdims=params["keep"])
    if (x.dtype == bool) != (params["f"] in LOGICAL) or not (is_float(x.dtype) or params["f"] in (*INTEGER, *LOGICAL)):
        raise Rejected(f"{params['f']} of {x.dtype}")
    return {**REDUCE, **LOGICAL}[params["f"]](x, axis=axis, keepdims=params["keep"])


def _scaled(x: Any, axis: int, statistic: Callable[..., Any]) -> Any:
    return x / (1 + statistic(jnp.abs(x), axis=axis, keepdims=True))


def _standardized(x: Any, axis: int) -> Any:
    centred = x - jnp.mean(x, axis, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred * centred, axis, keepdims=True) + 0.1)


ALONG: dict[str, Callable[[Any, int], Any]] = {
    "softmax": lambda x, a: jax.nn.softmax(x, axis=a), "log_softmax": lambda x, a: jax.nn.log_softmax(x, axis=a),
    "standardize": _standardized,
    "normalize": lambda x, a: x * jax.lax.rsqrt(1 + jnp.sum(x * x, a, keepdims=True)),
    "center": lambda x, a: x - jnp.mean(x, a, keepdims=True),
    "shift_max": lambda x, a: x - jnp.max(x, a, keepdims=True),
    "scale_max": lambda x, a: _scaled(x, a, jnp.max), "scale_sum": lambda x, a: _scaled(x, a, jnp.sum),
    "shift_lse": lambda x, a: x - jax.nn.logsumexp(x, axis=a, keepdims=True),
    "is_max": lambda x, a: (x == jnp.max(x, a, keepdims=True)).astype(x.dtype),
    "exp_max": lambda x, a: jnp.exp(x - jnp.max(x, a, keepdims=True)),
    "above_mean": lambda x, a: jnp.where(x > jnp.mean(x, a, keepdims=True), x, 0),
}  # fmt: skip


def _other_along(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    found = [{**params, "axis": a} for a in range(len(types[0].shape)) if a != params["axis"]]
    return 3 * found + [{**params, "f": f} for f in ALONG if f != params["f"]]


def _suggest_along(b: Any) -> int:
    x = b.floats(least=1)
    return int(b.add("along", x, f=b.any(list(ALONG)), axis=b.axis(x)))


@piece("along", _other_along, _suggest_along)
def _along(arrays: list[Any], params: Params) -> Any:
    (x,) = arrays
    if not is_float(x.dtype) or params["axis"] >= x.ndim:
        raise Rejected("not floats along that axis")
    return ALONG[params["f"]](x, params["axis"])


CUMULATIVE: dict[str, Callable[..., Any]] = {
    "sum": jax.lax.cumsum, "max": jax.lax.cummax, "min": jax.lax.cummin, "lse": jax.lax.cumlogsumexp,
    "prod": lambda x, axis, reverse: jax.lax.cumprod(jnp.clip(x, -1, 1), axis=axis, reverse=reverse),
    "associative": lambda x, axis, reverse: jax.lax.associative_scan(jnp.add, x, axis=axis, reverse=reverse),
}  # fmt: skip


def _other_cumulative(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    found = [{**params, "axis": a} for a in range(len(types[0].shape)) if a != params["axis"]]
    found.append({**params, "reverse": not params["reverse"]})
    return found + [{**params, "f": f} for f in CUMULATIVE if f not in (params["f"], "associative")]


def _suggest_cumulative(b: Any) -> int:
    x = b.some(lambda t: len(t.shape) >= 1 and t.dtype != bool)
    names = [f for f in CUMULATIVE if f != "associative"] if b.is_float(x) else ["sum", "max", "min"]
    return int(b.add("cumulative", x, f=b.any(names), axis=b.axis(x), reverse=b.flip(0.3)))


@piece("cumulative", _other_cumulative, _suggest_cumulative)
def _cumulative(arrays: list[Any], params: Params) -> Any:
    (x,) = arrays
    if params["axis"] >= x.ndim or x.dtype == bool or (params["f"] == "lse" and not is_float(x.dtype)):
        raise Rejected("not along that axis")
    return CUMULATIVE[params["f"]](x, axis=params["axis"], reverse=params["reverse"])


# ---- sorts ----------------------------------------------------------------------------------------------------------


def _other_sort(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    found = [{**params, "axis": a} for a in range(len(types[0].shape)) if a != params["axis"]]
    found += [{**params, "descending": not params["descending"]}]
    return found + [{**params, "take": k} for k in (None, 1, 2, 3, -2) if k != params["take"]]


def _suggest_sort(b: Any) -> int:
    x = b.some(lambda t: len(t.shape) >= 1 and t.dtype != bool)
    return int(
        b.add("sort", x, axis=b.axis(x), descending=b.flip(0.4), take=b.any([None, None, 1, 2]), places=b.flip(0.3))
    )


@piece("sort", _other_sort, _suggest_sort)
def _sort(arrays: list[Any], params: Params) -> Any:
    """Sorted along an axis, or the places of what is sorted; the first or last few of them."""
    (x,) = arrays
    axis = params["axis"]
    if axis >= x.ndim or x.dtype == bool:
        raise Rejected("not along that axis")
    function = jnp.argsort if params["places"] else jnp.sort
    made = function(x, axis=axis, descending=params["descending"])
    take = params["take"]
    if take is None:
        return made
    return jax.lax.slice_in_dim(made, 0, take, axis=axis) if take > 0 else _last(made, axis, -take)


def _last(x: Any, axis: int, count: int) -> Any:
    return jax.lax.slice_in_dim(x, x.shape[axis] - count, x.shape[axis], axis=axis)


def _other_top_k(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    return [{**params, "k": k} for k in (1, 2, 3, 5) if k != params["k"]]


def _suggest_top_k(b: Any) -> tuple[int, ...]:
    x = b.some(lambda t: len(t.shape) >= 1 and t.dtype != bool)
    return tuple(b.add("top_k", x, count=2, k=b.any([1, 2, 3])))


@piece("top_k", _other_top_k, _suggest_top_k)
def _top_k(arrays: list[Any], params: Params) -> Any:
    return tuple(jax.lax.top_k(arrays[0], params["k"]))


def _suggest_sort_by(b: Any) -> tuple[int, ...]:
    x = b.some(lambda t: len(t.shape) >= 1 and t.dtype != bool)
    y = b.some(lambda t: t.shape == b.types[x].shape and t.dtype != bool)
    return tuple(b.add("sort_by", x, y, count=2, axis=b.axis(x)))


@piece("sort_by", lambda p, t: [{"axis": a} for a in range(len(t[0].shape)) if a != p["axis"]], _suggest_sort_by)
def _sort_by(arrays: list[Any], params: Params) -> Any:
    return tuple(jax.lax.sort(tuple(arrays), dimension=params["axis"], num_keys=1, is_stable=True))
