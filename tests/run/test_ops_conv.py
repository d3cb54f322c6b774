# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions: any layout, groups, strides, dilations, padding of either sign or of symbolic size, and gradients.

Sums of products are compared relative to the sum of magnitudes; integers and sums of small integers are exact.
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
from tests.run.op_check import Sizes, assert_same, check, check_text, dtype_of, mlir_dtype, run_xla, small_integers

NHWC = ("NHWC", "HWIO", "NHWC")
NCHW = ("NCHW", "OIHW", "NCHW")
IMAGES: list[Sizes] = [
    {"b": b, "h": h, "w": w} for b, h, w in [(1, 1, 1), (1, 2, 3), (2, 7, 5), (1, 16, 9), (3, 5, 17), (2, 13, 8)]
]


def convolve(strides: tuple[int, ...], padding: Any, layout: Any = NHWC, **options: Any) -> Callable[..., jax.Array]:
    return lambda x, w: lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=layout, **options)


@pytest.mark.parametrize(
    ("features", "padding"), [(1, "SAME"), (15, "VALID"), (16, "SAME"), (17, "VALID"), (64, "SAME"), (70, "SAME")]
)
def test_features_on_both_sides_of_the_blocks(features: int, padding: str) -> None:
    check(
        convolve((1, 2), padding),
        [("b, h + 2, w + 1, 3", "float32"), (f"3, 2, 3, {features}", "float32")],
        IMAGES if features == 17 else IMAGES[1::3],
        ulps=8,
        scaled=True,
    )


@pytest.mark.parametrize("layout", (NCHW, ("NHWC", "OIHW", "NCHW"), ("HWNC", "HWOI", "CNHW")))
def test_layouts(layout: tuple[str, str, str]) -> None:
    sizes = {"N": "b", "H": "h + 2", "W": "w + 2", "C": "5"}
    kernel = {"O": "18", "I": "5", "H": "3", "W": "2"}
    specs = [(", ".join(sizes[c] for c in layout[0]), "float32"), (", ".join(kernel[c] for c in layout[1]), "float32")]
    check(convolve((2, 1), ((1, 0), (0, 2)), layout), specs, IMAGES[::2], ulps=8, scaled=True)


OPTIONS: dict[str, tuple[tuple[int, int], Any, dict[str, Any]]] = {
    "dilated kernel": ((1, 1), ((2, 2), (0, 3)), {"rhs_dilation": (2, 3)}),
    "dilated input": ((2, 1), ((1, 1), (2, 0)), {"lhs_dilation": (2, 3)}),
    "both, negative padding": ((1, 2), ((-1, 2), (3, -2)), {"lhs_dilation": (3, 2), "rhs_dilation": (1, 2)}),
    "two groups": ((1, 1), "SAME", {"feature_group_count": 2}),
    "depthwise": ((2, 2), "SAME", {"feature_group_count": 6}),
}


@pytest.mark.parametrize("outputs", (6, 36))
@pytest.mark.parametrize("name", OPTIONS)
def test_dilation_padding_and_groups(name: str, outputs: int) -> None:
    strides, padding, options = OPTIONS[name]
    inputs = 6 // options.get("feature_group_count", 1)
    specs = [("b, h + 4, w + 5, 6", "float32"), (f"3, 2, {inputs}, {outputs}", "float32")]
    check(convolve(strides, padding, **options), specs, IMAGES[::2], ulps=8, scaled=True)


@pytest.mark.parametrize("outputs", (3, 36))
def test_groups_of_batches(outputs: int) -> None:
    specs = [("3*b, h, w, 4", "float32"), (f"3, 3, 4, {outputs}", "float32")]
    check(convolve((1, 1), "SAME", batch_group_count=3), specs, IMAGES[::2], ulps=8, scaled=True)


def test_windows_of_one_element_are_products() -> None:
    sizes = IMAGES[::2]
    specs = [("b, h, w, 7", "float32"), ("1, 1, 7, 17", "float32")]
    for strides in ((1, 1), (2, 3)):
        executable = check(convolve(strides, "VALID"), specs, sizes, ulps=8, scaled=True)
        assert "stablehlo.convolution" not in executable.as_text("simplify")


def test_kernels_of_symbolic_size() -> None:
    specs = [("b, h + 3, 2*w, c", "float32"), ("3, w, c, o", "float32")]
    sizes: list[Sizes] = [
        {"b": b, "h": h, "w": w, "c": c, "o": o}
        for b, h, w, c, o in [(1, 1, 1, 1, 1), (2, 3, 5, 4, 16), (1, 7, 2, 17, 33), (3, 2, 3, 2, 65)]
    ]
    check(convolve((1, 1), "VALID"), specs, sizes, ulps=8, scaled=True)


