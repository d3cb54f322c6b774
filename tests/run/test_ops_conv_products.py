# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions by the micro-kernels of products: deep windows, and Winograd's algorithm for windows of 3 x 3.

Weights are passed, and fixed as constants, which are packed when the program is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

import shlo_disc
from tests.run.op_check import Sizes, assert_same, check, compile_function, random_array, run_xla

NHWC = ("NHWC", "HWIO", "NHWC")
FEW: list[Sizes] = [{"b": 1, "h": 1, "w": 1}, {"b": 1, "h": 2, "w": 3}, {"b": 1, "h": 4, "w": 5}]
"""Too few patches of 4 x 4 results: all windows are multiplied."""
MANY: list[Sizes] = [
    {"b": 1, "h": 6, "w": 15},
    {"b": 2, "h": 9, "w": 11},
    {"b": 1, "h": 29, "w": 14},
    {"b": 1, "h": 61, "w": 37},
]
"""Enough patches, some of them at an edge that cuts them."""
WASTEFUL: Sizes = {"b": 30, "h": 1, "w": 2}
"""Enough patches, of which half of each lies outside."""


def convolve(strides: tuple[int, ...] = (1, 1), padding: Any = "SAME", **options: Any) -> Callable[..., jax.Array]:
    return lambda x, w: lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=NHWC, **options)


def images(channels: int | str, extra: int = 0) -> tuple[str, str]:
    return (f"b, h + {extra}, w + {extra}, {channels}", "float32")


@pytest.mark.parametrize(
    ("channels", "features"), [(15, 33), (16, 15), (16, 16), (17, 31), (63, 32), (64, 33), (65, 64), (130, 70)]
)
def test_windows_of_three_by_three(channels: int, features: int) -> None:
    specs = [images(channels), (f"3, 3, {channels}, {features}", "float32")]
    executable = check(convolve(), specs, [*FEW, *MANY, WASTEFUL], ulps=8, scaled=True)
    names = {name for name, kind in executable.kernels if kind == "convolution"}
    assert ("gemm_f32" in names) == (min(channels, features) >= 16)


@pytest.mark.parametrize("channels", (32, 256, 512))
def test_the_error_does_not_grow_with_the_channels(channels: int) -> None:
    """Against doubles, relative to the largest result."""
    x, w = random_array((2, 13, 22, channels), "float32"), random_array((3, 3, channels, 48), "float32", 1)
    with jax.enable_x64(True):
        want = np.asarray(convolve(precision="highest")(x.astype(np.float64), w.astype(np.float64)))
    got = compile_function(convolve(), [images(channels), (f"3, 3, {channels}, 48", "float32")])(x, w)
    assert np.abs(got - want).max() < 2.5e-6 * np.abs(want).max()


def test_symbolic_channels_and_features() -> None:
    pairs = [(1, 40), (15, 16), (16, 1), (16, 16), (40, 33), (300, 18), (520, 17)]
    sizes = [{**MANY[i % 2], "c": c, "o": o} for i, (c, o) in enumerate(pairs)]
    check(convolve(), [images("c"), ("3, 3, c, o", "float32")], sizes, ulps=8, scaled=True)


@pytest.mark.parametrize("padding", [((-1, 2), (3, -2)), ((0, 0), (0, 0))])
def test_constant_weights_give_the_same_bits(padding: Any) -> None:
    """Packed when the program is loaded, bound, or passed a second time, the products are the same."""
    specs, weights = [images(24, 4), ("3, 3, 24, 48", "float32")], random_array((3, 3, 24, 48), "float32", 5)
    function = convolve(padding=padding)
    passed, constant = compile_function(function, specs), compile_function(lambda x: function(x, weights), specs[:1])
    bound = compile_function(lambda w, x: function(x, w), specs[::-1]).bind(weights)
    for size in (*FEW, *MANY, WASTEFUL):
        x = random_array((size["b"], size["h"] + 4, size["w"] + 4, 24), "float32", 1)
        passed(x, weights)
        assert_same(constant(x), passed(x, weights))
        assert_same(bound(x), passed(x, weights))


def test_a_precision_keeps_windows_whole() -> None:
    """The algorithm, which rounds otherwise, is used by default only."""
    specs = [images(32), ("3, 3, 32, 32", "float32")]
    default, highest = (compile_function(convolve(precision=p), specs) for p in (None, "highest"))
    assert ("gemm_f32", "convolution") not in highest.kernels
    for size in MANY:
        x, w = random_array((*size.values(), 32), "float32"), random_array((3, 3, 32, 32), "float32", 1)
        assert not np.array_equal(default(x, w), highest(x, w))


