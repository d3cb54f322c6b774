# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that write windows of what they carry: along any axis, in any order, all of it or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shlo_disc
from tests.run.op_check import Sizes, Spec, assert_same, random_array, run_xla, shape_of

F = "float32"
I = "int32"  # noqa: E741
SIZES: list[Sizes] = [{"n": n, "d": d} for n, d in [(1, 1), (2, 17), (3, 16), (17, 3), (5, 67)]]


def kinds(executable: Any) -> list[str]:
    return [kernel.kind for kernel in executable.kernels]


def check(function: Callable[..., Any], specs: list[Spec], sizes: list[Sizes] = SIZES, *, ulps: float = 8) -> Any:
    """Compare with XLA, where memory that nobody has written holds NaNs. Integers are from 0 to 4."""
    executable = shlo_disc.compile(jax.jit(function), args=specs, options=shlo_disc.Options(guard_pages=True))
    for number, size in enumerate(sizes):
        shapes = [(shape_of(text, size), dtype) for text, dtype in specs]
        arrays = [
            np.arange(np.prod(s)).reshape(s).astype(d) % 5 if d == I else random_array(s, d, number) for s, d in shapes
        ]
        try:
            assert_same(executable(*arrays), run_xla(function, arrays), ulps, floor=1)
        except AssertionError as error:
            raise AssertionError(f"at {size}: {error}") from None
    return executable


def take(x: jax.Array, i: Any, axis: int = 0) -> jax.Array:
    return lax.dynamic_index_in_dim(x, i, axis, keepdims=False)


def put(out: jax.Array, value: jax.Array, i: Any, axis: int, *, negative: bool = True) -> jax.Array:
    """`value` as one window of `out`; without `negative`, the place is known to be where the loop's counter says."""
    starts = [jnp.zeros((), jnp.asarray(i).dtype)] * out.ndim
    starts[axis] = i
    return lax.dynamic_update_slice(out, jnp.expand_dims(value, axis), starts, allow_negative_indices=negative)


# ---- along which axis -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("negative", [False, True], ids=["covered", "not-covered"])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_state_of_one_number_a_row_is_written_along_any_axis(axis: int, negative: bool) -> None:
    """The lanes of the kernel are rows, which are not side by side in columns."""

    def run(x: jax.Array) -> Any:
        def step(i: jax.Array, carried: Any) -> Any:
            h = carried[0] * 0.5 + take(x, i, 1)
            return h, put(carried[1], h, i, axis, negative=negative)

        shape = (x.shape[1], x.shape[0]) if axis == 0 else x.shape
        return lax.fori_loop(0, x.shape[1], step, (jnp.zeros(x.shape[0], F), jnp.ones(shape, F)))

    assert "recurrence" in kinds(check(run, [("n, d", F)]))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_rows_are_read_along_one_axis_and_written_along_another(axis: int) -> None:
    def run(x: jax.Array) -> Any:
        def step(i: jax.Array, carried: Any) -> Any:
            h, out, last = carried
            h = h * 0.5 + take(x, i, 1)
            return h, put(out, h, i, axis, negative=False), put(last, h * 2, i, 2, negative=False)

        d, n, k = x.shape
        shape = [d, k]
        shape.insert(axis, n)
        return lax.fori_loop(0, n, step, (jnp.zeros((d, k), F), jnp.zeros(shape, F), jnp.zeros((d, k, n), F)))

    assert "recurrence" in kinds(check(run, [("d, n, 4", F)]))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_windows_without_a_state(axis: int) -> None:
    def run(x: jax.Array) -> jax.Array:
        shape = list(x.shape[1:])
        shape.insert(axis, x.shape[0])
        return lax.fori_loop(0, x.shape[0], lambda i, out: put(out, take(x, i) * 2, i, axis), jnp.zeros(shape, F))

    check(run, [("n, d, 3", F)])


def test_columns_of_several_types() -> None:
    def run(x: jax.Array) -> Any:
        def step(i: jax.Array, carried: Any) -> Any:
            h, *outs = carried
            h = h * 0.5 + take(x, i)
            values = (h, h > 0.1, (h * 10).astype(jnp.int8), h.astype(jnp.bfloat16))
            return h, *(put(out, value, i, 1, negative=False) for out, value in zip(outs, values, strict=True))

        shape = (x.shape[1], x.shape[0])
        outs = [jnp.zeros(shape, t) for t in (F, bool, jnp.int8, jnp.bfloat16)]
        return lax.fori_loop(0, x.shape[0], step, (jnp.zeros(x.shape[1], F), *outs))

    assert "recurrence" in kinds(check(run, [("n, d", F)]))


