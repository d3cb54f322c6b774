# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Concatenations of many pieces, which are written piece by piece, along each axis and from all kinds of pieces."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import pytest

from tests.run.op_check import check

SIZES = [{"b": 3, "d": n + 1} for n in (0, 1, 15, 16, 17, 31, 33, 100)]
SHAPE = "b, d - 1, 5"


def pieces(x: jax.Array, y: jax.Array, axis: int) -> list[jax.Array]:
    """Arguments, parts of them, what is computed from them, and a constant."""
    found = [x, y * 2, jnp.tanh(x) + y, x[:, :, ::-1], jnp.swapaxes(jnp.swapaxes(y, 0, 2) + 1, 0, 2), x[:1] + 0 * x]
    taken = (slice(None),) * axis
    found.append(y[(*taken, slice(0 if axis == 1 else 1, None))])
    found += [x[::2] if axis == 0 else x[:, :, ::2] if axis == 2 else x, jnp.full_like(y, 7), x]
    return found


def joined(x: jax.Array, y: jax.Array, axis: int) -> jax.Array:
    """Pieces of all kinds that an element type has."""
    if x.dtype in (jnp.int8, jnp.bool_):
        return jnp.concatenate([x, y, ~x, x & y] * 3, axis)
    return jnp.concatenate(pieces(x, y, axis), axis)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8", "bool"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_pieces_of_all_kinds(axis: int, dtype: str) -> None:
    check(functools.partial(joined, axis=axis), [(SHAPE, dtype)] * 2, SIZES, ulps=4, floor=1.0)


def test_pieces_of_one_axis() -> None:
    def function(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.concatenate([x, y[::-1], x * 2, x[1:], y, y, x + y, x])

    check(function, [("n + 1", "float32")] * 2, [{"n": n} for n in (1, 15, 16, 17, 300, 100_000)])


def test_a_stack_is_a_concatenation() -> None:
    check(lambda x, y: jnp.stack([x, y, x + y, x * y] * 3, axis=1), [("n, d", "float32")] * 2, [{"n": 4, "d": 33}])
    check(lambda x, y: jnp.stack([x, y, x + y, x * y] * 3, axis=-1), [("n, d", "float32")] * 2, [{"n": 4, "d": 33}])


def test_a_window_that_data_places() -> None:
    def function(x: jax.Array, i: jax.Array) -> jax.Array:
        windows = [jax.lax.dynamic_slice_in_dim(x, i + k, 2) for k in range(12)]
        return jnp.concatenate(windows, axis=0)

    check(function, [("n + 2, d", "float32"), ("", "int32")], [{"n": 4, "d": 33}, {"n": 20, "d": 3}])


SPECS = ("b, n, 5", "b, m, 5", "b, n + m, 5", "b, 2*m, 5", "b, 3, 5")


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8", "bool"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_whole_buffers_of_many_sizes(axis: int, dtype: str) -> None:
    """They are copied by one loop, beside a piece that is not."""
    dims = [text.split(", ") for text in SPECS]
    orders = {0: (1, 0, 2), 1: (0, 1, 2), 2: (0, 2, 1)}
    specs = [(", ".join(d[i] for i in orders[axis]), dtype) for d in dims]
    sizes = [{"b": 1 + n % 3, "n": n, "m": m} for n, m in ((1, 1), (2, 1), (15, 17), (64, 1), (1, 300), (3000, 2000))]

    def joined(*given: jax.Array) -> jax.Array:
        return jnp.concatenate([*given, jnp.flip(given[1], axis), *given[::-1]], axis)

    check(joined, specs, sizes)
