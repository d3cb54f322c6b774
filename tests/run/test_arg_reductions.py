# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Places of the largest or smallest element of a row: the first of equal ones, and the first NaN."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import shlo_disc
from tests.unit.shape_dialect.test_reducers import ARGMAX

LENGTHS = (1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 131, 1000)
DTYPES = ("float32", "int32", "uint8", "bool", "float16", "bfloat16", "float64", "int64")


def both(x: jax.Array) -> tuple[jax.Array, ...]:
    return jnp.argmax(x, 1), jnp.argmin(x, 1), jnp.argmax(x, 0), jnp.argmin(x)


def rows_of(length: int, dtype: str) -> np.ndarray:
    """Rows of few different values, of one value, and for floats of NaNs, infinities and zeros of both signs."""
    rng = np.random.default_rng(length)
    found = [rng.integers(0, 2 if dtype == "bool" else 4, length) for _ in range(6)] + [np.full(length, 1)]
    rows = np.array(found).astype(jnp.dtype(dtype))
    if not jnp.issubdtype(dtype, jnp.floating):
        return rows
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0])
    mixed = [rng.choice(special, length, p=p) for p in ([0.02, 0.1, 0.1, 0.3, 0.3, 0.18], [0, 0, 0.5, 0.2, 0.2, 0.1])]
    sole = [np.full(length, value) for value in special[:3]]
    return np.concatenate([rows, np.array([*mixed, *sole]).astype(jnp.dtype(dtype))])


@pytest.mark.parametrize("dtype", DTYPES)
def test_places(dtype: str) -> None:
    with jax.enable_x64(dtype.endswith("64")):
        executable = shlo_disc.compile(both, args=(("m, n", dtype),))
        for length in LENGTHS:
            x = rows_of(length, dtype)
            wide = x.astype(np.float64) if "float" in dtype else x
            expected = np.argmax(wide, 1), np.argmin(wide, 1), np.argmax(wide, 0), np.argmin(wide)
            for found, right in zip(executable(x), expected, strict=True):
                np.testing.assert_array_equal(np.asarray(found), right)


def test_beside_other_reductions() -> None:
    """All of them are done by lanes, in one kernel."""

    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        p = jax.nn.softmax(x)
        return p, jnp.argmax(p, 1), jnp.argmax(x, 1), x.max(1)

    executable = shlo_disc.compile(function, args=(("m, n", "float32"),))
    assert len(executable.kernels) == 1
    for length in LENGTHS:
        x = np.random.default_rng(length).integers(0, 5, (9, length)).astype(np.float32)
        p, of_p, of_x, largest = map(np.asarray, executable(x))
        np.testing.assert_allclose(p, jax.nn.softmax(x), rtol=2e-6)
        np.testing.assert_array_equal(of_p, np.argmax(p, 1))
        np.testing.assert_array_equal(of_x, np.argmax(x, 1))
        np.testing.assert_array_equal(largest, x.max(1))


PROGRAM = """
func.func @main(%x: tensor<3x?xf32>) -> (tensor<3xf32>, tensor<3xi32>) {
  %a0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<1xi32>
  %n = stablehlo.get_dimension_size %x, dim = 1 : (tensor<3x?xf32>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %d = stablehlo.concatenate %three, %n1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %p = stablehlo.dynamic_iota %d, dim = 1 : (tensor<2xi32>) -> tensor<3x?xi32>
  %r:2 = stablehlo.reduce(%x init: %a0), (%p init: %i0) across dimensions = [1]
      : (tensor<3x?xf32>, tensor<3x?xi32>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
      BODY
      stablehlo.return %7, %8 : tensor<f32>, tensor<i32>
    }
  return %r#0, %r#1 : tensor<3xf32>, tensor<3xi32>
}"""

BODIES = {
    "first": lambda a, i, b, j: (a > b or a != a, (a == b and i < j)),
    "last": lambda a, i, b, j: (a > b or a != a, (a == b and i > j)),
    "passes over NaN": lambda a, i, b, j: (a > b or b != b, (a == b and i < j)),
    "first place": lambda a, i, b, j: (a > b or a != a, (a == b or i < j)),
    "forgets NaN": lambda a, i, b, j: (a > b, (a == b and i < j)),
    "other place": lambda a, i, b, j: (a > b or a != a, (a == b and i == j)),
}
"""For two pairs, whether the first value is taken, and whether the first place is taken nevertheless."""


@pytest.mark.parametrize("name", BODIES)
def test_bodies_in_their_order(name: str) -> None:
    """Bodies that make something else of NaNs and equal values: as if elements were combined one after the other."""
    ops = {
        "first": "", "last": "LT, %i, %j->GT, %i, %j", "passes over NaN": "NE, %a, %a->NE, %b, %b",
        "first place": "%5 = stablehlo.and->%5 = stablehlo.or", "forgets NaN": "NE, %a, %a->LT, %a, %a",
        "other place": "LT, %i, %j->EQ, %i, %j",
    }[name]  # fmt: skip
    program = PROGRAM.replace("BODY", ARGMAX.replace(*ops.split("->")) if ops else ARGMAX)
    executable = shlo_disc.compile(program)
    for length in LENGTHS:
        x = np.array(rows_of(length, "float32")[-5:-2])
        values, places = map(np.asarray, executable(x))
        for row, value, place in zip(x, values, places, strict=True):
            best, where = np.float32(-np.inf), 0
            for number, element in enumerate(row):
                is_value, is_place = BODIES[name](best, where, element, number)
                where = where if is_value or is_place else number
                best = best if is_value else element
            np.testing.assert_array_equal([best, where], [value, place])
