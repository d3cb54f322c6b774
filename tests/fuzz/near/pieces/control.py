# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops, branches, maps, gradients: pieces whose parameters hold programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from tests.fuzz.near.program import Params, Program, Rejected, Type, dims_of, piece


def _body(params: Params, name: str = "body") -> Any:
    program: Program = params[name]
    return lambda *arrays: program.run_as(params["float"], arrays)


def _other_scan(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    return [{**params, "reverse": not params["reverse"]}]


@piece("scan", _other_scan)
def _scan(arrays: list[Any], params: Params) -> Any:
    """Operands: what is carried, what is scanned, what is the same in every iteration; the body takes them so."""
    carry, xs = params["carry"], params["xs"]
    start, stacks, rest = arrays[:carry], arrays[carry : carry + xs], arrays[carry + xs :]
    body = _body(params)

    def step(carried: Any, row: Any) -> Any:
        made = body(*carried, *row, *rest)
        return tuple(made[:carry]), tuple(made[carry:])

    length = None if stacks else dims_of([str(params["length"])])[0]
    last, ys = jax.lax.scan(step, tuple(start), tuple(stacks), length=length, reverse=params["reverse"])
    return (*last, *ys)


def _other_fori(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    found = [{**params, "start": n} for n in (0, 1) if n != params["start"]]
    return found + [{**params, "step": n} for n in (1, 2) if n != params.get("step", 1)]


@piece("fori", _other_fori)
def _fori(arrays: list[Any], params: Params) -> Any:
    """From `start` to `trip`, a number or an expression of sizes; the body takes the counter, then all operands."""
    carry = params["carry"]
    start, rest = arrays[:carry], arrays[carry:]
    body, step = _body(params), params.get("step", 1)
    trip = dims_of([str(params["trip"])])[0]
    count = trip - params["start"] if step == 1 else (trip - params["start"] + 1) // 2

    def iteration(i: Any, carried: Any) -> Any:
        place = i + params["start"] if step == 1 else i * 2 + params["start"]
        return tuple(body(jnp.asarray(place, jnp.int32), *carried, *rest)[:carry])

    if step == 1:
        return jax.lax.fori_loop(params["start"], trip, lambda i, c: tuple(body(i, *c, *rest)), tuple(start))
    return jax.lax.fori_loop(0, count, iteration, tuple(start))


@piece("while")
def _while(arrays: list[Any], params: Params) -> Any:
    """A loop that counts in a carried i32, up to operand 0, an i32 scalar."""
    limit, *rest = arrays
    if limit.ndim or limit.dtype != jnp.int32:
        raise Rejected("a limit is an i32 scalar")
    carry = params["carry"]
    start, fixed = rest[:carry], rest[carry:]
    body = _body(params)

    def iteration(state: Any) -> Any:
        i, *carried = state
        return (i + 1, *body(i, *carried, *fixed))

    _, *last = jax.lax.while_loop(lambda state: state[0] < limit, iteration, (jnp.int32(0), *start))
    return tuple(last)


_WALKS: dict[str, tuple[Any, ...]] = {
    "start": (0, 1), "step": (1, 2), "less": ("lt", "le"), "bound": (0, -1), "extra": (0, 1), "until": (0.0, 1.5),
    "place": ("same", "next", "back", "half"),
}  # fmt: skip


def _other_walk(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    return [{**params, k: v} for k, values in _WALKS.items() for v in values if v != params[k]]


@piece("walk", _other_walk)
def _walk(arrays: list[Any], params: Params) -> Any:
    """A scan as a loop that counts from `start` by `step` up to the length and `bound`, and reads rows at `place`.

    What the body gives for each step is written to rows there, of which there are `extra` more. With `until`, the loop
    ends once a number is larger that is carried first.
    """
    carry, xs = params["carry"], params["xs"]
    start, stacks, rest = arrays[:carry], arrays[carry : carry + xs], arrays[carry + xs :]
    if params["reverse"]:
        raise Rejected("a walk has a place of its own")
    body, length = _body(params), stacks[0].shape[0]
    last = jnp.asarray(length + params["bound"]).astype(jnp.int32)
    made = jax.eval_shape(body, *start, *(x[0] for x in stacks), *rest)[carry:]
    outs = [jnp.full((length + params["extra"], *y.shape), 0.5, y.dtype) for y in made]
    places = {
        "same": lambda i: i, "next": lambda i: i + 1, "half": lambda i: i // 2,
        "back": lambda i: jnp.asarray(length - 1).astype(jnp.int32) - i,
    }  # fmt: skip

    def goes_on(state: Any) -> Any:
        in_range = state[0] <= last if params["less"] == "le" else state[0] < last
        return in_range & (jnp.max(state[1]) < params["until"]) if params["until"] else in_range

    def iteration(state: Any) -> Any:
        i, carried, written = state[0], state[1 : carry + 1], state[carry + 1 :]
        at = places[params["place"]](i)
        rows = [jax.lax.dynamic_index_in_dim(x, at, 0, keepdims=False, allow_negative_indices=False) for x in stacks]
        new = body(*carried, *rows, *rest)
        zero = jnp.zeros((), at.dtype)
        following = (
            jax.lax.dynamic_update_slice(out, y[None], (at, *[zero] * y.ndim), allow_negative_indices=False)
            for out, y in zip(written, new[carry:], strict=True)
        )
        return (i + params["step"], *new[:carry], *following)

    return tuple(jax.lax.while_loop(goes_on, iteration, (jnp.int32(params["start"]), *start, *outs))[1:])


@piece("cond")
def _cond(arrays: list[Any], params: Params) -> Any:
    """Operand 0 is a scalar: a boolean, or an i32 among the branches "then", "else" and "other"."""
    which, *rest = arrays
    if which.ndim:
        raise Rejected("a choice is a scalar")
    if which.dtype == bool:
        return jax.lax.cond(which, _body(params, "then"), _body(params, "else"), *rest)
    names = [n for n in ("then", "else", "other") if n in params]
    return jax.lax.switch(which, [_body(params, n) for n in names], *rest)


def _other_axes(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    found = []
    for position, type_ in enumerate(types):
        for axis in (None, *range(len(type_.shape))):
            axes = [*params["axes"][:position], axis, *params["axes"][position + 1 :]]
            if axes != params["axes"]:
                found.append({**params, "axes": axes})
    return found + [{**params, "out": 1 - params["out"]}]


@piece("vmap", _other_axes)
def _vmap(arrays: list[Any], params: Params) -> Any:
    return jax.vmap(_body(params), in_axes=tuple(params["axes"]), out_axes=params["out"])(*arrays)


@piece("call", lambda p, t: [{**p, "how": h} for h in ("jit", "remat") if h != p["how"]])
def _call(arrays: list[Any], params: Params) -> Any:
    """The body in a function of its own."""
    wrap = jax.jit if params["how"] == "jit" else jax.checkpoint
    return wrap(_body(params))(*arrays)


LOSSES = ("sum", "mean", "square", "weighted")


def _other_loss(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    return [{**params, "loss": h} for h in LOSSES if h != params["loss"]]


@piece("grad", _other_loss)
def _grad(arrays: list[Any], params: Params) -> Any:
    """The gradients of a scalar made of all results of floats, with respect to the operands `wrt`; and the scalar."""
    body = _body(params)

    def loss(*operands: Any) -> Any:
        made = [r for r in body(*operands) if jnp.issubdtype(r.dtype, jnp.floating)]
        if not made:
            raise Rejected("nothing to differentiate")
        return sum(_scalar(r, params["loss"], n) for n, r in enumerate(made))

    value, grads = jax.value_and_grad(loss, argnums=tuple(params["wrt"]))(*arrays)
    return (value, *grads) if params.get("value") else tuple(grads)


def _scalar(r: Any, how: str, number: int) -> Any:
    r = r.astype(jnp.float32) if r.dtype.itemsize == 2 else r
    factor = 1.0 if number == 0 else 0.5
    if how == "mean":
        return factor * jnp.mean(r)
    if how == "square":
        return factor * jnp.sum(r * r) * 0.5
    if how == "weighted" and r.ndim:
        return factor * jnp.sum(r * jnp.cos(jax.lax.broadcasted_iota(r.dtype, r.shape, r.ndim - 1)))
    return factor * jnp.sum(r)
