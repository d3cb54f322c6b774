# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of lines on GPUs: sorts, selections, cumulative ops, and the positions of what is true, as whole programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shlo_disc.numpy as data_sizes
from shlo_disc.errors import UnsupportedError
from shlo_disc.lowering_gpu import device_module
from shlo_disc.runtime import Client
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from tests.gpu.checks import check, check_text, compiled
from tests.gpu.emulated import loaded
from tests.gpu.marks import needs_mock_driver
from tests.ir.gpu_emulator import Emulator
from tests.run.op_check import DTYPES, Sizes, random_array, small_integers
from tests.run.test_ops_sort import BODIES, COMPARATOR, sorted_and_more, sorted_by_keys, special

pytestmark = needs_mock_driver

LENGTHS = (1, 2, 31, 32, 33, 255, 256, 257, 1000)
SIZES: list[Sizes] = [{"n": n} for n in LENGTHS]
MATRICES: list[Sizes] = [{"m": m, "n": n} for m, n in [(1, 1), (2, 3), (3, 33), (33, 2)]]
FLOATS = ("float32", "float64", "float16", "bfloat16")


def kinds(executable: Any) -> list[str]:
    return [kernel.kind for kernel in executable.kernels]


# ---- sorts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_sorts_of_every_type(dtype: str) -> None:
    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        return jnp.sort(x), jnp.argsort(x)

    inputs = small_integers if dtype == "bool" else random_array
    executable = check(function, [("n", dtype)], SIZES, inputs=inputs)
    assert kinds(executable).count("sort") == 2


@pytest.mark.parametrize("dtype", FLOATS)
def test_equal_elements_zeros_and_nans(dtype: str) -> None:
    """Ties stay in their order, both ways; every bit of an element comes with it."""

    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        ascending, places = lax.sort((x, jnp.arange(x.shape[0])), num_keys=1)
        return jnp.isnan(ascending), jnp.nan_to_num(ascending), places, jnp.argsort(x, descending=True)

    inputs = special if dtype != "bfloat16" else small_integers
    check(function, [("n", dtype)], SIZES[1:], inputs=inputs)


@pytest.mark.slow
def test_axes() -> None:
    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        cube = jnp.stack([x, -x, x * 3], axis=1)
        return jnp.sort(x, axis=0), jnp.argsort(x, axis=1), jnp.sort(cube, axis=1), jnp.sort(x, axis=None)

    check(function, [("m, n", "float32")], MATRICES)


@pytest.mark.slow
def test_several_operands_and_keys() -> None:
    specs = [("m, n", "int8"), ("m, n", "float32"), ("m, n", "uint64")]
    check(sorted_by_keys, specs, MATRICES, inputs=small_integers)


def test_computed_operands() -> None:
    check(sorted_and_more, [("m, n", "float32"), ("n", "float32")], MATRICES, ulps=64, floor=1.0)


def many_keys(count: int) -> Any:
    """Sorts of so many operands that only a few of their elements fit into shared memory: all is merged."""

    def function(x: jax.Array) -> Any:
        return lax.sort([(x * number) % 5 for number in range(count)] + [x], num_keys=count)[-1]

    return function


@pytest.mark.parametrize(("count", "lengths"), [(2, (1500, 2049)), (30, (1, 127, 128, 129, 400))])
def test_passes_over_long_lines(count: int, lengths: tuple[int, ...]) -> None:
    sizes: list[Sizes] = [{"n": n} for n in lengths]
    check(many_keys(count), [("n", "int64")], sizes, inputs=small_integers)


@pytest.mark.parametrize("name", BODIES)
def test_comparators(name: str) -> None:
    text = COMPARATOR.format(shape="?x?", axis=-1, stable="true", body=BODIES[name])

    def call(m: int, n: int) -> list[np.ndarray]:
        return [random_array((m, n), "float32"), small_integers((m, n), "int32", m) * 7]

    check_text(text, [call(*s) for s in [(1, 1), (3, 17), (0, 5), (5, 0), (2, 130), (1, 700)]])


@pytest.mark.parametrize("direction", ("GE", "NE", "EQ"))
def test_comparators_that_are_no_order(client: Client, direction: str) -> None:
    """Any answer is allowed that is a permutation of each row; nothing outside of the row is touched."""
    body = f"%p = stablehlo.compare {direction}, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>"
    run = loaded(compiled(COMPARATOR.format(shape="?x?", axis=1, stable="false", body=body)), client)
    for m, n in [(1, 1), (3, 50), (1, 513), (2, 1200)]:
        x, y = small_integers((m, n), "float32", n), np.tile(np.arange(n, dtype=np.int32), (m, 1))
        keys, places = (np.asarray(r) for r in run(x, y))
        assert (np.sort(places, axis=1) == y).all()
        assert (np.take_along_axis(x, places, axis=1) == keys).all()


