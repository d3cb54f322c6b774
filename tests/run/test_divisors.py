# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Divisors that are known when the program runs: whatever they are, the process lives.

Sizes that are no sizes are refused with a ShapeError. Where a branch is not taken, its index arithmetic is computed
nevertheless, and may divide by the size of an axis without elements.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import ProgramError, ShapeError
from shlo_disc.options import Options

I64 = "tensor<1xi64>"
LOWEST = -(2**63)


@functools.cache
def compiled(text: str) -> Any:
    """A program under test, with guard pages."""
    return shlo_disc.compile(text, options=Options(threads=1, guard_pages=True))


def numbers(*values: int, dtype: Any = np.int64) -> np.ndarray:
    return np.array(values, dtype)


def floats(*shape: int) -> np.ndarray:
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


# ---- data-dependent sizes -------------------------------------------------------------------------------------------

PAD = f"""func.func @main(%x: tensor<?xf32>, %l: {I64}, %h: {I64}, %i: {I64}) -> tensor<?xf32> {{
  %c = stablehlo.constant dense<7.0> : tensor<f32>
  %0 = stablehlo.dynamic_pad %x, %c, %l, %h, %i : (tensor<?xf32>, tensor<f32>, {I64}, {I64}, {I64}) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}}"""
SLICE = f"""func.func @main(%x: tensor<?xf32>, %s: {I64}, %l: {I64}, %i: {I64}) -> tensor<?xf32> {{
  %0 = stablehlo.real_dynamic_slice %x, %s, %l, %i : (tensor<?xf32>, {I64}, {I64}, {I64}) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}}"""
WINDOW = f"""module {{
  func.func private @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {{
    %0 = stablehlo.add %a, %b : tensor<f32>
    return %0 : tensor<f32>
  }}
  func.func public @main(%x: tensor<?xf32>, %s: {I64}, %t: {I64}, %b: {I64}, %d: {I64}) -> tensor<?xf32> {{
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %p = stablehlo.constant dense<[[1, 0]]> : tensor<1x2xi64>
    %0 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %c, %s, %t, %b, %d, %p)
      {{called_computations = [@sum]}}
      : (tensor<?xf32>, tensor<f32>, {I64}, {I64}, {I64}, {I64}, tensor<1x2xi64>) -> tensor<?xf32>
    return %0 : tensor<?xf32>
  }}
}}"""
CONVOLUTION = """func.func @main(%x: tensor<1x?x1xf32>, %w: tensor<2x1x1xf32>, %p: tensor<1x2xi64>)
    -> tensor<1x?x1xf32> {
  %0 = "stablehlo.dynamic_conv"(%x, %w, %p) {batch_group_count = 1 : i64, feature_group_count = 1 : i64,
      window_strides = array<i64: 2>, lhs_dilation = array<i64: 2>, rhs_dilation = array<i64: 1>,
      dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>}
    : (tensor<1x?x1xf32>, tensor<2x1x1xf32>, tensor<1x2xi64>) -> tensor<1x?x1xf32>
  return %0 : tensor<1x?x1xf32>
}"""
IOTA = """func.func @main(%s: tensor<2xi64>) -> tensor<?x?xi32> {
  %0 = stablehlo.dynamic_iota %s, dim = 0 : (tensor<2xi64>) -> tensor<?x?xi32>
  return %0 : tensor<?x?xi32>
}"""
RESHAPE = """func.func @main(%x: tensor<?xf32>, %s: tensor<2xi64>) -> tensor<?x?xf32> {
  %0 = stablehlo.dynamic_reshape %x, %s : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}"""
BROADCAST = """func.func @main(%x: tensor<?xf32>, %s: tensor<2xi64>) -> tensor<?x?xf32> {
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1] : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}"""
GATHER = """func.func @main(%x: tensor<?x?xf32>, %i: tensor<?x1xi32>, %s: tensor<2xi64>) -> tensor<?x?x?xf32> {
  %0 = "stablehlo.dynamic_gather"(%x, %i, %s) {indices_are_sorted = false,
      dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0], index_vector_dim = 1>}
    : (tensor<?x?xf32>, tensor<?x1xi32>, tensor<2xi64>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}"""


@pytest.mark.parametrize("interior", [-1, -2, -3, LOWEST, LOWEST + 1])
def test_interior_padding_below_zero(interior: int) -> None:
    with pytest.raises(ShapeError, match=r"Expected n\d >= 0, which stablehlo.dynamic_pad at line 3 requires"):
        compiled(PAD)(floats(3), numbers(1), numbers(1), numbers(interior))


