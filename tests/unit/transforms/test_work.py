# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The work of a compile is near linear in the ops: counted, not timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shlo_disc
from shlo_disc.lowering.host_llvm import run as host_run
from shlo_disc.transforms.control_flow import counted_loops
from shlo_disc.transforms.decisions import OUTCOMES
from tests.unit.transforms.deciding import compiled, taken

Function = Callable[..., Any]


def layers(count: int) -> Function:
    """Layers whose product each reads what the last one leaves."""
    weights = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32) * 0.3

    def function(x: jax.Array) -> jax.Array:
        for _ in range(count):
            x = jnp.tanh(x @ weights + x)
        return x

    return function


def powers(count: int) -> Function:
    """Products of one left-hand side, each with what the last one leaves."""

    def function(x: jax.Array, y: jax.Array) -> jax.Array:
        for _ in range(count):
            y = x @ y
        return y

    return function


@pytest.mark.parametrize(("make", "shapes"), [(layers, ("b, 8",)), (powers, ("n, n", "n, 4"))])
def test_a_product_is_compared_with_a_bounded_number_of_groups(make: Callable[[int], Function], shapes: Any) -> None:
    before = OUTCOMES["horizontal-gemm", True]
    done, _ = compiled(make(40), *shapes)
    assert OUTCOMES["horizontal-gemm", True] - before <= 40
    assert taken(done, "horizontal-gemm") == 0


def test_products_of_one_left_hand_side_are_still_put_together() -> None:
    def function(x: jax.Array, *weights: jax.Array) -> list[jax.Array]:
        return [x @ w for w in weights]

    done, _ = compiled(function, "m, k", *(f"k, n{i}" for i in range(20)))
    assert taken(done, "horizontal-gemm") == 17  # in groups of 8, 8 and 4


def test_a_counter_that_is_doubled_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each op reads the one before twice, so there are as many ways to the counter as there are subsets."""
    asked = 0
    computed = counted_loops._computed

    def counted(*given: Any) -> Any:
        nonlocal asked
        asked += 1
        return computed(*given)

    def function(x: jax.Array) -> jax.Array:
        def body(carried: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            i, y = carried
            step = i
            for _ in range(24):
                step = step + step
            return step + 1, y * 0.5

        return lax.while_loop(lambda c: c[0] < 3, body, (jnp.int32(0), x))[1]

    monkeypatch.setattr(counted_loops, "_computed", counted)
    compiled(function, "n")
    assert 24 <= asked <= 500


def test_a_host_program_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops and branches stand between the parts, in them, and around as much as fills several."""

    def function(x: jax.Array) -> jax.Array:
        y = layers(5)(x)
        y = lax.fori_loop(0, 3, lambda i, c: layers(2)(c) + i, y)
        y = lax.cond(jnp.sum(y) > 0, layers(2), lambda v: v * 2, layers(5)(y))
        return layers(2)(y)

    monkeypatch.setattr(host_run, "PART_OPS", 20)
    options = shlo_disc.Options(cache_dir="")
    executable = shlo_disc.compile(function, args=(("b, 8", "float32"),), options=options)
    assert "disc_run_part_2" in executable.as_text("llvm")
    for rows in (1, 7, 9):
        x = np.random.default_rng(rows).standard_normal((rows, 8)).astype(np.float32)
        np.testing.assert_allclose(executable(x), jax.jit(function)(x), rtol=2e-5, atol=2e-5)


def test_a_launch_stores_the_addresses_that_changed() -> None:
    """Repeated products share one block of arguments, of which two inputs, a result and an epilogue's differ."""

    def stores(count: int) -> int:
        options = shlo_disc.Options(cache_dir="")
        executable = shlo_disc.compile(layers(count), args=(("b, 8", "float32"),), options=options)
        run = [text for text in executable.as_text("llvm").split("\ndefine ") if "@disc_run" in text.split("\n")[0]]
        return sum(text.count("store ") for text in run)

    assert stores(10) <= stores(5) + 5 * 5
