# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The interpreter of small programs: functions, loops, branches, where values lie, limits of work, damaged programs."""

from __future__ import annotations

import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from shlo_disc.runtime.native_module import interpret
from tests.fuzz.damaged_bytes import damage
from tests.pjrt.interpreter import ANY_WORK, check, exported, interpreted

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_arguments_are_results() -> None:
    check(lambda x, y: (y, x, x, x.reshape(4, 3), y), X, np.int32(3))


def test_constants() -> None:
    table, flags = np.arange(5, dtype=np.int16), np.array([True, False, True] * 5)
    check(lambda x: (x + 1, table, flags, np.zeros((2, 3), bool), np.ones((2, 3), bool), np.float16(2.5)), X)


@pytest.mark.parametrize("count", [0, 1, 8, 9])
def test_constants_of_bits(count: int) -> None:
    check(lambda x: (x, np.arange(count) % 3 == 0), X)


def test_functions_are_called_twice() -> None:
    @jax.jit
    def inner(x: Any, y: Any) -> Any:
        return x + y, y

    check(lambda x: inner(*inner(x, x * 2)), X)


def test_composites() -> None:
    check(lambda x: lax.erf(x / 5), X, ulps=4, absolute=1e-7)


def test_composites_of_complex_infinities() -> None:
    infinite = np.array([complex(a, b) for a in (np.inf, -np.inf) for b in (np.inf, -np.inf, np.nan)], np.complex64)
    check(lambda x: (jnp.cosh(x), jnp.sinh(x)), infinite)


@pytest.mark.parametrize("trips", [0, 1, 7])
def test_loops(trips: int) -> None:
    def step(i: Any, state: Any) -> Any:
        a, b, c = state
        return b, a + jnp.float32(1), c + i * a.sum()  # two values change places

    check(lambda x, y: lax.fori_loop(0, trips, step, (x, y, jnp.float32(0))), X, X[::-1].copy())


def test_loops_read_values_of_outside() -> None:
    def run(x: Any) -> Any:
        scale, unused = x * 2, x * 3

        def outer(i: Any, total: Any) -> Any:
            shift = total + scale
            return lax.fori_loop(0, 3, lambda j, inner: inner + shift * j, shift)

        return lax.fori_loop(0, 4, outer, unused), unused

    check(run, X / 100)


def test_loops_end_at_once_with_what_they_began_with() -> None:
    check(lambda x: lax.while_loop(lambda s: s[0] > 100, lambda s: (s[0] + 1, s[2], s[1]), (x[0, 0], x, x + 1)), X)


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 3, 2**31 - 1])
def test_branches(index: int) -> None:
    branches = [lambda x: (x, x + 1), lambda x: (x * 2, x), lambda x: (x - 1, x * x)]
    check(lambda i, x: lax.switch(i, branches, x), np.int32(index), X)


@pytest.mark.parametrize("holds", [False, True])
def test_conditions(holds: bool) -> None:
    check(
        lambda p, x: lax.cond(p, lambda x: x + 1, lambda x: lax.cond(x[0, 0] < 0, lambda: x, lambda: -x), x), holds, X
    )


def test_ops_that_are_only_compiled_may_be_in_a_branch_that_is_not_taken() -> None:
    def run(holds: Any, x: Any) -> Any:
        return lax.cond(holds, lambda x: jnp.linalg.qr(x[:, :3])[1], lambda x: x[:, :3], x)

    np.testing.assert_array_equal(interpreted(run, False, X)[0], X[:, :3])
    with pytest.raises(ValueError, match="custom_call"):
        interpreted(run, True, X)


def test_bodies_read_constants_of_outside() -> None:
    check(lambda x: jnp.sort(jnp.where(x > 5, x, -0.0), axis=0), X)  # compares with a constant of the function


def test_memory_is_used_again() -> None:
    def chain(x: Any) -> Any:
        values = [x + 1]
        for i in range(40):
            values.append(values[-1] * 2 - values[len(values) // 2] if i % 3 else values[-1] + values[0])
        return values[-1], values[20]

    check(chain, X)


def test_work_is_limited() -> None:
    def endless(x: Any) -> Any:
        return lax.while_loop(lambda s: s[0] >= 0, lambda s: (s[0] * 0, s[1] + 1), (x[0, 0], x))

    with pytest.raises(ValueError, match="more work"):
        interpreted(endless, X, most_work=100_000)
    with pytest.raises(ValueError, match="more work"):
        interpreted(lambda x: jnp.broadcast_to(x, (10_000, 3, 4)) + 1, X, most_work=100_000)


def test_large_constants_are_not_copied() -> None:
    table = np.arange(1_000_000, dtype=np.float32)
    with pytest.raises(ValueError, match="too many constants"):
        interpreted(lambda x: x[0, 0] + table[5] + jnp.asarray(table)[x.astype(int)], X, most_work=100_000)


def test_what_is_not_taken_says_why() -> None:
    with pytest.raises(ValueError, match="custom_call: there is no kernel"):
        interpreted(lambda x: jnp.linalg.qr(x), X)
    with pytest.raises(ValueError, match="type that is compiled only"):
        interpreted(lambda x: x.astype(jnp.float8_e4m3fn), X)
    with pytest.raises(ValueError, match="no bytecode|bytecode"):
        interpret(b"no program", [], ANY_WORK)


def test_arrays_are_checked() -> None:
    with pytest.raises(ValueError, match="another size"):
        interpret(exported(lambda x: x + 1, X)[0], [X[:2].copy()], ANY_WORK)
    with pytest.raises(ValueError, match="another number"):
        interpret(exported(lambda x: x + 1, X)[0], [X, X], ANY_WORK)


def many_ops(x: Any, i: Any) -> Any:
    """Ops of each family, with attributes that tell them where to read."""
    table = x[i % 3] + lax.dynamic_slice(x, (i, i), (1, 4))[0]
    window = lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 2), "SAME")
    placed = jnp.pad(window, ((1, 0), (0, 2))).T[1:3, ::-1].at[:, i].add(table[:2])
    product = lax.dot_general(placed, placed, (((1,), (1,)), ((), ())))
    return (
        jnp.sort(product, axis=0),
        jnp.argmax(placed, axis=1),
        lax.conv(x[None, None], x[None, None, :2, :2], (1, 1), "SAME"),
    )


def test_damaged_programs_end_nothing() -> None:
    """A kernel that reads or writes beyond an array ends the process here, now and then."""
    program, given = exported(many_ops, X, np.int32(1))
    assert len(interpret(program, given, ANY_WORK)) == 3
    taken = 0
    chance = random.Random(1)
    for _ in range(1000):
        try:
            interpret(damage(program, chance), given, 10_000_000)
            taken += 1
        except (ValueError, MemoryError):
            pass
    assert taken > 0