@pytest.mark.parametrize("length", [0, 1, 2, 3, 15, 16, 17, 61])
@pytest.mark.parametrize(("low", "high", "interior"), [(1, 2, 0), (1, 0, 1), (-1, 2, 3), (0, -1, 2)])
def test_padding_that_fits(length: int, low: int, high: int, interior: int) -> None:
    size = low + high + length + interior * max(length - 1, 0)
    if size < 0:
        with pytest.raises(ShapeError, match="which stablehlo.dynamic_pad"):
            compiled(PAD)(floats(length), numbers(low), numbers(high), numbers(interior))
        return
    want = np.full(size, 7, np.float32)
    for i, element in enumerate(floats(length)):
        if 0 <= low + i * (interior + 1) < size:
            want[low + i * (interior + 1)] = element
    got = compiled(PAD)(floats(length), numbers(low), numbers(high), numbers(interior))
    np.testing.assert_array_equal(got, want)


def test_a_negative_interior_padding_in_the_program() -> None:
    text = PAD.replace(f", %i: {I64}", "").replace("%c =", f"%i = stablehlo.constant dense<-1> : {I64}\n  %c =")
    with pytest.raises(ProgramError, match="interior_padding must be non-negative"):
        shlo_disc.compile(text)


@pytest.mark.parametrize("stride", [0, -1, LOWEST])
def test_strides_of_a_slice(stride: int) -> None:
    with pytest.raises(ShapeError, match=r"Expected n\d >= 1, which stablehlo.real_dynamic_slice"):
        compiled(SLICE)(floats(5), numbers(0), numbers(5), numbers(stride))
    np.testing.assert_array_equal(compiled(SLICE)(floats(5), numbers(0), numbers(5), numbers(2)), [1, 3, 5])
    np.testing.assert_array_equal(compiled(SLICE)(floats(5), numbers(1), numbers(5), numbers(2**62)), [2])


@pytest.mark.parametrize("value", [0, -1, LOWEST])
@pytest.mark.parametrize("place", range(4))
def test_windows(place: int, value: int) -> None:
    """Their sizes, strides and the two dilations; a window without elements has no divisor."""
    good = [numbers(2), numbers(1), numbers(1), numbers(1)]
    np.testing.assert_array_equal(compiled(WINDOW)(floats(4), *good), [1, 3, 5, 7])
    bad = [*good[:place], numbers(value), *good[place + 1 :]]
    if (place, value) == (0, 0):
        np.testing.assert_array_equal(compiled(WINDOW)(floats(4), *bad), np.zeros(6))
        return
    with pytest.raises(ShapeError, match=r"Expected n\d >= \d, which stablehlo.custom_call"):
        compiled(WINDOW)(floats(4), *bad)


@pytest.mark.parametrize("place", [2, 3])
def test_windows_so_far_apart_that_sizes_overflow(place: int) -> None:
    good = [numbers(2), numbers(1), numbers(1), numbers(1)]
    with pytest.raises(ShapeError, match="does not fit in 64 bits, or divides by zero"):
        compiled(WINDOW)(floats(4), *good[:place], numbers(2**62), *good[place + 1 :])


@pytest.mark.parametrize("length", [0, 1, 5])
@pytest.mark.parametrize("padding", [(0, 0), (1, 1), (0, 2), (-3, 1), (1, -3), (-9, 0)])
def test_padding_of_a_convolution_is_data(length: int, padding: tuple[int, int]) -> None:
    """As in JAX, it may not be larger than what it takes away from."""
    x, w = floats(1, length, 1), floats(2, 1, 1)
    spread = np.zeros(max(2 * length - 1, 0))
    spread[::2] = x[0, :, 0]
    low, high = padding
    if len(spread) + low + high < 0:
        with pytest.raises(ShapeError, match="stablehlo.dynamic_conv"):
            compiled(CONVOLUTION)(x, w, np.array([padding]))
        return
    padded = np.concatenate([np.zeros(max(low, 0)), spread, np.zeros(max(high, 0))])
    padded = padded[max(-low, 0) : len(padded) - max(-high, 0)]
    want = [w[0, 0, 0] * padded[i] + w[1, 0, 0] * padded[i + 1] for i in range(0, len(padded) - 1, 2)]
    got = compiled(CONVOLUTION)(x, w, np.array([padding]))
    np.testing.assert_array_equal(got[0, :, 0], want)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (IOTA, [numbers(-1, 2)]),
        (IOTA, [numbers(-1, -2)]),
        (IOTA, [numbers(LOWEST, LOWEST)]),
        (IOTA, [numbers(2**62, 2**62)]),
        (IOTA, [numbers(2**63 - 1, 2)]),
        (RESHAPE, [floats(6), numbers(-2, -3)]),
        (RESHAPE, [floats(6), numbers(-2, 3)]),
        (RESHAPE, [floats(0), numbers(0, -3)]),
        (BROADCAST, [floats(1), numbers(-1, 3)]),
        (BROADCAST, [floats(1), numbers(1, -3)]),
        (GATHER, [floats(4, 5), np.zeros((2, 1), np.int32), numbers(-1, 5)]),
        (GATHER, [floats(4, 5), np.zeros((2, 1), np.int32), numbers(1, -5)]),
        (GATHER, [floats(4, 5), np.zeros((2, 1), np.int32), numbers(9, 5)]),
    ],
)
def test_shapes_that_are_none(text: str, arguments: list[np.ndarray]) -> None:
    with pytest.raises(ShapeError):
        compiled(text)(*arguments)


