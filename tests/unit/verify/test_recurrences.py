# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The checker of recurrences: each way in which rows can depend on each other, and what is computed row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import export, lax

from shlo_disc.driver.compiler import import_stage, run_pipeline
from shlo_disc.errors import CompilerError
from shlo_disc.options import Options
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.transforms import decisions
from shlo_disc.verify import verify_fusions
from tests.run import test_recurrences as programs

Program = Callable[..., Any]


def fused(function: Program, *specs: str) -> str:
    scope = export.SymbolicScope()
    arguments = [jax.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), jnp.float32) for s in specs]
    program = export.export(jax.jit(function))(*arguments)
    return str(run_pipeline(import_stage(program, "cpu", Options(strict=True)), last="fuse").module)


def moved(x: jax.Array, table: jax.Array) -> Any:
    """Each row of a state goes through all ops that move elements, and stays itself."""

    def step(h: jax.Array, row: jax.Array) -> Any:
        wide = jnp.concatenate([h[:, 1:], jnp.pad(h[:, :1], ((0, 0), (0, 1)))[:, ::-1]], axis=1)
        looked_up = table[jnp.clip(wide[:, 0] * 4, 0, 3).astype(jnp.int32)]
        of_rows = jnp.take_along_axis(wide, jnp.clip(wide * 3, 0, 2).astype(jnp.int32), axis=1)
        turned = jnp.swapaxes(jnp.reshape(wide, (-1, 1, 7)), 0, 2)[:, 0].T
        h = jnp.tanh(turned[:, :6] + row + wide.sum(1, keepdims=True)) + looked_up + of_rows[:, :6]
        return lax.dynamic_update_slice(h, h[:, :2] * 2, (0, 3)), h.max(1)

    return lax.scan(step, x[0], x)


@pytest.mark.parametrize(
    ("function", "specs"),
    [
        (programs.gru, ["t, b, 15", "5, 15"]),
        (programs.three_loops, ["t, b, 15", "s, c + 1, 24", "5, 15", "8, 24"]),
        (programs.products_in_a_row, ["t, b, 20", "20, 20", "20, 20"]),
        (programs.moved_states, ["t, b, 6"]),
        (programs.every_other_row, ["b, 5", "b, 7, 5", "5, 5"]),
        (moved, ["t, b, 6", "4, 6"]),
    ],
)
def test_right_recurrences_pass(function: Program, specs: list[str]) -> None:
    assert '"recurrence"' in fused(function, *specs)


def across(function: Callable[[jax.Array], jax.Array]) -> Program:
    return lambda x: lax.scan(lambda h, row: (jnp.tanh(function(h) + row), None), x[0], x)[0]


CROSSINGS = {
    "reduction": across(lambda h: h - h.max(0)),
    "reversal": across(lambda h: h[::-1]),
    "slice": across(lambda h: h + h[:1]),
    "roll": across(lambda h: jnp.roll(h, 1, axis=0)),
    "lookup": across(lambda h: h[jnp.zeros(h.shape[0], jnp.int32)]),
    "transpose": across(lambda h: h.T),
    "reshape": across(lambda h: h.T.reshape(h.shape)),
    "padding": across(lambda h: jnp.pad(h, ((1, 0), (0, 0)))[:-1]),
}


@pytest.mark.parametrize("name", CROSSINGS)
def test_rows_that_meet_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, specs = CROSSINGS[name], ["t, 6, 6" if name == "transpose" else "t, b, 6"]
    assert '"recurrence"' not in fused(function, *specs)
    monkeypatch.setattr(decisions, "TURNED_OFF", {"recurrence.rows-do-not-meet", "recurrence.states-keep-their-rows"})
    with pytest.raises(CompilerError, match="a row needs another one"):
        fused(function, *specs)


LOOP = """
  func.func private @recurrence_0(%x: tensor<4x3xf32>, %out: tensor<5x4xf32>) -> (tensor<4x3xf32>, tensor<5x4xf32>)
      attributes {disc.fusion = #disc.fusion<"recurrence", {loops = [{scalars = array<i64: 0>,
        states = array<i64: 1>, stacks = array<i64: 2>, windows = array<i64: AXIS>}]}>} {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %five = stablehlo.constant dense<5> : tensor<i32>
    %init = stablehlo.constant dense<0.0> : tensor<f32>
    %0:3 = stablehlo.while(%i = %zero, %h = %x, %stack = %out) : tensor<i32>, tensor<4x3xf32>, tensor<5x4xf32>
     cond {
      %more = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      %new = stablehlo.tanh %h : tensor<4x3xf32>
      %sums = stablehlo.reduce(%new init: %init) applies stablehlo.add across dimensions = [1]
        : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32>
      %all = stablehlo.reduce(%sums init: %init) applies stablehlo.add across dimensions = [0]
        : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      %place = stablehlo.convert %all : (tensor<f32>) -> tensor<i32>
      %window = stablehlo.reshape %sums : (tensor<4xf32>) -> tensor<1x4xf32>
      %written = stablehlo.dynamic_update_slice %stack, %window, %i, %zero
        : (tensor<5x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<5x4xf32>
      stablehlo.return %next, %new, %written : tensor<i32>, tensor<4x3xf32>, tensor<5x4xf32>
    }
    return %0#1, %0#2 : tensor<4x3xf32>, tensor<5x4xf32>
  }"""


def check(*changes: tuple[str, str]) -> None:
    text = LOOP
    for old, new in changes or [("AXIS", "1")]:
        assert old in text
        text = text.replace(old, new, 1)
    with make_context(), ir.Location.unknown():
        verify_fusions(ir.Module.parse(text.replace("AXIS", "1")))


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("%stack, %window, %i, %zero", "%stack, %window, %place, %zero", "what is the same for all rows needs one"),
        ("return %next,", "return %place,", "what is the same for all rows needs one"),
        ("stablehlo.tanh %h", "stablehlo.reverse %h, dims = [0]", "a row needs another one"),
        ("stablehlo.reshape %sums : (tensor<4xf32>) ->",
         "stablehlo.slice %stack [0:1, 0:4] : (tensor<5x4xf32>) ->", "an iteration reads a stack"),
    ],
)  # fmt: skip
def test_other_loops_are_found(old: str, new: str, text: str) -> None:
    check()
    with pytest.raises(CompilerError, match=text):
        check((old, new))
