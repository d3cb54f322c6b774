# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that move data: broadcast, reshape, transpose, slices, concatenate, pad, reverse; bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

import shlo_disc
from tests.run.op_check import DTYPES, Sizes, Spec, check, dtype_of

PAIRS = [(1, 1), (1, 2), (2, 1), (3, 15), (2, 16), (5, 17), (1, 31), (7, 32), (2, 33), (16, 16), (33, 97), (3, 300),
         (300, 3)]  # fmt: skip
SIZES = [{"m": m, "n": n} for m, n in PAIRS]

ELEMENTS = ("float32", "bfloat16", "float64", "int8", "uint16", "int32", "bool")
"""One dtype of every width in memory, and those that are held in another form in registers."""

Function = Callable[..., Any]


def group(*functions: Function) -> Function:
    """One program with the results of all functions."""
    return lambda *args: tuple(f(*args) for f in functions)


# ---- one matrix in --------------------------------------------------------------------------------------------------


def broadcasts(x: jax.Array) -> tuple[jax.Array, ...]:
    m, n = x.shape
    return (
        lax.broadcast_in_dim(x, (3, m, n), (1, 2)),
        lax.broadcast_in_dim(x, (m, 3, n), (0, 2)),
        lax.broadcast_in_dim(x, (m, n, 2), (0, 1)),
        lax.broadcast_in_dim(x, (m, 1, n, 1), (0, 2)),
        lax.broadcast_in_dim(x[:1], (m, n), (0, 1)),
        lax.broadcast_in_dim(x[:, :1], (m, n), (0, 1)),
        lax.broadcast_in_dim(x[0], (n, m), (0,)),
        lax.broadcast_in_dim(x[0, 0], (m, n), ()),
        jnp.broadcast_to(x[:, None, :1], (m, n, n)),
    )


def reshapes(x: jax.Array) -> tuple[jax.Array, ...]:
    m, n = x.shape
    both = jnp.concatenate([x, x], axis=1)
    return (
        x.reshape(-1),
        x.reshape(n, m),
        x.reshape(m, 1, n),
        both.reshape(m, 2, n),
        both.reshape(m, n, 2),
        both.reshape(2 * m, n),
        both.reshape(2, m, n).transpose(1, 2, 0),
        both.reshape(m * 2, 1, n, 1),
        x.T.reshape(m, n),
        jnp.transpose(x.reshape(n, m)).reshape(m * n),
    )


def transposes(x: jax.Array) -> tuple[jax.Array, ...]:
    m, n = x.shape
    cube = jnp.stack([x, x[::-1], x], axis=1)
    return (
        x.T,
        *(jnp.transpose(cube, p) for p in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))),
        jnp.transpose(cube.reshape(m, 1, 3, n, 1), (3, 1, 0, 4, 2)),
    )


def reverses(x: jax.Array) -> tuple[jax.Array, ...]:
    return lax.rev(x, (0,)), lax.rev(x, (1,)), lax.rev(x, (0, 1)), lax.rev(x, ())


def concatenates(x: jax.Array) -> tuple[jax.Array, ...]:
    return (
        jnp.concatenate([x, x[::-1]], axis=0),
        jnp.concatenate([x, x[:, ::-1]], axis=1),
        jnp.concatenate([x, x[:1], x, x[:1]], axis=0),
        jnp.concatenate([x[:, :1], x, x[:, :1], x], axis=1),
        jnp.concatenate([x.reshape(-1), x[0], x[:, 0]]),
        jnp.stack([x, x, x], axis=2),
        jnp.concatenate([x], axis=0),
    )


def pads(x: jax.Array) -> tuple[jax.Array, ...]:
    value = x[0, 0]
    configurations = [
        [(1, 0, 0), (0, 2, 0)],
        [(0, 3, 0), (5, 0, 0)],
        [(0, 0, 1), (0, 0, 2)],
        [(2, 1, 3), (1, 4, 1)],
        [(-1, 1, 0), (1, -1, 0)],
        [(1, -1, 1), (-1, 2, 2)],
        [(0, 0, 0), (0, 0, 0)],
    ]
    return tuple(lax.pad(x, value, c) for c in configurations)


