# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs next to products with weights of narrow integers, and weights that are stored in any order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shlo_disc
from tests.run.dequantized_programs import Program, check, compiled, f32, is_fused, product, random
from tests.run.op_check import run_xla


def read_twice(x: Any, q: Any, s: Any) -> Any:
    weight = f32(q) * s
    return x @ weight, weight + 1.0


def view_read_twice(x: Any, q: Any, s: Any) -> Any:
    weight = (f32(q) * s).reshape(8, 5, 24)
    return x @ weight.reshape(40, 24), jnp.sum(weight, axis=1)


def computed(x: Any, q: Any, s: Any) -> Any:
    return x @ (f32(jnp.maximum(q, -100)) * s)


def that_may_wrap(x: Any, q: Any, s: Any) -> Any:
    return x @ (f32(q - q[:1]) * s)


def of_each_element(x: Any, q: Any, s: Any) -> Any:
    return x @ (f32(q) * jnp.outer(jnp.arange(40.0), s))


def of_short_groups(x: Any, q: Any, s: Any) -> Any:
    return x @ (f32(q).reshape(10, 4, 24) * (jnp.arange(10.0)[:, None, None] * s)).reshape(40, 24)


def rounded(x: Any, q: Any, s: Any) -> Any:
    return x @ (f32((f32(q) * 1.5).astype(jnp.int32)) * s)


def in_f64(x: Any, q: Any, s: Any) -> Any:
    return (x.astype(jnp.float64) @ (q.astype(jnp.float64) * s)).astype(jnp.float32)


def high_halves_first(x: Any, q: Any, s: Any) -> Any:
    q = lax.bitcast_convert_type(q, jnp.uint8)[:20]
    return x @ (f32(jnp.stack([q >> 4, q & 15], axis=1).reshape(40, 24)) * s)


def other_halves(x: Any, q: Any, s: Any) -> Any:
    q = lax.bitcast_convert_type(q, jnp.uint8)
    return x @ (f32(jnp.stack([q[:20] & 15, q[20:] >> 4], axis=1).reshape(40, 24)) * s)


def other_shifts(x: Any, q: Any, s: Any) -> Any:
    q = lax.bitcast_convert_type(q, jnp.uint8)[:20]
    return x @ (f32(jnp.stack([q & 15, q >> 3], axis=1).reshape(40, 24)) * s)


def halves_of_two_groups(x: Any, q: Any, s: Any) -> Any:
    q = lax.bitcast_convert_type(q, jnp.uint8)[:9]
    whole = f32(jnp.stack([q & 15, q >> 4], axis=1)).reshape(2, 9, 24)
    return x[:, :18] @ (whole * jnp.stack([s, 2 * s])[:, None]).reshape(18, 24)


def wide_zeros_of_bf16(x: Any, q: Any, s: Any) -> Any:
    weight = (q.astype(jnp.int32) - (1e8 * s).astype(jnp.int32)).astype(jnp.bfloat16)
    return jnp.dot(x.astype(jnp.bfloat16), weight, preferred_element_type=jnp.float32)


def wide_zeros_twice(x: Any, q: Any, s: Any) -> Any:
    zeros = (1e8 * s).astype(jnp.int32)
    return x @ f32(q.astype(jnp.int32) - zeros - zeros)


def reversed_rows(x: Any, q: Any, s: Any) -> Any:
    return x @ (f32(q) * s)[::-1]


NEXT = (read_twice, view_read_twice, computed, that_may_wrap, of_each_element, of_short_groups, rounded, in_f64,
        high_halves_first, other_halves, other_shifts,
        halves_of_two_groups, wide_zeros_of_bf16, wide_zeros_twice, reversed_rows)  # fmt: skip


@pytest.mark.parametrize("function", NEXT)
def test_programs_next_to_these_stay(function: Callable[..., Any]) -> None:
    given = (random((6, 40), "float32"), random((40, 24), "int8"), random((24,), "float32"))
    with jax.enable_x64(function is in_f64):
        executable = shlo_disc.compile(function, args=(("m, 40", "float32"), ("40, 24", "int8"), ("24", "float32")))
        assert "dequantized_dot" not in [kernel.name for kernel in executable.kernels]
        for got, want in zip(
            jax.tree.leaves(executable(*given)), jax.tree.leaves(run_xla(function, given)), strict=True
        ):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-2)


def _of_digits(rng: np.random.Generator) -> Program:
    """A weight whose k and n are each two digits, stored in any order, with a scale for any of the digits."""
    sizes = [int(size) for size in rng.choice([1, 2, 3, 8, 16], 4)]  # of k, then of n
    k, n = sizes[0] * sizes[1], sizes[2] * sizes[3]
    stored = rng.permutation(4)
    with_scale = rng.random(4) < 0.6
    back = np.argsort(stored)
    flat = rng.random() < 0.5  # reshaped before it is multiplied by the scale, where the scale allows it

    def weight(q: Any, s: Any) -> Any:
        q = q.reshape([sizes[axis] for axis in stored]).transpose(back)
        s = s.reshape([size if has else 1 for size, has in zip(sizes, with_scale, strict=True)])
        if flat:
            return f32(q.reshape(k, n)) * jnp.broadcast_to(s, sizes).reshape(k, n)
        return (f32(q) * s).reshape(k, n)

    count = int(np.prod([size for size, has in zip(sizes, with_scale, strict=True) if has]))
    arrays = random((k * n,), "int8", int(rng.integers(99))), random((count,), "float32")
    return product(weight, k), arrays


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(s, marks=pytest.mark.slow) for s in range(4, 100))])
def test_weights_stored_in_any_order(seed: int) -> None:
    """Most are no layout that the runtime has: all are right, whether they are fused or not."""
    rng = np.random.default_rng(seed)
    for _ in range(3):
        program = _of_digits(rng)
        check(program, compiled(program), (1, 5, 40))


def test_some_orders_are_fused_and_some_are_not() -> None:
    """Stored digits of k lie before those of n, or behind them, in their order: no digit lies between the other's."""
    by_order = {}
    for stored in ((0, 1, 2, 3), (2, 3, 0, 1), (0, 2, 1, 3), (1, 0, 2, 3)):
        back = np.argsort(stored)

        def weight(q: Any, s: Any, stored: Any = stored, back: Any = back) -> Any:
            sizes = (4, 16, 3, 8)
            return (f32(q.reshape([sizes[axis] for axis in stored]).transpose(back).reshape(64, 24))) * s

        executable = compiled((product(weight, 64), (random((64 * 24,), "int8"), random((24,), "float32"))))
        by_order[stored] = is_fused(executable)
    assert by_order == {(0, 1, 2, 3): True, (2, 3, 0, 1): True, (0, 2, 1, 3): False, (1, 0, 2, 3): False}