@pytest.mark.slow
def test_sorts_in_loops_and_order_statistics() -> None:
    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        repeated = lax.fori_loop(0, 3, lambda i, c: jnp.sort(c * -1 + i), x)
        return repeated, jnp.median(x), jnp.quantile(x, 0.9)

    check(function, [("n", "float32")], [{"n": n} for n in (1, 5, 300)], ulps=4, floor=1.0)


# ---- selections -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", (*FLOATS, "uint8", "int64"))
def test_selections(dtype: str) -> None:
    def function(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        return *lax.top_k(jnp.concatenate([x, x], axis=1), 2), lax.top_k(y, 1)[1], lax.top_k(y[:, ::-1] * 2, 1)[0]

    inputs = special if dtype in FLOATS and dtype != "bfloat16" else random_array
    executable = check(function, [("m, n", dtype), ("m, n", dtype)], MATRICES, inputs=inputs)
    assert kinds(executable).count("top_k") == 3


@pytest.mark.slow
def test_selections_from_long_lines() -> None:
    """Better elements come all the time, or never, or are equal to what is there."""

    def function(x: jax.Array) -> tuple[Any, ...]:
        return (
            lax.top_k(jnp.pad(x, (0, 64)), 64),
            lax.top_k(jnp.arange(x.shape[0] + 7) % 100 + x[0], 7),
            lax.top_k(-jnp.arange(x.shape[0] + 7) + x[0], 7),
        )

    check(function, [("n", "float32")], [{"n": n} for n in (1, 448, 449, 1300)])


@pytest.mark.parametrize(("count", "k"), [(12, 64), (30, 30)])
def test_selections_of_many_operands(count: int, k: int) -> None:
    """A tile has twice as many slots as are selected, however many operands there are."""

    def function(x: jax.Array) -> Any:
        keys = [(x * number) % 5 for number in range(1, count)]
        return [lax.slice_in_dim(found, 0, k) for found in lax.sort([*keys, x], num_keys=count - 1)]

    executable = check(function, [(f"n + {k}", "int64")], [{"n": 1}, {"n": 300}], inputs=small_integers)
    assert "top_k" in kinds(executable)


def test_too_many_operands_for_a_block_are_refused() -> None:
    def function(x: jax.Array) -> Any:
        return [lax.slice_in_dim(found, 0, 64) for found in lax.sort([x * number for number in range(50)])]

    with pytest.raises(UnsupportedError, match="50 operands do not fit into the shared memory") as caught:
        compiled(function, [("n + 64", "int64")])
    assert "test_lines.py" in caught.value.constructs[0].location


# ---- cumulative ops -------------------------------------------------------------------------------------------------

CUMULATIVE = {"cumsum": lax.cumsum, "cumprod": lax.cumprod, "cummax": lax.cummax, "cummin": lax.cummin}


@pytest.mark.parametrize("dtype", ("float32", "float64", "float16", "bfloat16", "int8", "int32", "uint64"))
@pytest.mark.parametrize("name", CUMULATIVE)
def test_cumulative_ops(name: str, dtype: str) -> None:
    cumulate = CUMULATIVE[name]

    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        return cumulate(x), cumulate(x, reverse=True)

    def inputs(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        found = random_array(shape, dtype, seed)
        if name != "cumprod" or found.dtype.kind in "iu":
            return found
        return np.sign(found).astype(found.dtype)  # products of any order are the same

    ulps = 64 if name == "cumsum" else 0
    executable = check(function, [("n", dtype)], SIZES, inputs=inputs, ulps=ulps, scaled=ulps > 0)
    assert set(kinds(executable)) == {"scan"}


@pytest.mark.slow
def test_cumulative_ops_along_every_axis() -> None:
    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        cube = jnp.stack([x, -x], axis=1) * 2
        return jnp.cumsum(x, 0), jnp.cumsum(x, 1), lax.cummax(cube, 1), lax.cummin(cube, 0), jnp.cumsum(x * 2 - 1, None)

    check(function, [("m, n", "float32")], MATRICES, ulps=64, scaled=True)


@pytest.mark.slow
def test_cumulative_ops_of_nan_and_infinity() -> None:
    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        return jnp.isnan(lax.cumsum(x)), jnp.isnan(lax.cummax(x)), lax.cumsum(jnp.where(jnp.isnan(x), jnp.inf, x))

    def inputs(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        found = np.zeros(shape, dtype)
        found[shape[0] * 2 // 3 :] = np.nan
        return found

    check(function, [("n", "float32")], SIZES, inputs=inputs)


@pytest.mark.slow
def test_logarithms_of_sums_and_gradients() -> None:
    def loss(x: jax.Array) -> jax.Array:
        return (jnp.cumsum(jnp.sin(x)) * jnp.cumsum(x, axis=0) * x).sum()

    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        return lax.cumlogsumexp(x), lax.cumlogsumexp(x, reverse=True), jax.grad(loss)(x)

    check(function, [("n", "float32")], [{"n": n} for n in (1, 2, 33, 257)], ulps=512, floor=16.0)


def last_of(n: int, low: int, high: int) -> str:
    """In each prefix, or suffix, the last element that is not zero, and where the largest is: the order counts."""
    t = f"tensor<{n}xi32>"
    return f"""func.func @main(%x: {t}, %i: {t}) -> ({t}, {t}, {t}) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %least = stablehlo.constant dense<{-(2**31)}> : tensor<i32>
  %a = "stablehlo.reduce_window"(%x, %zero) <{{window_dimensions = array<i64: {n}>,
      padding = dense<[[{low}, {high}]]> : tensor<1x2xi64>}}> ({{
    ^bb0(%p: tensor<i32>, %q: tensor<i32>):
      %none = stablehlo.constant dense<0> : tensor<i32>
      %c = stablehlo.compare NE, %q, %none : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %s = stablehlo.select %c, %q, %p : tensor<i1>, tensor<i32>
      stablehlo.return %s : tensor<i32>
  }}) : ({t}, tensor<i32>) -> {t}
  %b:2 = "stablehlo.reduce_window"(%x, %i, %least, %least) <{{window_dimensions = array<i64: {n}>,
      padding = dense<[[{low}, {high}]]> : tensor<1x2xi64>}}> ({{
    ^bb0(%p: tensor<i32>, %pi: tensor<i32>, %q: tensor<i32>, %qi: tensor<i32>):
      %c = stablehlo.compare GE, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %s = stablehlo.select %c, %p, %q : tensor<i1>, tensor<i32>
      %si = stablehlo.select %c, %pi, %qi : tensor<i1>, tensor<i32>
      stablehlo.return %s, %si : tensor<i32>, tensor<i32>
  }}) : ({t}, {t}, tensor<i32>, tensor<i32>) -> ({t}, {t})
  return %a, %b#0, %b#1 : {t}, {t}, {t} }}"""


@pytest.mark.parametrize("is_forward", (True, False))
@pytest.mark.parametrize("n", (1, 2, 33, 257, 1500))
def test_bodies_whose_order_counts(client: Client, n: int, is_forward: bool) -> None:
    low, high = (n - 1, 0) if is_forward else (0, n - 1)
    run = loaded(compiled(last_of(n, low, high)), client)
    x = small_integers((n,), "int32", n) * (np.arange(n, dtype=np.int32) % 3 == 0) % 4
    last, largest, place = (np.asarray(r) for r in run(x.astype(np.int32), np.arange(n, dtype=np.int32)))
    for i in range(n):
        window = x[: i + 1] if is_forward else x[i:]
        nonzero = window[window != 0]
        assert last[i] == (nonzero[-1] if len(nonzero) else 0)
        assert largest[i] == window.max()
        assert place[i] == window.argmax() + (0 if is_forward else i)


def test_sums_of_many_are_as_exact_as_those_of_few(client: Client) -> None:
    """0.1 added a thousand times is off by some units of the last place of the sum, whatever comes before."""
    run = loaded(compiled(lambda x: jnp.cumsum(x), [("n", "float32")]), client)
    x = np.full(20_000, 0.1, np.float32)
    want = np.cumsum(x.astype(np.float64))
    assert np.abs(np.asarray(run(x)) - want).max() <= 2 * np.spacing(np.float32(want[-1]))


# ---- positions ------------------------------------------------------------------------------------------------------


def masks(n: int) -> Iterator[np.ndarray]:
    yield np.zeros(n, np.float32)
    yield np.ones(n, np.float32)
    yield (random_array((n,), "float32", n) > 0.5).astype(np.float32)


@pytest.mark.slow
def test_positions_of_what_is_true(client: Client) -> None:
    def function(x: Any) -> Any:
        places = data_sizes.flatnonzero(x)
        return places, data_sizes.boolean_index(x * 2, x != 0), places.astype(jnp.float32).sum()

    run = loaded(compiled(function, [("n", "float32")]), client)
    for n in LENGTHS:
        for x in masks(n):
            places, kept, total = (np.asarray(r) for r in run(x))
            np.testing.assert_array_equal(places, np.flatnonzero(x))
            np.testing.assert_array_equal(kept, (x * 2)[x != 0])
            assert total == np.flatnonzero(x).sum()


@pytest.mark.slow
def test_all_goes_on_with_a_size_of_data(client: Client) -> None:
    def function(x: Any) -> Any:
        y = x[data_sizes.nonzero(x)]
        return data_sizes.nonzero(x), jax.nn.softmax(y), jnp.sort(y), jnp.cumsum(y), data_sizes.unique(x.reshape(-1))

    run = loaded(compiled(function, [("b, s", "float32")]), client)
    for shape, modulus in [((1, 1), 3), ((3, 5), 3), ((16, 17), 3), ((4, 9), 1)]:  # at last there is nothing left
        x = small_integers(shape, "float32", shape[1]) % modulus
        index, soft, ordered, sums, different = jax.tree.map(np.asarray, run(x))
        y = x[np.nonzero(x)]
        np.testing.assert_array_equal(np.stack(index), np.stack(np.nonzero(x)))
        np.testing.assert_allclose(soft, np.exp(y) / np.exp(y).sum(), rtol=1e-5)
        np.testing.assert_array_equal(ordered, np.sort(y))
        np.testing.assert_allclose(sums, np.cumsum(y), rtol=1e-6)
        np.testing.assert_array_equal(different, np.unique(x))


# ---- products in loops ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ("int16", "int64", "uint16", "bool"))
def test_products_of_types_that_no_library_has(dtype: str) -> None:
    def function(x: jax.Array, y: jax.Array) -> jax.Array:
        return lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,))))

    specs = [("b, m, k", dtype), ("b, k, 3", dtype)]
    sizes: list[Sizes] = [{"b": 1, "m": 1, "k": 1}, {"b": 2, "m": 7, "k": 33}, {"b": 3, "m": 31, "k": 5}]
    executable = check(function, specs, sizes, inputs=random_array)
    assert kinds(executable) == ["dot"]


