# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantized tensors, exactly as the specification's formulas give them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import UnsupportedError

SIZES = (1, 15, 16, 17, 40)


def quantized(x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray, low: int, high: int) -> np.ndarray:
    shifted = (x / np.asarray(scale, x.dtype)).astype(x.dtype) + np.asarray(zero_point, x.dtype)
    return np.rint(np.clip(shifted, low, high))


def dequantized(q: np.ndarray, scale: np.ndarray, zero_point: np.ndarray, dtype: type = np.float32) -> np.ndarray:
    return (q.astype(np.int32) - np.asarray(zero_point, np.int32)).astype(dtype) * np.asarray(scale, dtype)


def samples(*shape: int) -> np.ndarray:
    return (np.random.default_rng([*shape]).standard_normal(shape) * 12).astype(np.float32)


@pytest.mark.parametrize(
    ("storage", "low", "high", "numpy"),
    [("i8", -128, 127, np.int8), ("u8", 0, 255, np.uint8), ("i4<-7:7>", -7, 7, ml_dtypes.int4),
     ("i16", -32768, 32767, np.int16), ("i32", -(1 << 31), (1 << 31) - 1, np.int32)],
)  # fmt: skip
def test_quantize_and_dequantize(storage: str, low: int, high: int, numpy: type) -> None:
    zero_point = 3 if low == -7 else 20
    kind = f"!quant.uniform<{storage}:f32, 0.25:{zero_point}>"
    executable = shlo_disc.compile(f"""
    func.func @main(%x: tensor<?x3xf32>) -> (tensor<?x3x{kind}>, tensor<?x3xf32>) {{
      %0 = stablehlo.uniform_quantize %x : (tensor<?x3xf32>) -> tensor<?x3x{kind}>
      %1 = stablehlo.uniform_dequantize %0 : (tensor<?x3x{kind}>) -> tensor<?x3xf32>
      return %0, %1 : tensor<?x3x{kind}>, tensor<?x3xf32>
    }}""")
    for n in SIZES:
        x = samples(n, 3)
        integers, floats = (np.asarray(r) for r in executable(x))
        want = quantized(x, np.float32(0.25), np.float32(zero_point), low, high)
        assert integers.dtype == numpy
        assert integers.astype(np.float64).tolist() == want.tolist()
        assert floats.tolist() == dequantized(want, np.float32(0.25), np.int32(zero_point)).tolist()


def test_ops_compute_with_floats_and_move_integers() -> None:
    a, b, c = (f"!quant.uniform<i8:f32, {scale}>" for scale in ("0.1:-30", "0.5:-20", "0.5:0"))
    executable = shlo_disc.compile(f"""
    func.func @main(%x: tensor<?x4x{a}>, %y: tensor<?x4x{b}>, %z: tensor<{b}>) -> (tensor<?x4x{b}>, tensor<?x4x{a}>,
        tensor<4x?x{b}>, tensor<?x4x{b}>, tensor<?x?xf32>) {{
      %0 = stablehlo.add %x, %y : (tensor<?x4x{a}>, tensor<?x4x{b}>) -> tensor<?x4x{b}>
      %1 = stablehlo.abs %x : tensor<?x4x{a}>
      %2 = stablehlo.transpose %y, dims = [1, 0] : (tensor<?x4x{b}>) -> tensor<4x?x{b}>
      %3 = stablehlo.uniform_quantize %x : (tensor<?x4x{a}>) -> tensor<?x4x{b}>
      %c = stablehlo.uniform_quantize %2 : (tensor<4x?x{b}>) -> tensor<4x?x{c}>
      %4 = stablehlo.dot_general %0, %c, contracting_dims = [1] x [0]
        : (tensor<?x4x{b}>, tensor<4x?x{c}>) -> tensor<?x?x!quant.uniform<i32:f32, 0.25>>
      %5 = stablehlo.uniform_dequantize %4 : (tensor<?x?x!quant.uniform<i32:f32, 0.25>>) -> tensor<?x?xf32>
      return %0, %1, %2, %3, %5 : tensor<?x4x{b}>, tensor<?x4x{a}>, tensor<4x?x{b}>, tensor<?x4x{b}>, tensor<?x?xf32>
    }}""")
    rng = np.random.default_rng(0)
    for n in SIZES:
        x, y = rng.integers(-128, 128, (2, n, 4)).astype(np.int8)
        total, magnitude, turned, other, product = (np.asarray(r) for r in executable(x, y, np.int8(3)))
        fx, fy = dequantized(x, 0.1, -30), dequantized(y, 0.5, -20)
        assert total.tolist() == quantized(fx + fy, 0.5, -20, -128, 127).tolist()
        assert magnitude.tolist() == quantized(np.abs(fx), 0.1, -30, -128, 127).tolist()
        assert turned.tolist() == y.T.tolist()
        assert other.tolist() == quantized(fx, 0.5, -20, -128, 127).tolist()
        right = dequantized(quantized(fy, 0.5, 0, -128, 127), 0.5, 0)
        assert product.tolist() == (dequantized(total, 0.5, -20) @ right.T).tolist()  # multiples of 0.25: exact


