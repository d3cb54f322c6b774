# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products and convolutions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from tests.fuzz.near.program import Params, Rejected, Type, piece, resolve_dtype


def _other_spec(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    """Another order of the result's axes, of an operand's axes, or of the operands."""
    spec = params["spec"]
    inputs, result = spec.split("->")
    left, right = inputs.split(",")
    found = [f"{inputs}->{''.join(p)}" for p in itertools.permutations(result)]
    found += [f"{''.join(p)},{right}->{result}" for p in itertools.permutations(left)]
    found += [f"{left},{''.join(p)}->{result}" for p in itertools.permutations(right)]
    found += [f"{inputs}->{result.replace(letter, '')}" for letter in result]
    return [{**params, "spec": s} for s in dict.fromkeys(found) if s != spec]


SPECS = ("mk,kn->mn", "mk,nk->mn", "km,kn->mn", "mk,kn->nm", "mk,k->m", "k,kn->n", "bmk,kn->bmn", "bmk,bkn->bmn",
         "bmk,bnk->bmn", "mk,mk->m", "m,n->mn", "bmk,bmn->bkn", "mk,lk->lm")  # fmt: skip


def _suggest_einsum(b: Any) -> int:
    for spec in b.rng.sample(SPECS, len(SPECS)):
        left, right = spec.split("->")[0].split(",")
        x = next((i for i in b.rng.sample(list(b.types), len(b.types)) if _may_be(b, i, left)), None)
        if x is None:
            continue
        known = dict(zip(left, b.shape(x), strict=True))
        fitting = [
            i for i in b.types
            if _may_be(b, i, right) and all(known.get(c, d) == d for c, d in zip(right, b.shape(i), strict=True))
        ]  # fmt: skip
        if fitting and b.flip(0.7):
            return int(b.add("scaled_einsum", x, b.rng.choice(fitting), spec=spec))
        dims = [str(known[c]) if c in known else b.dim() for c in right]
        return int(b.add("einsum", x, b.arg(*dims, fill="weight"), spec=spec))
    raise Rejected("nothing to multiply")


def _may_be(b: Any, value: int, letters: str) -> bool:
    return b.rank(value) == len(letters) and b.types[value].dtype.name == b.dtype


@piece("einsum", _other_spec, _suggest_einsum)
def _einsum(arrays: list[Any], params: Params) -> Any:
    """A product of two; `acc` is the type of its sums."""
    left, right = params["spec"].split("->")[0].split(",")
    if [a.ndim for a in arrays] != [len(left), len(right)] or arrays[0].dtype == bool or arrays[1].dtype == bool:
        raise Rejected("not of those ranks")
    if arrays[0].dtype != arrays[1].dtype:
        raise Rejected("operands of two types")
    acc = params.get("acc")
    return jnp.einsum(
        params["spec"], *arrays, preferred_element_type=None if acc is None else resolve_dtype(acc, params["float"])
    )


@piece("scaled_einsum", _other_spec)
def _scaled_einsum(arrays: list[Any], params: Params) -> Any:
    """A product over the root of the number of its terms, so that numbers stay small."""
    left, right = params["spec"].split("->")[0].split(",")
    inner = [c for c in left if c not in params["spec"].split("->")[1]]
    made = _einsum(arrays, params)
    count: Any = 1
    for letter in inner:
        count = count * arrays[0].shape[left.index(letter)]
    return (made / jnp.sqrt(1.0 + count).astype(made.dtype)).astype(made.dtype)


def _other_conv(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    found = [{**params, "stride": s} for s in ([1, 1], [2, 2], [2, 1]) if s != params["stride"]]
    found += [{**params, "dilation": s} for s in ([1, 1], [2, 2], [1, 2]) if s != params["dilation"]]
    found += [{**params, "input_dilation": s} for s in ([1, 1], [2, 1]) if s != params.get("input_dilation", [1, 1])]
    pads = ("SAME", "VALID", [[1, 0], [0, 2]], [[2, 2], [1, 1]], [[0, -1], [1, 1]])
    found += [{**params, "padding": p} for p in pads if p != params["padding"]]
    return found + [{**params, "reverse": not params.get("reverse", False)}]


@piece("conv", _other_conv)
def _conv(arrays: list[Any], params: Params) -> Any:
    """Images [b, h, w, c] with windows [h, w, c, f], or lines, or bodies: a third direction is as the first."""
    x, w = arrays
    rank = x.ndim - 2
    if x.ndim != w.ndim or rank not in (1, 2, 3):
        raise Rejected("not of one rank")
    padding = params["padding"]
    if not isinstance(padding, str):
        padding = [tuple(p) for p in _along(padding, rank)]
    if params.get("reverse"):
        w = w[(slice(None, None, -1),) * rank]
    letters = "DHW"[3 - rank :]
    layout = params.get("layout", ["N" + letters + "C", letters + "IO", "N" + letters + "C"])
    return jax.lax.conv_general_dilated(
        x, w, tuple(_along(params["stride"], rank)), padding, tuple(_along(params.get("input_dilation", [1, 1]), rank)),
        tuple(_along(params["dilation"], rank)), tuple(layout), params.get("groups", 1),
    )  # fmt: skip


@piece("conv_gradient", _other_conv)
def _conv_gradient(arrays: list[Any], params: Params) -> Any:
    """The gradient of half the sum of a convolution's squares: of its input, or of its windows."""
    result, backwards = jax.vjp(lambda x, w: _conv([x, w], params), *arrays)
    return backwards(result)[params["of"]]


def _along(two: Sequence[Any], rank: int) -> list[Any]:
    """The values given for two directions, for the first `rank` of them."""
    return [*two, *two][:rank]


@piece(
    "pool", lambda p, t: [{**p, "f": f} for f in ("max", "mean") if f != p["f"]] + [{**p, "stride": 3 - p["stride"]}]
)
def _pool(arrays: list[Any], params: Params) -> Any:
    """Windows of 2 x 2."""
    (x,) = arrays
    if x.ndim != 4:
        raise Rejected("not of rank 4")
    window, strides = (1, 2, 2, 1), (1, params["stride"], params["stride"], 1)
    if params["f"] == "max":
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, strides, params.get("padding", "VALID"))
    return jax.lax.reduce_window(x, 0.0, jax.lax.add, window, strides, params.get("padding", "VALID")) / 4