# ---- branches that are not taken ---------------------------------------------------------------------------------

FLAT = """func.func @main(%x: tensor<?x?x?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {{
  %c = stablehlo.constant dense<7.0> : tensor<f32>
  %i = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.negate %x : tensor<?x?x?xf32>
  %t = stablehlo.transpose %n, dims = [2, 1, 0] : (tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %d0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?x?xf32>) -> tensor<i32>
  %d1 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?x?xf32>) -> tensor<i32>
  %d2 = stablehlo.get_dimension_size %x, dim = 2 : (tensor<?x?x?xf32>) -> tensor<i32>
  %p = stablehlo.multiply %d0, %d1 : tensor<i32>
  %q = stablehlo.multiply %p, %d2 : tensor<i32>
  %s = stablehlo.reshape %q : (tensor<i32>) -> tensor<1xi32>
  %0 = stablehlo.dynamic_reshape %t, %s : (tensor<?x?x?xf32>, tensor<1xi32>) -> tensor<?xf32>
  {body}
  return %1 : tensor<?xf32>
}}"""
PAIR = "(tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>"
BODIES = {
    "pad": "%1 = stablehlo.pad %0, %c, low = [1], high = [2], interior = [0] : (tensor<?xf32>, tensor<f32>) -> "
    "tensor<?xf32>",
    "first": f"%1 = stablehlo.concatenate %0, %y, dim = 0 : {PAIR}",
    "last": f"%1 = stablehlo.concatenate %y, %0, dim = 0 : {PAIR}",
    "update": "%1 = stablehlo.dynamic_update_slice %y, %0, %i : (tensor<?xf32>, tensor<?xf32>, tensor<i32>) -> "
    "tensor<?xf32>",
}


@pytest.mark.parametrize("shape", [(2, 3, 5), (1, 1, 1), (0, 3, 5), (2, 0, 5), (2, 3, 0), (0, 0, 0)])
@pytest.mark.parametrize("name", BODIES)
def test_axes_without_elements_in_a_branch(name: str, shape: tuple[int, int, int]) -> None:
    x, y = floats(*shape), floats(40)
    flat = -x.transpose(2, 1, 0).reshape(int(np.prod(shape)))
    want = {
        "pad": np.concatenate([[7], flat, [7, 7]]),
        "first": np.concatenate([flat, y]),
        "last": np.concatenate([y, flat]),
        "update": np.concatenate([flat, y[len(flat) :]]),
    }[name]
    np.testing.assert_array_equal(compiled(FLAT.format(body=BODIES[name]))(x, y), want)


# ---- elements -----------------------------------------------------------------------------------------------------

WIDTHS = {f"{kind}{width}": (kind == "i", width) for kind in ("i", "ui") for width in (8, 16, 32, 64)}


@pytest.mark.parametrize("length", [1, 5, 35])
@pytest.mark.parametrize("type_", WIDTHS)
def test_elements(type_: str, length: int) -> None:
    """As XLA has it: x/0 is -1, x%0 is x; the lowest number divided by -1 is itself, with no remainder."""
    signed, width = WIDTHS[type_]
    kind = np.dtype(f"{'int' if signed else 'uint'}{width}")
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    ones = -1 if signed else high
    x = np.resize(np.array([low, low, 7, high, 0], kind), length)
    y = np.resize(np.array([ones, 0, 0, ones, 0], kind), length)
    quotients = np.resize(np.array([low, ones, ones, -high if signed else 1, ones], kind), length)
    remainders = np.resize(np.array([0, low, 7, 0, 0], kind), length)
    text = f"""func.func @main(%x: tensor<?x{type_}>, %y: tensor<?x{type_}>)
        -> (tensor<?x{type_}>, tensor<?x{type_}>) {{
      %0 = stablehlo.divide %x, %y : tensor<?x{type_}>
      %1 = stablehlo.remainder %x, %y : tensor<?x{type_}>
      return %0, %1 : tensor<?x{type_}>, tensor<?x{type_}>
    }}"""
    quotient, remainder = compiled(text)(x, y)
    np.testing.assert_array_equal(quotient, quotients)
    np.testing.assert_array_equal(remainder, remainders)
