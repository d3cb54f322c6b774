# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows over arrays with some symbolic sizes, and windows whose padding or size is data."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shlo_disc
from shlo_disc.errors import ShapeError
from tests.run.op_check import check

PLAIN = shlo_disc.Options(max_fusions=0, reuse=False, guard_pages=True)
GUARDED = shlo_disc.Options(guard_pages=True)
BY_OPTIONS = pytest.mark.parametrize("options", [GUARDED, PLAIN], ids=["fused", "plain"])

HEIGHTS = [{"b": 2, "h": h} for h in (1, 2, 3, 17)]


@pytest.mark.parametrize("shape", ["b, h, 7, 2", "b, 8, h, 2"])
@pytest.mark.parametrize("window, strides", [((2, 2), (2, 2)), ((3, 3), (2, 2)), ((2, 3), (3, 1))])
def test_pooling_of_an_image_with_one_symbolic_side(
    shape: str, window: tuple[int, int], strides: tuple[int, int]
) -> None:
    def largest(x: jax.Array) -> jax.Array:
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, *window, 1), (1, *strides, 1), "SAME")

    check(largest, [(shape, "float32")], HEIGHTS, static=0)


def test_averages_count_the_elements_of_each_window() -> None:
    def average(x: jax.Array) -> jax.Array:
        def total(y: jax.Array) -> jax.Array:
            return lax.reduce_window(y, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")

        return total(x) / total(jnp.ones_like(x))

    check(average, [("b, h, 7, 2", "float32")], HEIGHTS, ulps=8, floor=1.0, static=0)


@pytest.mark.parametrize("dilation", ["window_dilation", "base_dilation"])
def test_dilated_windows(dilation: str) -> None:
    def smallest(x: jax.Array) -> jax.Array:
        options = {dilation: (1, 2, 2, 1)}
        return lax.reduce_window(x, jnp.inf, lax.min, (1, 2, 3, 1), (1, 2, 2, 1), "SAME", **options)

    check(smallest, [("b, h, 7, 2", "float32")], HEIGHTS, static=0)


def test_a_static_result_of_a_symbolic_padding() -> None:
    def kept(x: jax.Array) -> jax.Array:
        return lax.reduce_window(x, 0.0, lax.add, (1, 2), (1, 1), ((0, 0), (x.shape[0], 2 - x.shape[0])))

    check(kept, [("b, 5", "float32")], [{"b": b} for b in (1, 2, 3, 4, 7)], ulps=4, floor=1.0)


# ---- padding and data-dependent sizes --------------------------------------------------------------------------------

CONVOLUTION = """
func.func @main(%x: tensor<X>, %w: tensor<3x2x3x4xf32>, %p: tensor<2x2xi32>) -> tensor<Y> {
  %r = "stablehlo.dynamic_conv"(%x, %w, %p) <{
    dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64,
    batch_group_count = 1 : i64, window_strides = array<i64: 2, 1>
  }> : (tensor<X>, tensor<3x2x3x4xf32>, tensor<2x2xi32>) -> tensor<Y>
  return %r : tensor<Y>
}
"""


@BY_OPTIONS
@pytest.mark.parametrize(
    "types", [("?x?x?x3xf32", "?x?x?x4xf32"), ("2x8x9x3xf32", "2x?x?x4xf32"), ("2x8x9x3xf32", "2x4x8x4xf32")]
)
def test_a_convolution_whose_padding_is_an_argument(types: tuple[str, str], options: shlo_disc.Options) -> None:
    executable = shlo_disc.compile(CONVOLUTION.replace("X", types[0]).replace("Y", types[1]), options=options)
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 8, 9, 3)).astype("f"), rng.standard_normal((3, 2, 3, 4)).astype("f")
    for padding in ([[0, 0], [0, 0]], [[1, 1], [0, 0]], [[1, 2], [0, 3]], [[3, 0], [1, 0]]):
        want = lax.conv_general_dilated(x, w, (2, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))
        if "?" not in types[1] and want.shape != (2, 4, 8, 4):
            with pytest.raises(ShapeError, match="reads from data does not fit"):
                executable(x, w, np.array(padding, "int32"))
            continue
        (got,) = jax.tree.leaves(executable(x, w, np.array(padding, "int32")))
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_padding_that_leaves_less_than_nothing_is_refused() -> None:
    executable = shlo_disc.compile(CONVOLUTION.replace("X", "?x?x?x3xf32").replace("Y", "?x?x?x4xf32"))
    with pytest.raises(ShapeError, match="dynamic_conv"):
        executable(np.ones((2, 8, 9, 3), "f"), np.ones((3, 2, 3, 4), "f"), np.array([[-9, 0], [0, 0]], "int32"))