def slices(x: jax.Array) -> tuple[jax.Array, ...]:
    m, n = x.shape
    return x[:1], x[:, :1], x[::2], x[:, ::3], x[m - 1 :, n - 1 :], x[::-1, ::2], x[:, n // 2 :], x[m // 2 : m]


FAMILIES = [broadcasts, reshapes, transposes, reverses, concatenates, pads, slices]


@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_matrix(family: Function, dtype: str) -> None:
    sizes = SIZES if dtype == "float32" else SIZES[::3]
    check(family, [("m, n", dtype)], sizes)


EMPTY = [((0, 2, 2), (0, 4)), ((2, 0, 4, 2, 2), (2, 0, 4, 4)), ((0, 6), (2, 0, 3)), ((2, 3, 0), (6, 0))]


@pytest.mark.parametrize(("source", "result"), EMPTY)
def test_reshape_without_elements(source: tuple[int, ...], result: tuple[int, ...]) -> None:
    """Among others, so that the reshape is computed in a kernel."""

    def function(x: Any) -> Any:
        return jnp.stack([x.reshape(result), x[..., ::-1].reshape(result)], axis=-1)

    x = np.zeros(source, np.float32)
    assert shlo_disc.compile(jax.jit(function), args=(x,))(x).shape == (*result, 2)


# ---- starts that are data -------------------------------------------------------------------------------------------


def starts(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    """Some inside, some far outside on either side."""
    rng = np.random.default_rng([seed, 11])
    if dtype_of(dtype).kind == "i" and shape == ():
        return np.array(rng.choice([-(2**31), -5, -1, 0, 1, 2, 7, 30, 2**31 - 1]), dtype)
    return rng.integers(0, 100, shape).astype(dtype_of(dtype))


def dynamic_slices(x: jax.Array, i: jax.Array, j: jax.Array) -> tuple[jax.Array, ...]:
    m, n = x.shape
    return (
        lax.dynamic_slice(x, (i, j), (1, 1)),
        lax.dynamic_slice(x, (i, j), (1, n)),
        lax.dynamic_slice(x, (i, j), (m, 1)),
        lax.dynamic_slice(x, (j, i), (m, n)),
        lax.dynamic_slice(x, (i, j), (m // 2, n - n // 3)),
        lax.dynamic_slice(x.T, (i, j), (n, 1)),
    )


def dynamic_updates(x: jax.Array, i: jax.Array, j: jax.Array) -> tuple[jax.Array, ...]:
    m, n = x.shape
    return (
        lax.dynamic_update_slice(x, x[:1, :1], (i, j)),
        lax.dynamic_update_slice(x, x[:1], (i, j)),
        lax.dynamic_update_slice(x, x[:, :1], (i, j)),
        lax.dynamic_update_slice(x, x[::-1], (j, i)),
        lax.dynamic_update_slice(x, x[: m // 2, n // 3 :], (i, j)),
        lax.dynamic_update_slice(jnp.concatenate([x, x]).reshape(-1), x.reshape(-1), (j,)),
    )


@pytest.mark.parametrize("index", ("int32", "int64", "int8", "uint32"))
@pytest.mark.parametrize("family", [dynamic_slices, dynamic_updates], ids=lambda f: f.__name__)
def test_dynamic_start(family: Function, index: str) -> None:
    def inputs(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        if index == "int8" and shape == ():
            return np.array([-128, -1, 0, 1, 127][seed % 5], np.int8)
        return starts(shape, dtype, seed)

    check(family, [("m, n", "float32"), ("", index), ("", index)], [s for s in SIZES for _ in range(2)], inputs=inputs)


@pytest.mark.parametrize("dtype", ("bool", "float16", "int64"))
@pytest.mark.parametrize("family", [dynamic_slices, dynamic_updates], ids=lambda f: f.__name__)
def test_dynamic_start_dtypes(family: Function, dtype: str) -> None:
    check(family, [("m, n", dtype), ("", "int32"), ("", "int32")], SIZES[::3], inputs=starts)


# ---- several operands, generators -----------------------------------------------------------------------------------


def test_concatenate_of_several_sizes() -> None:
    def function(x: jax.Array, y: jax.Array, z: jax.Array) -> tuple[jax.Array, ...]:
        return jnp.concatenate([x, y, z], axis=1), jnp.concatenate([z, x.T.T, y], axis=-1) * 2

    specs: list[Spec] = [("m, n", "int32"), ("m, k", "int32"), ("m, 3", "int32")]
    check(function, specs, [{**s, "k": k} for s in SIZES for k in (1, 17)])


def test_concatenate_in_the_middle() -> None:
    def function(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        return jnp.concatenate([x, y, x], axis=1), jnp.concatenate([x.reshape(-1), y.reshape(-1)])

    sizes: list[Sizes] = [{**s, "k": k} for s in SIZES[::2] for k in (1, 2, 33)]
    check(function, [("m, n, 3", "float32"), ("m, k, 3", "float32")], sizes)


@pytest.mark.parametrize("dtype", DTYPES)
def test_iota(dtype: str) -> None:
    kind = np.int32 if dtype == "bool" else dtype_of(dtype)

    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        m, n = x.shape
        return (
            lax.broadcasted_iota(kind, (m, n), 0),
            lax.broadcasted_iota(kind, (m, n), 1),
            lax.broadcasted_iota(kind, (n, 4), 1),
            lax.iota(kind, m * n)[::-1],
            lax.iota(kind, 5),
        )

    sizes = [s for s in SIZES if s["m"] * s["n"] < 128] if dtype in ("int8", "uint8") else SIZES[::2]
    check(function, [("m, n", dtype)], sizes)


@pytest.mark.parametrize("dtype", DTYPES)
def test_constants(dtype: str) -> None:
    rng = np.random.default_rng(2)
    kind = dtype_of(dtype)
    dense = rng.integers(0, 100, (5, 33)).astype(kind)
    if kind.kind == "i":
        dense[0, :2] = np.iinfo(kind).min, np.iinfo(kind).max
    if kind.kind == "u":
        dense[0, 0] = np.iinfo(kind).max
    if dtype in ("float32", "float64", "float16", "bfloat16"):
        dense[0, :4] = np.inf, -np.inf, np.nan, -0.0
        dense[1, :2] = np.array([1 / 3, -1e-3]).astype(kind)
    last = dense.dtype.type(np.iinfo(kind).max if kind.kind in "iu" else 1)

    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        m, n = x.shape
        return (
            jnp.asarray(dense),
            jnp.broadcast_to(jnp.asarray(dense)[1, 2], (m, n)),
            jnp.full((m, n), last),
            jnp.concatenate([jnp.asarray(dense)[:, :1].T] * 2),
            lax.select(x == x, jnp.broadcast_to(jnp.asarray(dense)[:1, 3:4], (m, n)), x),
            jnp.full((3,), last),
        )

    check(function, [("m, n", dtype)], SIZES[::4])


@pytest.mark.slow
def test_chains_of_moves() -> None:
    """Positions compose through every kind of move inside one kernel."""

    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        m, n = x.shape
        a = jnp.pad(x.T[::-1], ((1, 2), (0, 1)))
        b = jnp.concatenate([a[1:-1], a[:2]]).reshape(-1)[::2]
        c = jnp.broadcast_to(x.reshape(n, 1, m)[:, :, ::-1], (n, 3, m)).transpose(2, 0, 1).reshape(m, -1)
        return b, c, lax.pad(c[:, ::2], c[0, 0], [(0, 1, 1), (-1, 2, 1)])[::-1]

    check(function, [("m, n", "float32")], SIZES)