def test_what_is_not_a_number_reaches_its_patch_only() -> None:
    executable = compile_function(convolve(), [images(16), ("3, 3, 16, 32", "float32")])
    x, w = random_array((1, 12, 12, 16), "float32"), random_array((3, 3, 16, 32), "float32", 1)
    x[0, 5, 5, 3] = np.nan
    got, want = np.isnan(executable(x, w)), np.isnan(run_xla(convolve(), [x, w]))
    assert np.all(got[want])
    assert not np.any(got[0, :3]) and not np.any(got[0, 8:]) and not np.any(got[0, :, :3]) and not np.any(got[0, :, 8:])


DEEP: dict[str, tuple[tuple[int, int], Any, dict[str, Any]]] = {
    "plain": ((1, 1), "SAME", {}),
    "strides": ((2, 3), ((2, 1), (0, 4)), {}),
    "dilated rows": ((1, 2), ((4, 4), (2, 2)), {"rhs_dilation": (2, 1)}),
    "dilated columns": ((2, 1), ((2, 2), (6, 6)), {"rhs_dilation": (1, 3)}),
}
PIXELS: list[Sizes] = [
    {"b": b, "h": h, "w": w} for b, h, w in [(1, 1, 1), (1, 1, 13), (2, 7, 1), (1, 5, 3), (1, 7, 29)]
]


@pytest.mark.parametrize("features", (32, 61))
@pytest.mark.parametrize("name", DEEP)
def test_deep_windows(name: str, features: int) -> None:
    strides, padding, options = DEEP[name]
    weights = random_array((5, 4, 105, features), "float32", 7)
    magnitudes = np.abs(weights)
    function = convolve(strides, padding, **options)
    executable = compile_function(lambda x: function(x, weights), [images(105)])
    assert ("gemm_f32", "convolution") in executable.kernels
    for size in PIXELS:
        x = random_array((*size.values(), 105), "float32")
        scale = run_xla(function, [np.abs(x), magnitudes])
        assert_same(executable(x), run_xla(function, [x, weights]), ulps=8, scale=scale)


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_deep_windows_along_a_line(dtype: str) -> None:
    """And weights that are passed, the first time and again."""
    specs = [("7, 300, 33", dtype), ("b, n, 300", dtype)]
    layout = ("NWC", "WIO", "NWC")
    function = lambda w, x: lax.conv_general_dilated(x, w, (2,), "SAME", dimension_numbers=layout)  # noqa: E731
    executable = compile_function(function, specs)
    assert any(kind == "convolution" for _, kind in executable.kernels)
    with jax.enable_x64(True):
        weights = jnp.asarray(random_array((7, 300, 33), dtype, 7))
        for number in range(3):
            x = jnp.asarray(random_array((2, 13 + 14 * number, 300), dtype))
            scale = run_xla(function, [np.abs(weights), np.abs(x)])
            assert_same(executable(weights, x), run_xla(function, [weights, x]), ulps=8, scale=scale)


def test_no_features_to_sum_over() -> None:
    text = """func.func @main(%x: tensor<?x?x?x?xf32>, %w: tensor<3x3x?x?xf32>) -> tensor<?x?x?x?xf32> {
      %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
        {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<?x?x?x?xf32>, tensor<3x3x?x?xf32>) -> tensor<?x?x?x?xf32>
      return %r : tensor<?x?x?x?xf32> }"""
    executable = shlo_disc.compile(text)
    assert ("gemm_f32", "convolution") in executable.kernels
    for inputs, outputs in ((0, 17), (0, 0), (5, 0), (1, 3)):
        x, w = np.ones((2, 20, 21, inputs), np.float32), np.ones((3, 3, inputs, outputs), np.float32)
        assert_same(executable(x, w), np.full((2, 18, 19, outputs), 9 * inputs, np.float32))
    assert executable(np.ones((0, 20, 2, 16), np.float32), np.ones((3, 3, 16, 16), np.float32)).shape == (0, 18, 0, 16)


def test_results_without_elements() -> None:
    weights = random_array((3, 3, 256, 32), "float32")
    executable = shlo_disc.compile(
        lambda x: convolve(padding="VALID")(x, weights), args=(("b - 1, h, w, 256", "float32"),)
    )
    for shape in ((0, 5, 5), (2, 2, 9), (1, 9, 1)):
        want = (shape[0], max(0, shape[1] - 2), max(0, shape[2] - 2), 32)
        assert executable(np.ones((*shape, 256), np.float32)).shape == want
