# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fusion with convolutions: the zeros around their input, and the loop or row reduction behind them.

Windows of 3 x 3 go by Winograd's algorithm at some sizes and are whole at others; windows with strides are gathered.
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
from tests.run.op_check import Sizes, assert_same, check, compile_function, random_array, run_xla, shape_of

NHWC = ("NHWC", "HWIO", "NHWC")
SIZES: list[Sizes] = [
    {"b": b, "h": h, "w": w}
    for b, h, w in [(1, 1, 1), (2, 1, 3), (1, 5, 4), (1, 9, 11), (3, 13, 7), (1, 4, 59), (1, 61, 37)]
]
"""From few pixels, with whole windows, to more patches of 4 x 4 than are worked on together, in lines and in all."""

Function = Callable[..., Any]


def convolve(
    x: jax.Array, w: jax.Array, strides: tuple[int, int] = (1, 1), padding: Any = ((1, 1), (1, 1))
) -> jax.Array:
    return lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=NHWC)


def close(executable: Any, function: Function, specs: list[tuple[str, str]], ulps: float = 8) -> None:
    """At every size. Winograd's algorithm has errors of the magnitude of its patch, also where a result is small."""
    for size in SIZES:
        arrays = [random_array(shape_of(text, size), dtype, 10 * i) for i, (text, dtype) in enumerate(specs)]
        want = run_xla(function, arrays)
        magnitudes = jax.tree.leaves(run_xla(function, [np.abs(a) for a in arrays]))
        scale = [np.full_like(leaf, np.max(leaf)) for leaf in magnitudes]
        assert_same(executable(*arrays), want, ulps=ulps, scale=scale)


def images(channels: int) -> tuple[str, str]:
    return (f"b, h, w, {channels}", "float32")


def vector(features: int) -> tuple[str, str]:
    return (f"{features}", "float32")


def window(channels: int, features: int) -> tuple[str, str]:
    return (f"3, 3, {channels}, {features}", "float32")


def kinds(executable: Any) -> list[str]:
    return sorted(kind for _, kind in executable.kernels)


@pytest.mark.parametrize(("channels", "features"), [(16, 16), (40, 33), (64, 64), (17, 100)])
def test_normalised_and_rectified(channels: int, features: int) -> None:
    function = lambda x, w, scale, shift: jax.nn.relu(convolve(x, w) * scale + shift)  # noqa: E731
    specs = [images(channels), window(channels, features), vector(features), vector(features)]
    executable = compile_function(function, specs)
    close(executable, function, specs)
    assert kinds(executable) == ["convolution"]


def test_vectors_of_eight() -> None:
    """The transforms and tiles of processors without AVX-512."""
    function = lambda x, w, bias: jax.nn.relu(convolve(x, w) + bias)  # noqa: E731
    specs = [images(20), window(20, 29), vector(29)]
    executable = shlo_disc.compile(function, args=tuple(specs), options=shlo_disc.Options(cpu="x86-64-v3"))
    close(executable, function, specs)


def test_a_residual_sum() -> None:
    function = lambda x, w, bias: jax.nn.relu(convolve(x, w) + bias + x)  # noqa: E731
    specs = [images(48), window(48, 48), vector(48)]
    executable = compile_function(function, specs)
    close(executable, function, specs)
    assert kinds(executable) == ["convolution"]


