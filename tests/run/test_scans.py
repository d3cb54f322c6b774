# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lax.scan, lax.map and associative_scan: each compiled once and compared with XLA at many sizes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import shlo_disc
from tests.run.op_check import Spec, check
from tests.run.test_control_flow import INT, SIZES, TWO, F, counts


def rnn(x: jax.Array, w: jax.Array, u: jax.Array) -> Any:
    def step(h: jax.Array, row: jax.Array) -> Any:
        h = jnp.tanh(row @ w + h @ u)
        return h, h * 2

    return lax.scan(step, jnp.zeros((x.shape[1], 8), x.dtype), x)


@pytest.mark.slow
def test_scan_of_a_recurrent_network() -> None:
    check(rnn, [("n, m, 4", F), ("4, 8", F), ("8, 8", F)], TWO, ulps=40, floor=1)


def test_outputs_of_a_scan_are_written_in_place() -> None:
    """Nothing copies the stacked outputs nor what the loop carries: the arena holds the products of all inputs only."""
    specs: list[Spec] = [("n, m, 4", F), ("4, 8", F), ("8, 8", F)]
    executable = shlo_disc.compile(jax.jit(rnn), args=specs)
    kinds = [k.kind for k in executable.kernels]
    assert kinds.count("recurrence") == 1
    assert "copy" not in kinds and "update" not in kinds
    assert executable.memory(n=1000, m=2).arena_bytes == 1000 * 2 * 8 * 4


def test_an_update_outside_of_loops_leaves_its_operand_alone() -> None:
    def update(x: jax.Array, w: jax.Array, i: jax.Array) -> Any:
        y = x @ w
        z = lax.dynamic_update_slice(x @ (w * 2), x[:2], (i, i))
        return lax.dynamic_update_slice(y, x[:1] * 2, (i, jnp.int32(0))), y, z

    sizes = [{"n": n} for n in (2, 3, 17)]
    check(update, [("n, 4", F), ("4, 4", F), ("", INT)], sizes, inputs=counts, ulps=16, floor=1)


@pytest.mark.parametrize("options", [{"reverse": True}, {"unroll": 3}], ids=str)
def test_scan_options(options: dict[str, Any]) -> None:
    def running(x: jax.Array) -> Any:
        return lax.scan(lambda c, row: (c + row, (c, row * c)), jnp.ones(x.shape[1], x.dtype), x, **options)

    if "unroll" in options:
        for n in (1, 7):
            check(running, [(f"{n}, m", F)], [{"m": 1}, {"m": 17}], ulps=4, floor=1)
    else:
        check(running, [("n, m", F)], TWO, ulps=4, floor=1)


def test_scan_without_inputs_and_without_outputs() -> None:
    def powers(x: jax.Array) -> Any:
        return lax.scan(lambda c, _: (c * x, c), jnp.ones_like(x), None, length=5)

    def last(x: jax.Array) -> Any:
        return lax.scan(lambda c, row: (c * 0.5 + row, None), jnp.zeros((), x.dtype), x)[0]

    check(powers, [("n", F)], SIZES, ulps=4)
    check(last, [("n", F)], SIZES, ulps=4, floor=1)


def test_scan_over_more_than_one_input_and_several_dtypes() -> None:
    def both(x: jax.Array, k: jax.Array) -> Any:
        def step(c: Any, row: Any) -> Any:
            total, seen = c
            return (total + row[0], seen | (row[1] > 0)), (row[1] * 2, total.astype(jnp.bfloat16))

        return lax.scan(step, (jnp.zeros(x.shape[1], x.dtype), jnp.zeros(k.shape[1], bool)), (x, k))

    check(both, [("n, m", F), ("n, 3", INT)], TWO, ulps=4, floor=1)


def test_gradient_of_a_scan() -> None:
    def loss(x: jax.Array, w: jax.Array) -> jax.Array:
        def step(h: jax.Array, row: jax.Array) -> Any:
            h = jnp.tanh(row * w + h)
            return h, h

        return jnp.sum(lax.scan(step, jnp.zeros(x.shape[1], x.dtype), x)[1] ** 2)

    check(jax.value_and_grad(loss, argnums=(0, 1)), [("n, m", F), ("m", F)], TWO, ulps=100, floor=1)


@pytest.mark.slow
def test_map_and_associative_scan() -> None:
    check(
        lambda x: lax.map(lambda row: jnp.sort(row * 2)[::-1] + jnp.sum(row), x), [("n, m", F)], TWO, ulps=16, floor=1
    )
    for n in (1, 2, 7, 16):
        check(lambda x: lax.associative_scan(jnp.add, x), [(f"{n}, m", F)], [{"m": 3}, {"m": 17}], ulps=8, floor=1)