def test_a_scan_that_stacks_an_updated_copy_of_a_vector() -> None:
    """The update of the stack is one, and what it writes is another."""

    def run(x: jax.Array, v: jax.Array) -> Any:
        def step(h: jax.Array, row: jax.Array) -> Any:
            return h + row, lax.dynamic_update_slice(v, row[:1] * 2, (0,))

        return lax.scan(step, jnp.zeros(x.shape[1:], F), x)

    check(run, [("n, d", F), ("d", F)])


# ---- not all of it --------------------------------------------------------------------------------------------------


Place = Callable[[jax.Array, Any, jax.Array], Any]

PLACES: dict[str, Place] = {
    "backwards": lambda i, n, p: n - 1 - i,
    "every other": lambda i, n, p: 2 * i,
    "twice each": lambda i, n, p: i // 2,
    "one further": lambda i, n, p: i + 1,
    "clamped": lambda i, n, p: i + 3,
    "one before": lambda i, n, p: i - 1,
    "from data": lambda i, n, p: take(p, i),
    "the same": lambda i, n, p: i * 0 + 1,
    "around": lambda i, n, p: i + 1 - i,
}


@pytest.mark.parametrize("name", PLACES)
def test_windows_at_other_places(name: str) -> None:
    """Elements that are not written keep the initial values of the stack."""

    def run(x: jax.Array, places: jax.Array) -> Any:
        n = x.shape[0]

        def step(i: jax.Array, carried: Any) -> Any:
            h, rows, columns = carried
            h = h * 0.5 + take(x, i)
            where = PLACES[name](i, n, places)
            return h, put(rows, h, where, 0, negative=False), put(columns, h, where, 1)

        start = lax.broadcasted_iota(F, x.shape, 0)
        return lax.fori_loop(0, n, step, (jnp.zeros(x.shape[1], F), start, jnp.full((x.shape[1], n), 3.0, F)))

    check(run, [("n, d", F), ("n", I)])


TRIPS: dict[str, Callable[[Any, jax.Array], Any]] = {
    "half": lambda n, s: n // 2,
    "none": lambda n, s: 0,
    "fewer than none": lambda n, s: jnp.int32(-3),
    "one": lambda n, s: 1,
    "more": lambda n, s: n + 2,
    "from data": lambda n, s: s[0],
}


@pytest.mark.parametrize("name", TRIPS)
def test_loops_of_other_lengths(name: str) -> None:
    def run(x: jax.Array, steps: jax.Array, whole: jax.Array) -> Any:
        n = x.shape[0]

        def step(i: jax.Array, carried: Any) -> Any:
            h, out, last = carried
            h = h * 0.5 + take(x, i)
            return h, put(out, h, i, 1, negative=False), lax.dynamic_update_slice(last, h[None] * 2, (0, 0))

        start = (jnp.zeros(x.shape[1], F), jnp.ones((x.shape[1], n), F), whole)
        return lax.fori_loop(0, TRIPS[name](n, steps), step, start)

    check(run, [("n, d", F), ("1", I), ("1, d", F)], SIZES[1:])


def test_windows_of_two_rows() -> None:
    def run(x: jax.Array) -> Any:
        def step(i: jax.Array, carried: Any) -> Any:
            h = carried[0] * 0.5 + take(x, i)
            window = jnp.stack([h, h * 2], 1)
            return h, lax.dynamic_update_slice(carried[1], window, (0, 2 * i), allow_negative_indices=False)

        shape = (x.shape[1], 2 * x.shape[0])
        return lax.fori_loop(0, x.shape[0], step, (jnp.zeros(x.shape[1], F), jnp.zeros(shape, F)))

    check(run, [("n, d", F)])