@pytest.mark.parametrize("rank", (0, 1, 3))
def test_other_numbers_of_spatial_dimensions(rank: int) -> None:
    space = [f"h + {axis}" for axis in range(rank)]
    specs = [(", ".join(["b", "4", *space]), "float32"), (", ".join(["18", "4", *["2"] * rank]), "float32")]
    check(lambda x, w: lax.conv(x, w, (1,) * rank, "SAME"), specs, IMAGES[1::2], ulps=8, scaled=True)


@pytest.mark.parametrize("dtype", ("float16", "bfloat16", "float64", "int32", "int8", "uint8", "int64"))
def test_dtypes(dtype: str) -> None:
    """Small integers, whose sums every dtype holds exactly."""
    specs = [("b, h, w, 3", dtype), ("3, 3, 3, 18", dtype)]
    sizes = IMAGES[::2]
    check(convolve((1, 1), "SAME"), specs, sizes, inputs=small_integers)
    depthwise = convolve((1, 1), "SAME", feature_group_count=3)
    check(depthwise, [specs[0], ("2, 2, 1, 3", dtype)], sizes[1:], inputs=small_integers)


@pytest.mark.parametrize(("dtype", "wide"), [("bfloat16", "float32"), ("float16", "float32"), ("int8", "int32")])
def test_wider_results(dtype: str, wide: str) -> None:
    """Wide results are not rounded to the operands' dtype on the way."""

    def function(x: jax.Array, w: jax.Array) -> jax.Array:
        return lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=NHWC, preferred_element_type=dtype_of(wide)
        )

    def reference(x: jax.Array, w: jax.Array) -> jax.Array:
        return convolve((1, 1), "SAME")(x.astype(wide), w.astype(wide))

    executable = shlo_disc.compile(function, args=(("b, h, w, 30", dtype), ("3, 3, 30, 17", dtype)))
    for number, size in enumerate(IMAGES):
        x = np.random.default_rng(number).integers(-90, 90, (*size.values(), 30)).astype(dtype_of(dtype))
        w = np.random.default_rng(number).integers(-90, 90, (3, 3, 30, 17)).astype(dtype_of(dtype))
        assert_same(executable(x, w), run_xla(reference, [x, w]), ulps=0)


def test_half_sums_are_rounded_once() -> None:
    function = convolve((1, 1), "SAME")
    executable = shlo_disc.compile(function, args=(("b, h, w, 64", "bfloat16"), ("3, 3, 64, 17", "bfloat16")))
    x = np.abs(np.random.default_rng(0).standard_normal((2, 5, 6, 64))).astype(dtype_of("bfloat16"))
    w = np.abs(np.random.default_rng(1).standard_normal((3, 3, 64, 17))).astype(dtype_of("bfloat16"))
    exact = run_xla(function, [x.astype(np.float64), w.astype(np.float64)])
    error = np.abs(executable(x, w).astype(np.float64) - exact)
    assert np.all(error <= 0.51 * float(jnp.finfo("bfloat16").eps) * exact)


def test_special_values_stay_where_they_are() -> None:
    """Padding is zero and is multiplied: an infinite weight over padding is NaN, in XLA as here."""
    x = np.ones((1, 4, 4, 2), np.float32)
    x[0, 1, 1, 0] = np.nan
    w = np.ones((3, 3, 2, 17), np.float32)
    w[0, 0, 0, 3] = np.inf
    function = convolve((1, 1), "VALID")
    executable = shlo_disc.compile(function, args=(("b, h + 2, w + 2, 2", "float32"), ("3, 3, 2, 17", "float32")))
    assert_same(executable(x, w), run_xla(function, [x, w]), ulps=4)


@pytest.mark.parametrize("layout", (NHWC, NCHW))
@pytest.mark.parametrize("strides", ((1, 1), (2, 2)))
def test_gradients(strides: tuple[int, int], layout: tuple[str, str, str]) -> None:
    """jax.export needs sizes whose gradient has constant padding: multiples of the stride."""
    forward = convolve(strides, ((1, 1), (1, 1)), layout)
    gradient = jax.grad(lambda x, w: jnp.sum(forward(x, w) ** 2), argnums=(0, 1))
    image, kernel = ("b, 2*h, 2*w, 3", "3, 3, 3, 17") if layout is NHWC else ("b, 3, 2*h, 2*w", "17, 3, 3, 3")
    check(gradient, [(image, "float32"), (kernel, "float32")], IMAGES[1::3], ulps=64, scaled=True)