WINDOWS = """
func.func private @larger(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.maximum %a, %b : tensor<f32>
  return %0 : tensor<f32>
}
func.func public @main(%x: tensor<X>, %p: tensor<2x2xi32>, %w: tensor<2xi32>) -> tensor<Y> {
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.constant dense<[2, 1]> : tensor<2xi32>
  %o = stablehlo.constant dense<1> : tensor<2xi32>
  %r = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %i, %w, %s, %o, %o, %p) {
    called_computations = [@larger]
  } : (tensor<X>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2x2xi32>) -> tensor<Y>
  return %r : tensor<Y>
}
"""


@BY_OPTIONS
@pytest.mark.parametrize("types", [("?x?xf32", "?x?xf32"), ("8x9xf32", "?x8xf32"), ("8x9xf32", "4x8xf32")])
def test_windows_and_padding_that_are_arguments(types: tuple[str, str], options: shlo_disc.Options) -> None:
    executable = shlo_disc.compile(WINDOWS.replace("X", types[0]).replace("Y", types[1]), options=options)
    x = np.random.default_rng(0).standard_normal((8, 9)).astype("f")
    for window, padding in (((1, 2), ((0, 0), (0, 0))), ((2, 2), ((1, 0), (1, 0))), ((2, 2), ((0, 0), (0, 0)))):
        want = lax.reduce_window(x, -jnp.inf, lax.max, window, (2, 1), padding)
        if not _fits(want.shape, types[1]):
            continue
        got = executable(x, np.array(padding, "int32"), np.array(window, "int32"))
        np.testing.assert_array_equal(jax.tree.leaves(got)[0], want)


def _fits(shape: Sequence[int], type_: str) -> bool:
    return all(text in ("?", str(size)) for size, text in zip(shape, type_.split("x"), strict=False))


SLICE = """
func.func @main(%x: tensor<X>, %a: tensor<1xi32>, %l: tensor<1xi32>, %s: tensor<1xi32>) -> tensor<Y> {
  %y = stablehlo.real_dynamic_slice %x, %a, %l, %s
    : (tensor<X>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<Y>
  return %y : tensor<Y>
}
"""


@pytest.mark.parametrize("types", [("?xf32", "?xf32"), ("?xf32", "4xf32"), ("8xf32", "4xf32")])
def test_a_slice_whose_bounds_are_arguments_stays_inside(types: tuple[str, str]) -> None:
    executable = shlo_disc.compile(SLICE.replace("X", types[0]).replace("Y", types[1]), options=GUARDED)
    x = np.arange(8, dtype="f")
    for bounds in ((0, 4, 1), (4, 8, 1), (1, 8, 2), (0, 8, 3), (5, 9, 1), (-1, 3, 1), (0, 4, 0), (3, 2, 1)):
        start, limit, stride = bounds
        arrays = [np.array([n], "int32") for n in bounds]
        want = x[start:limit:stride] if stride else x
        if not 0 <= start <= limit <= 8 or not stride or not _fits(want.shape, types[1]):
            with pytest.raises(ShapeError, match="real_dynamic_slice"):
                executable(x, *arrays)
            continue
        np.testing.assert_array_equal(jax.tree.leaves(executable(x, *arrays))[0], want)