def test_a_stack_that_is_read_or_written_again() -> None:
    def run(x: jax.Array) -> Any:
        def step(i: jax.Array, carried: Any) -> Any:
            h, read, twice = carried
            h = h * 0.5 + take(x, i) + take(read, i, 1)
            read = put(read, h, i, 1)
            twice = put(put(twice, h, i, 1), h * 2, i // 2, 1)
            return h + take(read, 0, 1), read, twice

        shape = (x.shape[1], x.shape[0])
        return lax.fori_loop(0, x.shape[0], step, (jnp.zeros(x.shape[1], F), jnp.ones(shape, F), jnp.zeros(shape, F)))

    check(run, [("n, d", F)])


# ---- counters -------------------------------------------------------------------------------------------------------

Counter = tuple[str, Callable[..., Any], Callable[..., Any], Callable[..., Any]]

COUNTERS: dict[str, Counter] = {
    "from one": (I, lambda n: 1, lambda i, n: i < n, lambda i: i + 1),
    "by two": (I, lambda n: 0, lambda i, n: i < n, lambda i: i + 2),
    "downwards": (I, lambda n: n - 1, lambda i, n: i > 0, lambda i: i - 1),
    "up to and with": (I, lambda n: 0, lambda i, n: i <= n, lambda i: i + 1),
    "until": (I, lambda n: 0, lambda i, n: i != n, lambda i: i + 1),
    "of 64 bits": ("int64", lambda n: 0, lambda i, n: i < n, lambda i: i + 1),
    "unsigned": ("uint32", lambda n: 0, lambda i, n: i < n, lambda i: i + 1),
    "of 8 bits": ("uint8", lambda n: 0, lambda i, n: i < n, lambda i: i + 1),
    "a float": (F, lambda n: 0, lambda i, n: i < n, lambda i: i + 1),
}


@pytest.mark.parametrize("name", COUNTERS)
def test_counters(name: str) -> None:
    dtype, start, test, following = COUNTERS[name]

    def run(x: jax.Array) -> Any:
        n = jnp.asarray(x.shape[0]).astype(dtype)

        def step(carried: Any) -> Any:
            i, h, out = carried
            place = i.astype(I) if dtype == F else i
            h = h * 0.5 + take(x, place)
            return following(i).astype(dtype), h, put(out, h, place, 1, negative=False)

        first = jnp.asarray(start(x.shape[0])).astype(dtype)
        return lax.while_loop(
            lambda c: test(c[0], n), step, (first, jnp.zeros(x.shape[1], F), jnp.ones(x.shape[::-1], F))
        )[1:]

    check(run, [("n, d", F)], SIZES[1:4])


def test_a_counter_of_8_bits_wraps_around() -> None:
    """At 256 rows the bound is 0."""

    def run(x: jax.Array) -> jax.Array:
        bound = jnp.asarray(x.shape[0]).astype(jnp.uint8)

        def step(carried: Any) -> Any:
            i, h, out = carried
            return i + jnp.uint8(1), h + 1, put(out, h, i, 0, negative=False)

        return lax.while_loop(lambda c: c[0] < bound, step, (jnp.uint8(0), x[0], jnp.ones_like(x)))[2]

    check(run, [("n, d", F)], [{"n": 256, "d": 3}, {"n": 5, "d": 3}])


def test_two_counters() -> None:
    """The second one, by which the places go, starts later."""

    def run(x: jax.Array) -> Any:
        def step(carried: Any) -> Any:
            i, j, h, out = carried
            h = h * 0.5 + take(x, i)
            return i + 1, j + 1, h, put(out, h, j, 1, negative=False)

        start = (jnp.int32(0), jnp.int32(1), jnp.zeros(x.shape[1], F), jnp.ones((x.shape[1], x.shape[0]), F))
        return lax.while_loop(lambda c: c[0] < x.shape[0], step, start)[2:]

    check(run, [("n, d", F)])


def test_a_condition_on_data() -> None:
    def run(x: jax.Array) -> Any:
        def step(carried: Any) -> Any:
            i, h, out = carried
            h = h * 0.5 + take(x, i)
            return i + 1, h, put(out, h, i, 1, negative=False)

        start = (jnp.int32(0), jnp.zeros(x.shape[1], F), jnp.ones((x.shape[1], x.shape[0]), F))
        return lax.while_loop(lambda c: (c[0] < x.shape[0]) & (jnp.max(c[1]) < 1), step, start)

    check(run, [("n, d", F)])