@pytest.mark.parametrize("groups", (2, 4))
def test_gradients_of_groups(groups: int) -> None:
    forward = convolve((1, 1), ((1, 1), (1, 1)), feature_group_count=groups)
    gradient = jax.grad(lambda x, w: jnp.sum(forward(x, w) ** 2), argnums=(0, 1))
    specs = [("b, h, w, 4", "float32"), (f"3, 3, {4 // groups}, 8", "float32")]
    check(gradient, specs, IMAGES[1::3], ulps=64, scaled=True)


@pytest.mark.parametrize("dtype", ("float32", "int32"))
def test_reversed_windows(dtype: str) -> None:
    kind = mlir_dtype(dtype)
    text = f"""func.func @main(%x: tensor<?x?x2x{kind}>, %w: tensor<3x2x18x{kind}>) -> tensor<?x?x18x{kind}> {{
      %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
        window = {{stride = [1], pad = [[2, 1]], reverse = [1]}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : (tensor<?x?x2x{kind}>, tensor<3x2x18x{kind}>) -> tensor<?x?x18x{kind}>
      return %r : tensor<?x?x18x{kind}> }}"""
    shapes = [(1, 1, 2), (2, 7, 2), (3, 17, 2)]
    calls = [[small_integers(shape, dtype), small_integers((3, 2, 18), dtype, 1)] for shape in shapes]
    check_text(text, calls)


def test_results_without_elements() -> None:
    """No batch, no features to sum over, and a window larger than its input."""
    text = """func.func @main(%x: tensor<?x?x?xf32>, %w: tensor<3x?x?xf32>) -> tensor<?x?x?xf32> {
      %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
        {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<?x?x?xf32>, tensor<3x?x?xf32>) -> tensor<?x?x?xf32>
      return %r : tensor<?x?x?xf32> }"""
    executable = shlo_disc.compile(text)

    def call(batch: int, size: int, inputs: int, outputs: int) -> np.ndarray:
        result: np.ndarray = executable(np.ones((batch, size, inputs), "f"), np.ones((3, inputs, outputs), "f"))
        return result

    assert call(0, 5, 2, 4).shape == (0, 3, 4)
    assert call(2, 2, 2, 4).shape == (2, 0, 4)
    assert call(2, 1, 2, 4).shape == (2, 0, 4)
    assert call(2, 5, 2, 0).shape == (2, 3, 0)
    assert_same(call(2, 5, 0, 4), np.zeros((2, 3, 4), np.float32))
    assert_same(call(2, 5, 2, 4), np.full((2, 3, 4), 6, np.float32))


@pytest.mark.parametrize("channels", (7, 8, 16, 33, 70))
def test_a_window_for_each_feature(channels: int) -> None:
    function = convolve((1, 2), ((1, 1), (0, 3)), feature_group_count=channels)
    specs = [(f"b, h, w, {channels}", "float32"), (f"3, 4, 1, {channels}", "float32")]
    executable = check(function, specs, IMAGES[::2], ulps=8, scaled=True)
    assert any(kind == "convolution" for _, kind in executable.kernels) == (channels >= 8)


@pytest.mark.parametrize("dtype", ("bfloat16", "float64", "int8"))
def test_windows_for_each_feature_of_dtypes(dtype: str) -> None:
    function = convolve((1, 1), "SAME", feature_group_count=19)
    check(function, [("b, h, w, 19", dtype), ("3, 3, 1, 19", dtype)], IMAGES[::3], inputs=small_integers)


def test_weights_that_are_all_the_same() -> None:
    weights = np.full((3, 2, 8, 17), 0.5, np.float32)
    check(lambda x: convolve((1, 1), "SAME")(x, weights), [("b, h, w, 8", "float32")], IMAGES, ulps=8, scaled=True)


def test_groups_that_do_not_divide_the_batch_are_refused() -> None:
    text = """func.func @main(%x: tensor<?x5x2xf32>, %w: tensor<1x2x6xf32>) -> tensor<?x5x6xf32> {
      %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
        {batch_group_count = 3 : i64, feature_group_count = 1 : i64}
        : (tensor<?x5x2xf32>, tensor<1x2x6xf32>) -> tensor<?x5x6xf32>
      return %r : tensor<?x5x6xf32> }"""
    executable = shlo_disc.compile(text)
    w = np.ones((1, 2, 6), np.float32)
    assert_same(executable(np.ones((6, 5, 2), np.float32), w), np.full((2, 5, 6), 2, np.float32))
    with pytest.raises(shlo_disc.ShapeError):
        executable(np.ones((7, 5, 2), np.float32), w)