@pytest.mark.parametrize("dtype", ("float32", "int32", "float64"))
def test_convolutions(dtype: str) -> None:
    def function(x: jax.Array, w: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
        names = ("NHWC", "HWIO", "NHWC")
        return (
            lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=names),
            lax.conv_general_dilated(x, w, (2, 1), ((1, 2), (0, 1)), rhs_dilation=(1, 2), dimension_numbers=names),
            lax.conv_general_dilated(x, v, (1, 2), "VALID", dimension_numbers=names, feature_group_count=2),
            lax.conv_general_dilated(x, v[:, :, :, :2], (1, 1), "SAME", dimension_numbers=names, feature_group_count=2),
        )

    specs = [("b, h, 9, 4", dtype), ("3, 2, 4, 5", dtype), ("2, 3, 2, 6", dtype)]
    sizes: list[Sizes] = [{"b": 1, "h": 4}, {"b": 2, "h": 9}]
    check(function, specs, sizes, inputs=small_integers)


# ---- what keeps threads apart ---------------------------------------------------------------------------------------

LINES = {
    "sort": lambda x: jnp.sort(x, axis=1),
    "scan": lambda x: jnp.cumsum(x, axis=1),
    "top_k": lambda x: lax.top_k(x, 5)[0],
}


def launches_without(name: str, barrier: int) -> None:
    """Run a kernel, one of whose barriers is left out, on two lines in one block: of one, the best come first."""
    # More lines than are split over blocks.
    text = compiled(LINES[name], [("b + 132, s + 5", "float32")]).as_text("host")
    pieces = re.split(r"(?<=\n) *gpu\.barrier\n", text)
    assert barrier < len(pieces) - 1
    barriers = ["gpu.barrier\n"] * (len(pieces) - 1)
    barriers[barrier] = ""
    text = "".join(a + b for a, b in zip(pieces, [*barriers, ""], strict=True))
    rows = np.stack([np.arange(1600), -np.arange(1600)]).astype(np.float32)
    with make_context(), ir.Location.unknown():
        emulator = Emulator(device_module(ir.Module.parse(text)))
        ((kernel, function),) = emulator.functions.items()
        count = sum(isinstance(a.type, ir.MemRefType) for a in function.regions[0].blocks[0].arguments)
        outputs = [np.zeros(rows.size, np.float32) for _ in range(count - 1)]
        emulator.launch(kernel, 1, [rows.reshape(-1), *outputs], list(rows.shape))


@pytest.mark.parametrize(("name", "barrier"), [("scan", 0), ("scan", 1)] + [
    ("sort", number) for number in (0, 1, 3, 4, 5, 6)  # the other one is for tiles of many operands
] + [
    ("top_k", number) for number in range(6)
])  # fmt: skip
def test_no_barrier_can_be_left_out(name: str, barrier: int) -> None:
    with pytest.raises(AssertionError, match="two threads touch one element"):
        launches_without(name, barrier)
