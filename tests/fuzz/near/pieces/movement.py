# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pieces that move data."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from tests.fuzz.near.program import Params, Rejected, Type, piece


def other_axes(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    """The same along another axis."""
    return [{**params, "axis": a} for a in range(len(types[0].shape)) if a != params["axis"]]


def check_axis(x: Any, axis: int, extra: int = 0) -> None:
    """Raises Rejected when there is no such axis."""
    if not 0 <= axis < x.ndim + extra:
        raise Rejected("no such axis")


def _permutations(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    rank = len(types[0].shape)
    return [{"perm": list(p)} for p in itertools.permutations(range(rank)) if list(p) != params["perm"]][:24]


def _suggest_transpose(b: Any) -> int:
    x = b.some(lambda t: len(t.shape) >= 2)
    return int(b.add("transpose", x, perm=b.rng.sample(range(b.rank(x)), b.rank(x))))


@piece("transpose", _permutations, _suggest_transpose)
def _transpose(arrays: list[Any], params: Params) -> Any:
    return jnp.transpose(arrays[0], params["perm"])


def _suggest_merge(b: Any) -> int:
    x = b.some(lambda t: len(t.shape) >= 2)
    return int(b.add("merge", x, axis=b.rng.randrange(b.rank(x) - 1)))


@piece("merge", other_axes, _suggest_merge)
def _merge(arrays: list[Any], params: Params) -> Any:
    """Two neighbouring axes as one."""
    (x,), axis = arrays, params["axis"]
    check_axis(x, axis + 1)
    return jnp.reshape(x, (*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :]))


def _suggest_split(b: Any) -> int:
    x = b.some(lambda t: any(isinstance(d, int) and d > 1 for d in t.shape))
    axis = b.any([i for i, d in enumerate(b.shape(x)) if isinstance(d, int) and d > 1])
    size = b.shape(x)[axis]
    inner = b.any([k for k in range(1, size + 1) if size % k == 0])
    return int(b.add("split", x, axis=axis, inner=inner))


@piece("split", lambda p, t: [{**p, "inner": k} for k in (1, 2, 4) if k != p["inner"]], _suggest_split)
def _split(arrays: list[Any], params: Params) -> Any:
    """An axis as two, the inner one of a size."""
    (x,), axis, inner = arrays, params["axis"], params["inner"]
    check_axis(x, axis)
    if isinstance(x.shape[axis], int) and x.shape[axis] % inner:
        raise Rejected("split of what does not divide")
    return jnp.reshape(x, (*x.shape[:axis], x.shape[axis] // inner, inner, *x.shape[axis + 1 :]))


@piece("reshape_like")
def _reshape_like(arrays: list[Any], params: Params) -> Any:
    return jnp.reshape(arrays[0], arrays[1].shape)


@piece("flatten", None, lambda b: b.add("flatten", b.some(lambda t: len(t.shape) >= 2)))
def _flatten(arrays: list[Any], params: Params) -> Any:
    return jnp.reshape(arrays[0], (-1,))


def _suggest_expand(b: Any) -> int:
    x = b.some(lambda t: len(t.shape) <= 3)
    return int(b.add("expand", x, axis=b.rng.randrange(b.rank(x) + 1)))


@piece("expand", lambda p, t: [{"axis": a} for a in range(len(t[0].shape) + 1) if a != p["axis"]], _suggest_expand)
def _expand(arrays: list[Any], params: Params) -> Any:
    check_axis(arrays[0], params["axis"], 1)
    return jnp.expand_dims(arrays[0], params["axis"])


def _suggest_squeeze(b: Any) -> int:
    x = b.some(lambda t: 1 in t.shape)
    return int(b.add("squeeze", x, axis=b.any([i for i, d in enumerate(b.shape(x)) if d == 1])))


@piece("squeeze", other_axes, _suggest_squeeze)
def _squeeze(arrays: list[Any], params: Params) -> Any:
    return jnp.squeeze(arrays[0], params["axis"])


def _suggest_broadcast(b: Any) -> int:
    x = b.some(lambda t: len(t.shape) >= 1)
    part = b.shape(x)
    fitting = [
        (i, a) for i, t in b.types.items() if len(t.shape) == len(part) + 1
        for a in range(len(t.shape)) if t.shape[:a] + t.shape[a + 1 :] == part
    ]  # fmt: skip
    like, axis = b.any(fitting)
    return int(b.add("broadcast", x, like, axis=axis))


@piece("broadcast", other_axes, _suggest_broadcast)
def _broadcast(arrays: list[Any], params: Params) -> Any:
    """Operand 0, with one more axis, at the sizes of operand 1."""
    x, like = arrays
    check_axis(x, params["axis"], 1)
    return jnp.broadcast_to(jnp.expand_dims(x, params["axis"]), like.shape)


_CUTS = ((0, None, 1), (1, None, 1), (0, -1, 1), (0, 2, 1), (None, None, 2), (-2, None, 1), (1, -1, 1), (0, 4, 1),
         (4, None, 1), (None, None, -1), (1, None, 2))  # fmt: skip


def _other_cuts(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    found = [{**params, "cut": list(c)} for c in _CUTS if list(c) != params["cut"]]
    return found + 2 * other_axes(params, types)


def _suggest_slice(b: Any) -> int:
    x = b.some(lambda t: len(t.shape) >= 1)
    return int(b.add("slice", x, axis=b.axis(x), cut=list(b.any(_CUTS[1:]))))


@piece("slice", _other_cuts, _suggest_slice)
def _slice(arrays: list[Any], params: Params) -> Any:
    (x,), axis = arrays, params["axis"]
    check_axis(x, axis)
    return x[(slice(None),) * axis + (slice(*params["cut"]),)]


def _other_index(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    return 2 * other_axes(params, types) + [{**params, "at": i} for i in (0, -1, 1) if i != params["at"]]


def _suggest_index(b: Any) -> int:
    x = b.some(lambda t: len(t.shape) >= 2)
    return int(b.add("index", x, axis=b.axis(x), at=b.any([0, -1])))


@piece("index", _other_index, _suggest_index)
def _index(arrays: list[Any], params: Params) -> Any:
    (x,), axis = arrays, params["axis"]
    check_axis(x, axis)
    return x[(slice(None),) * axis + (params["at"],)]


def _suggest_concat(b: Any) -> int:
    x = b.some(lambda t: len(t.shape) >= 1)
    same = b.types[x]
    axis = b.axis(x)

    def fits(t: Type) -> bool:
        others = [d for i, d in enumerate(t.shape) if i != axis]
        return t.dtype == same.dtype and len(t.shape) == len(same.shape) and others == [
            d for i, d in enumerate(same.shape) if i != axis
        ]  # fmt: skip

    more = [b.some(fits, late=0.3) for _ in range(b.any([1, 1, 2]))]
    return int(b.add("concat", x, *more, axis=axis))


@piece("concat", other_axes, _suggest_concat)
def _concat(arrays: list[Any], params: Params) -> Any:
    check_axis(arrays[0], params["axis"])
    if len({a.dtype for a in arrays}) > 1:
        raise Rejected("operands of two types")
    return jnp.concatenate(arrays, params["axis"])


def _suggest_stack(b: Any) -> int:
    x = b.some(lambda t: len(t.shape) <= 2)
    y = b.some(lambda t: (t.shape, t.dtype) == (b.types[x].shape, b.types[x].dtype), late=0.3)
    return int(b.add("stack", x, y, axis=b.rng.randrange(b.rank(x) + 1)))


@piece("stack", lambda p, t: [{"axis": a} for a in range(len(t[0].shape) + 1) if a != p["axis"]], _suggest_stack)
def _stack(arrays: list[Any], params: Params) -> Any:
    check_axis(arrays[0], params["axis"], 1)
    return jnp.stack(arrays, params["axis"])


_PADS = ((1, 0, 0), (0, 1, 0), (2, 3, 0), (1, 1, 1), (-1, 1, 0), (0, 0, 1), (-1, -1, 0))


def _other_pads(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    found = [{**params, "pad": list(p)} for p in _PADS if list(p) != params["pad"]]
    return found + other_axes(params, types) + [{**params, "value": v} for v in (0, 1, -2) if v != params["value"]]


def _suggest_pad(b: Any) -> int:
    x = b.some(lambda t: len(t.shape) >= 1 and t.dtype != bool)
    return int(b.add("pad", x, axis=b.axis(x), pad=list(b.any(_PADS)), value=b.any([0, 0, 1])))


@piece("pad", _other_pads, _suggest_pad)
def _pad(arrays: list[Any], params: Params) -> Any:
    (x,), axis = arrays, params["axis"]
    check_axis(x, axis)
    config = [(0, 0, 0)] * x.ndim
    config[axis] = tuple(params["pad"])
    return jax.lax.pad(x, jnp.asarray(params["value"], x.dtype), config)


def _other_shifts(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    return other_axes(params, types) + [{**params, "by": n} for n in (1, -1, 2, 0) if n != params["by"]]


def _suggest_roll(b: Any) -> int:
    x = b.some(lambda t: len(t.shape) >= 1)
    return int(b.add("roll", x, axis=b.axis(x), by=b.any([1, -1, 2])))


@piece("roll", _other_shifts, _suggest_roll)
def _roll(arrays: list[Any], params: Params) -> Any:
    check_axis(arrays[0], params["axis"])
    return jnp.roll(arrays[0], params["by"], params["axis"])


def _suggest_flip(b: Any) -> int:
    x = b.some(lambda t: len(t.shape) >= 1)
    return int(b.add("flip", x, axis=b.axis(x)))


@piece("flip", other_axes, _suggest_flip)
def _flip(arrays: list[Any], params: Params) -> Any:
    check_axis(arrays[0], params["axis"])
    return jnp.flip(arrays[0], params["axis"])


@piece("tile", lambda p, t: other_axes(p, t) + [{**p, "each": not p["each"]}],
       lambda b: b.add("tile", x := b.some(lambda t: len(t.shape) >= 1), axis=b.axis(x), each=b.flip()))  # fmt: skip
def _tile(arrays: list[Any], params: Params) -> Any:
    """Twice along an axis, the whole or each element."""
    (x,), axis = arrays, params["axis"]
    check_axis(x, axis)
    copies = jnp.stack([x, x], axis + 1 if params["each"] else axis)
    return jnp.reshape(copies, (*x.shape[:axis], 2 * x.shape[axis], *x.shape[axis + 1 :]))


def _suggest_halves(b: Any) -> tuple[int, ...]:
    x = b.some(lambda t: any(isinstance(d, int) and d % 2 == 0 and d for d in t.shape))
    axis = b.any([i for i, d in enumerate(b.shape(x)) if isinstance(d, int) and d % 2 == 0 and d])
    return tuple(b.add("halves", x, count=2, axis=axis))


@piece("halves", other_axes, _suggest_halves)
def _halves(arrays: list[Any], params: Params) -> Any:
    """Both halves of a constant size."""
    (x,), axis = arrays, params["axis"]
    check_axis(x, axis)
    if not isinstance(x.shape[axis], int) or x.shape[axis] % 2:
        raise Rejected("no halves")
    return tuple(jnp.split(x, 2, axis))


@piece("diagonal")
def _diagonal(arrays: list[Any], params: Params) -> Any:
    return jnp.diagonal(arrays[0])
