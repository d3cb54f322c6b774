# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that use so many functions that these are out of line, at sizes around those of the vectors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from tests.run.op_check import assert_same, check, random_array, run_xla

SIZES = [{"b": 2, "d": n + 1} for n in (0, 1, 15, 16, 17, 31, 33, 100)]
SHAPE = "b, d - 1"


def waves(x: jax.Array) -> jax.Array:
    """More than a kernel has room for."""
    for i in range(1, 13):
        x = x + 0.1 * jnp.sin(x * i) + jnp.exp(-x * x) - jnp.tanh(x / i) + jnp.log1p(jnp.abs(x))
    return x


def powers(x: jax.Array) -> jax.Array:
    """Functions of two values."""
    return sum(jnp.abs(x) ** (0.1 * i) + jnp.arctan2(x, i + x * x) for i in range(12))  # type: ignore[return-value]


def softmaxes(x: jax.Array) -> jax.Array:
    """Reductions along rows."""
    for i in range(8):
        x = x + jnp.cos(jax.nn.softmax(jnp.sin(x * (1 + i)), axis=-1))
    return x


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("function", [waves, powers])
def test_functions_out_of_line(function: Callable[[jax.Array], jax.Array], dtype: str) -> None:
    ulps = {"float32": 64, "float64": 64, "bfloat16": 16}[dtype]
    check(function, [(SHAPE, dtype)], SIZES, ulps=ulps, floor=1.0)


@pytest.mark.slow
def test_rows_with_functions_out_of_line() -> None:
    check(softmaxes, [(SHAPE, "float32")], [s for s in SIZES if s["d"] > 1], ulps=256, floor=1.0)


@pytest.mark.slow
def test_a_mask_that_is_not_the_tail_alone() -> None:
    """Reads of the last vector and of what lies beyond an edge are masked twice."""

    def function(x: jax.Array) -> jax.Array:
        return waves(jnp.concatenate([jnp.tanh(x), jnp.pad(x, ((0, 0), (3, 0)))], axis=1)[:, ::-1])

    check(function, [(SHAPE, "float32")], SIZES, ulps=64, floor=1.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_vectors_of_256_bits_are_passed_and_returned(dtype: str) -> None:
    with jax.enable_x64(True):
        options = shlo_disc.Options(cpu="x86-64-v3")
        executable = shlo_disc.compile(waves, args=((SHAPE, dtype),), options=options)
        for size in SIZES:
            x = random_array((size["b"], size["d"] - 1), dtype)
            assert_same(executable(x), run_xla(waves, [x]), 64, np.asarray(1.0))


def balanced(x: jax.Array, depth: int, number: int = 1) -> jax.Array:
    """A tree of sums, products and maxima over 2 ** depth leaves."""
    if depth == 0:
        return x + 0.1 * number
    op = (jnp.add, jnp.multiply, jnp.maximum)[depth % 3]
    return op(balanced(x, depth - 1, 2 * number) / 64, balanced(x, depth - 1, 2 * number + 1))


@pytest.mark.parametrize(("function", "lanes"), [(lambda x: balanced(x, 9), 8), (waves, 32)])
def test_independent_operations_are_on_one_register_at_a_time(
    function: Callable[[jax.Array], jax.Array], lanes: int, tmp_path: Path
) -> None:
    """More of them would not fit the registers; functions out of line, whose chains are long, take four."""
    options = shlo_disc.Options(cpu="x86-64-v3", dump=str(tmp_path), cache_dir="")
    executable = shlo_disc.compile(function, args=(("n", "float32"),), options=options)
    assert f"vector<{lanes}xf32>" in (tmp_path / "5-kernels.mlir").read_text()
    assert f"vector<{2 * lanes}xf32>" not in (tmp_path / "5-kernels.mlir").read_text()
    for n in (1, 7, 8, 9, 100):
        x = random_array((n,), "float32")
        want = function(jnp.asarray(x))  # op by op: XLA takes all memory to compile a tree of one element
        assert_same(executable(x), np.asarray(want), 64, np.asarray(1.0))
