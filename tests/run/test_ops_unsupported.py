# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops without a lowering are refused by name before anything is compiled, never by a crash."""

from __future__ import annotations

import pytest

import shlo_disc
from shlo_disc.errors import UnsupportedError


def text_program(body: str, result: str = "tensor<4xf32>", arguments: str = "%x: tensor<4xf32>") -> str:
    return f"func.func @main({arguments}) -> {result} {{\n{body}\n  return %r : {result} }}"


TEXTS = {
    "a body that uses values from outside": text_program(
        """%z = stablehlo.constant dense<0.0> : tensor<f32>
        %q = stablehlo.reduce(%y init: %z) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
          reducer(%a: tensor<f32>, %b: tensor<f32>) {
            %s = stablehlo.add %a, %b : tensor<f32>
            %t = stablehlo.multiply %s, %x : tensor<f32>
            stablehlo.return %t : tensor<f32>
          }
        %r = stablehlo.broadcast_in_dim %q, dims = [] : (tensor<f32>) -> tensor<4xf32>""",
        arguments="%x: tensor<f32>, %y: tensor<4xf32>",
    ),
    "rng": text_program(
        """%s = stablehlo.constant dense<4> : tensor<1xi64>
        %a = stablehlo.constant dense<0.0> : tensor<f32>
        %r = stablehlo.rng %a, %a, %s, distribution = UNIFORM
          : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>"""
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str) -> None:
    with pytest.raises((UnsupportedError, shlo_disc.errors.ProgramError)):
        shlo_disc.compile(TEXTS[name])


def test_all_are_listed_at_once() -> None:
    program = text_program(
        """%t = stablehlo.after_all : !stablehlo.token
        %u = "stablehlo.outfeed"(%x, %t) : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
        %r = stablehlo.custom_call @unheard_of(%x) : (tensor<4xf32>) -> tensor<4xf32>"""
    )
    with pytest.raises(UnsupportedError) as caught:
        shlo_disc.compile(program)
    names = {c.op.split()[0] for c in caught.value.constructs}
    assert {"stablehlo.outfeed", "stablehlo.custom_call"} <= names
    assert all(c.location for c in caught.value.constructs)
