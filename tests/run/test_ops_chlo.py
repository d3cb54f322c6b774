# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CHLO ops in a program's text, which are rewritten into StableHLO while it is read."""

from __future__ import annotations

import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import ProgramError, ShapeError, UnsupportedError


def program(body: str, arguments: str, result: str) -> str:
    return f"func.func @main({arguments}) -> {result} {{\n{body}\n  return %r : {result} }}"


@pytest.mark.parametrize("size", ["?", "5"])
def test_an_elementwise_op(size: str) -> None:
    kind = f"tensor<{size}xf32>"
    executable = shlo_disc.compile(program(f"%r = chlo.cosh %x : {kind} -> {kind}", f"%x: {kind}", kind))
    for count in (1, 17) if size == "?" else (5,):
        x = np.linspace(-3, 3, count, dtype=np.float32)
        np.testing.assert_allclose(executable(x), np.cosh(x), rtol=1e-6)


def test_a_broadcasting_op() -> None:
    a, b = "tensor<?x4xf32>", "tensor<?x1xf32>"
    body = f"%r = chlo.broadcast_add %x, %y : ({a}, {b}) -> {a}"
    executable = shlo_disc.compile(program(body, f"%x: {a}, %y: {b}", a))
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(executable(x, x[:, :1]), x + x[:, :1])
    with pytest.raises(ShapeError):
        executable(x, x[:2, :1])


@pytest.mark.parametrize("backwards", [False, True])
def test_a_scan(backwards: bool) -> None:
    body = f"""%r, %last = chlo.scan(%x) inits(%i) dimension=0 attributes {{is_reverse = {str(backwards).lower()}}} {{
      ^bb0(%a: tensor<i32>, %c: tensor<i32>):
        %s = stablehlo.add %a, %c : tensor<i32>
        stablehlo.return %s, %s : tensor<i32>, tensor<i32>
      }} : (tensor<5xi32>, tensor<i32>) -> (tensor<5xi32>, tensor<i32>)"""
    kind = "tensor<5xi32>"
    executable = shlo_disc.compile(program(body, f"%x: {kind}, %i: tensor<i32>", kind))
    x = np.arange(1, 6, dtype=np.int32)
    want = np.cumsum(x[::-1])[::-1] if backwards else np.cumsum(x)
    np.testing.assert_array_equal(executable(x, np.int32(0)), want)


def test_a_constant_like_its_operand() -> None:
    kind = "tensor<?xf32>"
    body = f'%r = "chlo.constant_like"(%x) <{{value = 2.0 : f32}}> : ({kind}) -> {kind}'
    got = shlo_disc.compile(program(body, f"%x: {kind}", kind))(np.zeros(3, np.float32))
    np.testing.assert_array_equal(got, np.full(3, 2, np.float32))


def test_an_op_without_a_rewriting_is_refused_by_name() -> None:
    kind = "tensor<4xf32>"
    body = f"""%m = "chlo.minimum_broadcast_shapes"(%x, %x) : ({kind}, {kind}) -> tensor<2xindex>
      %r = chlo.erf %x : {kind} -> {kind}"""
    with pytest.raises((UnsupportedError, ProgramError), match="chlo"):
        shlo_disc.compile(program(body, f"%x: {kind}", kind))


def test_an_op_that_does_not_exist() -> None:
    with pytest.raises(ProgramError, match="nonsense"):
        shlo_disc.compile("func.func @main(%x: tensor<f32>) {\n  %r = chlo.nonsense %x : tensor<f32>\n  return }")
