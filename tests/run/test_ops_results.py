# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results of programs: arguments, constants, one value twice, views, nothing; programs without arguments."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

import shlo_disc
from tests.run.op_check import (
    DTYPES,
    assert_same,
    check,
    check_text,
    compile_function,
    dtype_of,
    random_array,
    run_xla,
)

SIZES = [{"m": m, "n": n} for m, n in [(1, 1), (2, 3), (16, 17), (5, 33), (97, 2)]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_arguments_and_views_of_them(dtype: str) -> None:
    def function(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        return x, y, x, x.reshape(-1), x.T, y[:, None], x.reshape(-1), jnp.broadcast_to(y, x.shape)

    check(function, [("m, n", dtype), ("n", dtype)], SIZES[1::2])


def test_one_value_twice_and_its_views() -> None:
    def function(x: jax.Array) -> dict[str, Any]:
        y = jnp.sin(x)
        total = y.sum()
        return {
            "first": y,
            "again": y,
            "flat": y.reshape(-1),
            "turned": y.T,
            "pair": (total, total),
            "unit": y[None],
            "next": y + 1,
            "of next": (y + 1).reshape(-1, 1),
        }

    check(function, [("m, n", "float32")], SIZES, ulps=8, floor=1.0)


def test_constants_and_sizes() -> None:
    dense = np.arange(12, dtype=np.float32).reshape(3, 4)

    def function(x: jax.Array) -> tuple[Any, ...]:
        c = jnp.asarray(dense)
        m, n = x.shape
        return c, c, c.T, c.reshape(-1), jnp.float32(2.5), jnp.zeros((m, 2)), jnp.array(m * n), jnp.array([m, n]), c[1]

    check(function, [("m, n", "float32")], SIZES)


def test_results_do_not_share_memory() -> None:
    executable = compile_function(lambda x: (x, x, x.reshape(-1), x + 0, x[::-1]), [("m, n", "float32")])
    x = random_array((3, 5), "float32")
    kept = x.copy()
    results = [np.asarray(r) for r in executable(x)]
    for number, result in enumerate(results):
        result = np.array(result) if not result.flags.writeable else result
        result[...] = number
    assert_same(x, kept)
    owners = [r.__array_interface__["data"][0] for r in results]
    assert len(set(owners)) == len(owners)


def test_scalars() -> None:
    def function(x: jax.Array, y: jax.Array, i: jax.Array) -> tuple[jax.Array, ...]:
        return x * y, jnp.exp(x), x > y, i + 1, lax.select(x > y, x, y), jnp.stack([x, y]), x, jnp.int32(3)

    executable = compile_function(function, [("", "float32"), ("", "float32"), ("", "int32")])
    for seed in range(5):
        arguments = [random_array((), t, seed + i) for i, t in enumerate(("float32", "float32", "int32"))]
        assert_same(executable(*arguments), run_xla(function, arguments), 4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_programs_without_arguments(dtype: str) -> None:
    kind = dtype_of(dtype)
    values = np.arange(40).reshape(5, 8).astype(kind)

    def function() -> tuple[jax.Array, ...]:
        x = jnp.asarray(values)
        return x, x.T, jnp.full((3,), values[0, 1]), jnp.concatenate([x, x[::-1]]), x[0, 3]

    executable = compile_function(function, [])
    assert_same(executable(), run_xla(function, []))
    assert_same(executable(), run_xla(function, []))


def test_no_results() -> None:
    executable = shlo_disc.compile("func.func @main(%x: tensor<?xf32>) { return }")
    assert not jax.tree.leaves(executable(np.zeros(3, np.float32)))


def test_unused_arguments_are_still_checked() -> None:
    executable = compile_function(lambda x, y: x * 2, [("n", "float32"), ("n, 3", "int32")])
    x = random_array((4,), "float32")
    assert_same(executable(x, np.zeros((4, 3), np.int32)), x * 2)
    with pytest.raises(shlo_disc.errors.ShapeError):
        executable(x, np.zeros((5, 3), np.int32))


@pytest.mark.slow
def test_many_results() -> None:
    def function(x: jax.Array) -> list[jax.Array]:
        return [x * i for i in range(40)] + [x.sum(i % 2) for i in range(6)]

    check(function, [("m, n", "float32")], SIZES[:3], ulps=16, scaled=True)


def test_arguments_of_rank_six() -> None:
    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        y = x.transpose(5, 0, 4, 1, 3, 2)
        return y, y.sum((1, 3)), x.reshape(-1, x.shape[-1]), x[:, 0, :, 1:, ::-1]

    check(function, [("m, 2, n, 3, 1, 4", "int32")], [{"m": m, "n": n} for m, n in [(1, 1), (2, 3), (3, 17)]])


def test_results_of_text() -> None:
    text = """func.func @main(%x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?xf32>, tensor<4x?xf32>, tensor<2xi1>) {
      %c = stablehlo.constant dense<[true, false]> : tensor<2xi1>
      %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
      %f = stablehlo.constant dense<4> : tensor<i32>
      %p = stablehlo.multiply %n, %f : tensor<i32>
      %s = stablehlo.reshape %p : (tensor<i32>) -> tensor<1xi32>
      %r = stablehlo.dynamic_reshape %x, %s : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<?xf32>
      %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<?x4xf32>) -> tensor<4x?xf32>
      return %x, %r, %t, %c : tensor<?x4xf32>, tensor<?xf32>, tensor<4x?xf32>, tensor<2xi1> }"""
    check_text(text, [[random_array((n, 4), "float32")] for n in (1, 2, 17, 64, 0)])