def test_a_scale_for_each_channel() -> None:
    kind = "!quant.uniform<i8:f32:1, {0.1:-30, 0.5:-20, 2.0:5}>"
    executable = shlo_disc.compile(f"""
    func.func @main(%x: tensor<?x3xf32>) -> (tensor<?x3x{kind}>, tensor<?x3xf32>, tensor<?x3xi8>) {{
      %0 = stablehlo.uniform_quantize %x : (tensor<?x3xf32>) -> tensor<?x3x{kind}>
      %1 = stablehlo.uniform_dequantize %0 : (tensor<?x3x{kind}>) -> tensor<?x3xf32>
      %2 = stablehlo.bitcast_convert %0 : (tensor<?x3x{kind}>) -> tensor<?x3xi8>
      return %0, %1, %2 : tensor<?x3x{kind}>, tensor<?x3xf32>, tensor<?x3xi8>
    }}""")
    scales, zero_points = np.float32([0.1, 0.5, 2.0]), np.int32([-30, -20, 5])
    for n in SIZES:
        x = samples(n, 3)
        integers, floats, bits = (np.asarray(r) for r in executable(x))
        want = quantized(x, scales, zero_points, -128, 127)
        assert integers.tolist() == bits.tolist() == want.tolist()
        assert floats.tolist() == dequantized(want, scales, zero_points).tolist()


def test_constants() -> None:
    kind = "!quant.uniform<i8:f32, 0.5:1>"
    executable = shlo_disc.compile(f"""
    func.func @main(%x: tensor<3x{kind}>) -> tensor<3x{kind}> {{
      %0 = stablehlo.constant() {{value = dense<[1, 3, -5]> : tensor<3xi8>}} : () -> tensor<3x{kind}>
      %1 = stablehlo.multiply %0, %x : tensor<3x{kind}>
      return %1 : tensor<3x{kind}>
    }}""")
    x = np.int8([9, 9, 11])
    want = quantized(dequantized(np.int8([1, 3, -5]), 0.5, 1) * dequantized(x, 0.5, 1), 0.5, 1, -128, 127)
    assert np.asarray(executable(x)).tolist() == want.tolist()


def test_bodies_on_quantized_tensors_are_refused() -> None:
    kind = "!quant.uniform<i8:f32, 0.5>"
    with pytest.raises(UnsupportedError, match="stablehlo.reduce on !quant.uniform"):
        shlo_disc.compile(f"""
        func.func @main(%x: tensor<?x3x{kind}>, %i: tensor<{kind}>) -> tensor<?x{kind}> {{
          %0 = stablehlo.reduce(%x init: %i) across dimensions = [1]
            : (tensor<?x3x{kind}>, tensor<{kind}>) -> tensor<?x{kind}>
            reducer(%a: tensor<{kind}>, %b: tensor<{kind}>) {{
              %s = stablehlo.add %a, %b : tensor<{kind}>
              stablehlo.return %s : tensor<{kind}>
            }}
          return %0 : tensor<?x{kind}>
        }}""")
