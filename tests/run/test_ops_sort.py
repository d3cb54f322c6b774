# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""sort: any comparator, any axis, several operands, stability; and what JAX builds from it."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

import shlo_disc
from shlo_disc.errors import ProgramError, ShapeError, UnsupportedError
from tests.run.op_check import DTYPES, Sizes, check, check_text, random_array, small_integers

LENGTHS = (1, 2, 15, 16, 17, 31, 33, 97, 300)
SIZES: list[Sizes] = [{"n": n} for n in LENGTHS]
MATRICES: list[Sizes] = [
    {"m": m, "n": n} for m, n in [(1, 1), (2, 3), (17, 5), (3, 16), (5, 33), (16, 17), (300, 2), (2, 300)]
]


def special(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    """Few distinct values, both zeros, infinities and NaNs of both signs among them."""
    found = small_integers(shape, dtype, seed) - small_integers(shape, dtype, seed + 1)
    flat = found.reshape(-1)
    if found.dtype.kind == "f":
        for start, value in enumerate((np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf)):
            flat[start :: 7 + seed % 3] = value
    return found


@pytest.mark.parametrize("dtype", DTYPES)
def test_sort_and_argsort(dtype: str) -> None:
    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        return jnp.sort(x), jnp.argsort(x)

    inputs = small_integers if dtype == "bool" else random_array
    check(function, [("n", dtype)], SIZES[1::3], inputs=inputs)


@pytest.mark.parametrize("dtype", ("float32", "float64", "float16"))
def test_equal_elements_zeros_and_nans(dtype: str) -> None:
    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        ascending, places = lax.sort((x, jnp.arange(x.shape[0])), num_keys=1)
        return jnp.isnan(ascending), jnp.nan_to_num(ascending), places, jnp.argsort(x, descending=True)

    check(function, [("n", dtype)], SIZES, inputs=special)


def test_axes() -> None:
    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        cube = jnp.stack([x, -x, x * 3], axis=1)
        return (
            jnp.sort(x, axis=0),
            jnp.argsort(x, axis=1),
            jnp.sort(cube, axis=0),
            jnp.argsort(cube, axis=1),
            jnp.sort(x, axis=None),
        )

    check(function, [("m, n", "float32")], MATRICES)


def sorted_and_more(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    """Values computed before a sort go into its kernel, those computed after it read its result."""
    ordered = jnp.sort(jnp.abs(x) + y)
    return ordered * 2 - ordered[:, ::-1], jnp.sort(jnp.concatenate([x, x[:, ::2]], axis=1)), ordered.sum(0)


def sorted_by_keys(x: jax.Array, y: jax.Array, z: jax.Array) -> tuple[jax.Array, ...]:
    """By one, two and three of three operands."""
    return (
        *lax.sort((x, y, z), num_keys=1),
        *lax.sort((x, y, z), num_keys=2),
        *lax.sort((x, y, z), num_keys=3, dimension=0),
        jnp.lexsort((z, y, x)),
    )


def test_several_operands_and_keys() -> None:
    specs = [("m, n", "int8"), ("m, n", "float32"), ("m, n", "uint64")]
    check(sorted_by_keys, specs, MATRICES, inputs=small_integers)


def test_computed_operands() -> None:
    check(sorted_and_more, [("m, n", "float32"), ("n", "float32")], MATRICES, ulps=64, floor=1.0)


@pytest.mark.slow
def test_order_statistics() -> None:
    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        return jnp.median(x), jnp.median(x, axis=0), jnp.percentile(x, 30.0, axis=1), jnp.quantile(x, 0.9)

    check(function, [("m, n", "float32")], MATRICES, ulps=4, floor=1.0)


def test_ranks() -> None:
    """jax.export wants the size of the table that is searched to be a number."""
    table = np.array([-3, 0, 0, 1, 2, 2, 2, 4], np.int32)

    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        return (
            jnp.searchsorted(table, x, side="right", method="compare_all"),
            jnp.argsort(jnp.argsort(x)),
        )

    check(function, [("n", "int32")], SIZES[::2], inputs=small_integers)


def test_long_rows() -> None:
    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        return jnp.sort(x), jnp.argsort(x, descending=True)

    check(function, [("n", "float32")], [{"n": n} for n in (4095, 4096, 4097, 65537)])


def test_top_k() -> None:
    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        wide = jnp.concatenate([x, -x, x * 2], axis=1)
        return (
            *lax.top_k(wide, 2),
            *lax.top_k(wide, x.shape[1]),
            *lax.top_k(wide[:, 0], x.shape[0]),
            *lax.top_k(wide.astype(jnp.int32), x.shape[1]),
            *lax.approx_max_k(wide, x.shape[1]),
            *lax.approx_min_k(wide, 2),
            *lax.approx_max_k(wide, x.shape[0], reduction_dimension=0),
        )

    check(function, [("m, n", "float32")], MATRICES)


@pytest.mark.parametrize("dtype", ("float32", "float16", "bfloat16", "float64", "uint8", "int64"))
def test_selection(dtype: str) -> None:
    """Few elements of a row are selected, not sorted: one after the other below the vector's width, then by vectors."""

    def function(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        return *lax.top_k(jnp.concatenate([x, x], axis=1), 2), lax.top_k(y, 1)[1], lax.top_k(y[:, ::-1] // 1, 1)[0]

    inputs = random_array if dtype in ("uint8", "int64") else special
    sizes: list[Sizes] = [{"m": 1, "n": 1}, {"m": 3, "n": 9}, {"m": 17, "n": 33}, {"m": 2, "n": 300}]
    executable = check(function, [("m, n", dtype), ("m, n", dtype)], sizes, inputs=inputs)
    assert [k.kind for k in executable.kernels].count("top_k") == 3
    assert executable.memory(m=10, n=1000).arena_bytes < 1000


def test_selection_from_long_rows() -> None:
    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        return lax.top_k(jnp.pad(x, (0, 64)), 64), lax.top_k(jnp.pad(-jnp.sort(x), (0, 7)), 7)

    check(function, [("n", "float32")], [{"n": n} for n in (1, 63, 64, 65, 1000, 70001)])


@pytest.mark.parametrize("dtype", ("float16", "bfloat16", "float64", "uint8", "int64"))
def test_top_k_of_other_types(dtype: str) -> None:
    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        return *lax.top_k(x, x.shape[0]), *lax.top_k(jnp.concatenate([x, x]), 2)

    inputs = random_array if dtype in ("uint8", "int64") else special
    check(function, [("n", dtype)], SIZES[1::3], inputs=inputs)


@pytest.mark.slow
def test_unique_and_histograms() -> None:
    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        return *jnp.unique(x, size=7, return_counts=True, fill_value=-1), jnp.unique(x, size=3, return_index=True)[1]

    check(function, [("n", "int32")], SIZES[::2], inputs=small_integers)


@pytest.mark.slow
def test_inside_of_loops_and_branches() -> None:
    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        def step(c: jax.Array, _: None) -> tuple[jax.Array, tuple[jax.Array, ...]]:
            best, places = lax.top_k(jnp.pad(c * 2 + 1, (0, 3)), 3)
            return c.at[places % c.shape[0]].add(best), (best, places)

        repeated = lax.fori_loop(0, 3, lambda i, c: jnp.sort(c * -1 + i), x)
        chosen = lax.cond(x[0] > 0, jnp.sort, lambda c: -jnp.sort(-c, descending=True), x)
        return repeated, lax.scan(step, x, None, length=4)[1], chosen

    check(function, [("n", "float32")], [{"n": n} for n in (3, 4, 16, 17, 100)], ulps=4, floor=1.0)


COMPARATOR = """func.func @main(%x: tensor<{shape}xf32>, %y: tensor<{shape}xi32>)
    -> (tensor<{shape}xf32>, tensor<{shape}xi32>) {{
  %r:2 = "stablehlo.sort"(%x, %y) <{{dimension = {axis} : i64, is_stable = {stable}}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
      {body}
      stablehlo.return %p : tensor<i1>
  }}) : (tensor<{shape}xf32>, tensor<{shape}xi32>) -> (tensor<{shape}xf32>, tensor<{shape}xi32>)
  return %r#0, %r#1 : tensor<{shape}xf32>, tensor<{shape}xi32> }}"""

BODIES = {
    "by the second, falling": "%p = stablehlo.compare GT, %c, %d : (tensor<i32>, tensor<i32>) -> tensor<i1>",
    "by magnitude": """%e = stablehlo.abs %a : tensor<f32>
      %f = stablehlo.abs %b : tensor<f32>
      %p = stablehlo.compare LT, %e, %f : (tensor<f32>, tensor<f32>) -> tensor<i1>""",
    "by total order": "%p = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>",
    "by the last digit": """%k = stablehlo.constant dense<10> : tensor<i32>
      %e = stablehlo.remainder %c, %k : tensor<i32>
      %f = stablehlo.remainder %d, %k : tensor<i32>
      %p = stablehlo.compare LT, %e, %f : (tensor<i32>, tensor<i32>) -> tensor<i1>""",
}


@pytest.mark.parametrize("name", BODIES)
def test_comparators(name: str) -> None:
    text = COMPARATOR.format(shape="?x?", axis=-1, stable="true", body=BODIES[name])

    def call(m: int, n: int) -> list[np.ndarray]:
        return [random_array((m, n), "float32"), small_integers((m, n), "int32", m) * 7]

    check_text(text, [call(*s) for s in [(1, 1), (3, 17), (17, 16), (0, 5), (5, 0), (2, 130)]])


@pytest.mark.parametrize("direction", ("GE", "NE", "EQ"))
def test_comparators_that_are_no_order(direction: str) -> None:
    """Any answer is allowed that is a permutation of each row; nothing outside of the row is touched."""
    body = f"%p = stablehlo.compare {direction}, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>"
    executable = shlo_disc.compile(COMPARATOR.format(shape="?x?", axis=1, stable="false", body=body))
    for m, n in [(1, 1), (3, 50), (4, 17)]:
        x, y = small_integers((m, n), "float32", n), np.tile(np.arange(n, dtype=np.int32), (m, 1))
        keys, places = (np.asarray(r) for r in executable(x, y))
        assert (np.sort(places, axis=1) == y).all()
        assert (np.take_along_axis(x, places, axis=1) == keys).all()


def test_only_one_result_is_used() -> None:
    """The kernel's other results and its work space are in the arena and are free afterwards."""

    def function(x: jax.Array) -> jax.Array:
        return jnp.argsort(jnp.argsort(x) * -1)

    executable = check(function, [("n", "int32")], SIZES[::2])
    assert executable.memory(n=64).arena_bytes == 4 * 64 * 8


APPROXIMATE = """
func.func private @above(%p0: tensor<f32>, %p1: tensor<f32>, %p2: tensor<i32>, %p3: tensor<i32>) -> tensor<i1> {
  %s = stablehlo.compare GT, %p0, %p1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %s : tensor<i1>
}
func.func @main(%a0: tensor<?x9xf32>, %a1: tensor<OTHERxi32>) -> (tensor<?x5xf32>, tensor<?x5xi32>) {
  %least = stablehlo.constant dense<0.0> : tensor<f32>
  %none = stablehlo.constant dense<-1> : tensor<i32>
  %s:2 = stablehlo.custom_call @ApproxTopK(%a0, %a1, %least, %none) {
    called_computations = [@above], mhlo.backend_config = {reduction_dim = 1 : i64, top_k = 5 : i64}}
    : (tensor<?x9xf32>, tensor<OTHERxi32>, tensor<f32>, tensor<i32>) -> (tensor<?x5xf32>, tensor<?x5xi32>)
  return %s#0, %s#1 : tensor<?x5xf32>, tensor<?x5xi32>
}
"""


def test_an_approximate_top_k_selects_from_operands_of_equal_sizes() -> None:
    run = shlo_disc.compile(APPROXIMATE.replace("OTHER", "?x9"))
    values, places = np.arange(27, dtype=np.float32).reshape(3, 9), np.tile(np.arange(9, dtype=np.int32), (3, 1))
    np.testing.assert_array_equal(run(values, places)[1], np.tile(np.arange(8, 3, -1), (3, 1)))
    with pytest.raises(ShapeError):
        run(values, places[:2])
    with pytest.raises(UnsupportedError, match="several ranks"):
        shlo_disc.compile(APPROXIMATE.replace("OTHER", "?x9x2"))
    with pytest.raises(ProgramError, match="must be equal and never are"):
        shlo_disc.compile(APPROXIMATE.replace("OTHER", "?x8"))


STATED = """func.func public @main(%x: tensor<?x?xf32>) -> (tensor<?x2xf32>, tensor<?x2xi32>) {
  %0:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 2 : i64, largest = true}, mhlo.version = 1 : i64}
    : (tensor<?x?xf32>) -> (tensor<?x2xf32>, tensor<?x2xi32>)
  return %0#0, %0#1 : tensor<?x2xf32>, tensor<?x2xi32>
}
"""


def test_a_top_k_whose_count_is_an_attribute() -> None:
    shapes = [(1, 2), (2, 15), (3, 16), (5, 17), (17, 2), (16, 97), (3, 300)]
    check_text(STATED, [[special(shape, "float32", 0)] for shape in shapes], static=2)
    values = [small_integers(shape, "float32") for shape in shapes]
    smallest = shlo_disc.compile(STATED.replace("largest = true", "largest = false"))
    for x in values:
        np.testing.assert_array_equal(smallest(x)[1], np.argsort(x, axis=1, kind="stable")[:, :2])
    with pytest.raises(ShapeError):
        smallest(values[0][:, :1])
    with pytest.raises(UnsupportedError, match="without its number k"):
        shlo_disc.compile(STATED.replace("k = 2 : i64, ", ""))
    with pytest.raises(UnsupportedError, match="largest is true or false"):
        shlo_disc.compile(STATED.replace("largest = true", "largest = 1 : i64"))