def test_several_results_of_other_types() -> None:
    def function(x: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        y = convolve(x, w) + 1.0
        return y > 1e6, (y * 0.0).astype(jnp.int32), y

    executable = compile_function(function, [images(24), window(24, 40)])
    assert kinds(executable) == ["convolution"]
    for size in SIZES:
        x, w = random_array((*size.values(), 24), "float32"), random_array((3, 3, 24, 40), "float32", 1)
        got, want = executable(x, w), run_xla(function, [x, w])
        scale = np.full_like(want[2], np.max(run_xla(function, [np.abs(x), np.abs(w)])[2]))
        assert_same(got[:2], want[:2])
        assert_same(got[2], want[2], ulps=8, scale=scale)


def test_a_row_reduction() -> None:
    def function(x: jax.Array, w: jax.Array) -> jax.Array:
        y = convolve(x, w)
        return y + jnp.max(y, axis=-1, keepdims=True)

    specs = [images(32), window(32, 72)]
    executable = compile_function(function, specs)
    close(executable, function, specs, ulps=16)
    assert kinds(executable) == ["convolution"]


def test_neighbours_of_one_input_stay_apart() -> None:
    function = lambda x, v, w: (convolve(x, v) + 1.0, convolve(x, w, padding=((0, 2), (2, 0))) + 1.0)  # noqa: E731
    specs = [images(32), window(32, 32), window(32, 32)]
    executable = compile_function(function, specs)
    close(executable, function, specs)
    assert kinds(executable) == ["convolution"] * 2


@pytest.mark.parametrize("padding", ["SAME", ((0, 2), (2, 1)), ((5, 6), (4, 7)), ((2, 2), (0, 0))])
def test_zeros_around_the_input(padding: Any) -> None:
    function = lambda x, w: convolve(x, w, padding=padding)  # noqa: E731
    specs = [("b, h + 2, w + 2, 20", "float32"), window(20, 40)]
    executable = compile_function(function, specs)
    close(executable, function, specs)
    assert kinds(executable) == ["convolution"]


@pytest.mark.parametrize("strides", [(2, 2), (1, 3)])
@pytest.mark.parametrize("padding", [((1, 1), (1, 1)), ((0, 3), (4, 0))])
def test_gathered_windows(strides: tuple[int, int], padding: Any) -> None:
    """With constant weights, which are packed ahead, and passed ones."""
    weights, shift = random_array((3, 3, 120, 61), "float32", 3), random_array((61,), "float32", 4)
    function = lambda x, w: jax.nn.relu(convolve(x, w, strides, padding) + shift)  # noqa: E731
    passed = compile_function(function, [("b, h + 2, w + 2, 120", "float32"), window(120, 61)])
    constant = compile_function(lambda x: function(x, weights), [("b, h + 2, w + 2, 120", "float32")])
    assert kinds(passed) == kinds(constant) == ["convolution"]
    for size in SIZES[:-1]:
        x = random_array((size["b"], size["h"] + 2, size["w"] + 2, 120), "float32", 5)
        scale = run_xla(function, [np.abs(x), np.abs(weights)])
        want = run_xla(function, [x, weights])
        assert_same(passed(x, weights), want, ulps=8, scale=scale)
        assert_same(constant(x), passed(x, weights))


def test_gathered_windows_with_holes() -> None:
    weights = random_array((3, 4, 100, 64), "float32", 3)
    for dilation in ((2, 1), (1, 3)):
        options: dict[str, Any] = {"rhs_dilation": dilation, "dimension_numbers": NHWC}
        function = lambda x, w: lax.conv_general_dilated(x, w, (1, 2), ((3, 2), (5, 4)), **options)  # noqa: E731, B023
        executable = compile_function(lambda x: function(x, weights), [images(100)])  # noqa: B023
        assert kinds(executable) == ["convolution"]
        for size in SIZES[:-1]:
            x = random_array((*size.values(), 100), "float32", 5)
            scale = run_xla(function, [np.abs(x), np.abs(weights)])
            assert_same(executable(x), run_xla(function, [x, weights]), ulps=8, scale=scale)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gathered_windows_along_a_line(dtype: str) -> None:
    weights = random_array((5, 208, 64), dtype, 3)
    layout = ("NWC", "WIO", "NWC")
    function = lambda x, w: jnp.tanh(  # noqa: E731
        lax.conv_general_dilated(x, w, (1,), ((2, 2),), dimension_numbers=layout) * 0.01
    )
    executable = compile_function(function, [("b, n, 208", dtype), ("5, 208, 64", dtype)])
    assert kinds(executable) == ["convolution"]
    for b, n in ((1, 1), (1, 2), (2, 17), (1, 60)):
        x = random_array((b, n, 208), dtype, 5)
        assert_same(executable(x, weights), run_xla(function, [x, weights]), ulps=64, scale=np.float32(1.0))


def test_other_layouts() -> None:
    """Transposed first; the zeros stay with the convolution all the same."""
    layout = ("NCHW", "OIHW", "NCHW")
    function = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout)  # noqa: E731
    check(function, [("b, 20, h, w", "float32"), ("40, 20, 3, 3", "float32")], SIZES, ulps=8, scaled=True)


def test_operands_that_are_reshaped_or_the_same() -> None:
    """No product of them is found after fusion."""
    flat = lambda x, w: convolve(x.reshape(-1, 6, 5, 16), w.reshape(3, 3, 16, 16))  # noqa: E731
    specs = [("b, 480", "float32"), ("144, 16", "float32")]
    check(flat, specs, [{"b": b} for b in (1, 2, 5)], ulps=8, scaled=True)
    executable = shlo_disc.compile(lambda x: convolve(x, x), args=(("3, 3, 16, 16", "float32"),))
    x = random_array((3, 3, 16, 16), "float32")
    assert_same(executable(x), run_xla(lambda x: convolve(x, x), [x]), ulps=8, scale=np.float32(np.abs(x).sum()))


def test_no_pixels() -> None:
    function = lambda x, w: jax.nn.relu(convolve(x, w))  # noqa: E731
    executable = shlo_disc.compile(function, args=(("b - 1, h, w, 16", "float32"), window(16, 32)))
    weights = random_array((3, 3, 16, 32), "float32")
    assert executable(np.ones((0, 7, 5, 16), np.float32), weights).shape == (0, 7, 5, 32)
