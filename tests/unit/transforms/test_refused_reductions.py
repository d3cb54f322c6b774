# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorts that are not cut short, and reductions that no column kernel computes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from shlo_disc.lowering_cpu.policy import CPU_POLICY
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.transforms.decisions import OUTCOMES
from shlo_disc.transforms.fusion.columns import has_columns
from tests.unit.transforms.test_loop_patterns import compiled


def sort_kind(length: int) -> tuple[bool, set[str]]:
    """Tells whether a sort and the slice of its beginning are one kernel, and which conditions failed."""

    def run(x: jax.Array) -> jax.Array:
        return lax.slice_in_dim(jnp.sort(x, 1), 0, length, axis=1)

    done, failed = compiled(run, "b, 100")
    return str(done.module).count("func.func private") == 1, failed


def test_a_short_beginning_of_a_sort() -> None:
    assert sort_kind(CPU_POLICY.selected)[0]
    is_selection, failed = sort_kind(CPU_POLICY.selected + 1)
    assert "selection.is-short" in failed
    assert not is_selection


@pytest.mark.parametrize(("dims", "along", "expected"), [("3x4x", "0", True), ("4x", "", False), ("", "", False)])
def test_a_reduction_along_nothing_has_no_rows(dims: str, along: str, expected: bool) -> None:
    made = f"tensor<{'4x' if dims else ''}f32>"
    text = f"""
      func.func private @reduce_0(%x: tensor<{dims}f32>, %init: tensor<f32>) -> {made} {{
        %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [{along}]
            : (tensor<{dims}f32>, tensor<f32>) -> {made}
        return %0 : {made}
      }}"""
    before = OUTCOMES["column-kernel.has-rows", expected]
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        (fusion,) = (op for op in module.body.operations if isinstance(op, func.FuncOp))
        assert has_columns(fusion) == expected
    assert OUTCOMES["column-kernel.has-rows", expected] == before + 1


VALUES = "tensor<4xf32>, tensor<4xi32>"


@pytest.mark.parametrize(
    ("returned", "types", "failed"),
    [
        ("%0#0, %0#1", VALUES, ""),
        ("%0#0", "tensor<4xf32>", ""),
        ("%2, %0#1", "tensor<1x4xf32>, tensor<4xi32>", ""),
        ("%0#0, %x", "tensor<4xf32>, tensor<3x4xf32>", "has-its-columns"),
        ("%0#0, %3", "tensor<4xf32>, tensor<3xf32>", "has-its-columns"),
    ],
)
def test_results_of_a_column_kernel(returned: str, types: str, failed: str) -> None:
    text = f"""
      func.func private @reduce_0(%x: tensor<3x4xf32>, %i: tensor<3x4xi32>, %a: tensor<f32>, %b: tensor<i32>)
          -> ({types}) {{
        %0:2 = stablehlo.reduce(%x init: %a), (%i init: %b) across dimensions = [0]
            : (tensor<3x4xf32>, tensor<3x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
          reducer(%p: tensor<f32>, %q: tensor<f32>) (%r: tensor<i32>, %s: tensor<i32>) {{
            stablehlo.return %p, %r : tensor<f32>, tensor<i32>
          }}
        %2 = stablehlo.reshape %0#0 : (tensor<4xf32>) -> tensor<1x4xf32>
        %3 = stablehlo.slice %0#0 [1:4] : (tensor<4xf32>) -> tensor<3xf32>
        return {returned} : {types}
      }}"""
    assert _refused(text) == ({f"column-kernel.{failed}"} if failed else set())


@pytest.mark.parametrize(
    ("operand", "along", "failed"),
    [
        ("%x", "0", ""),
        ("%y", "0", "walk-alike"),
        ("%turned", "1", "walk-alike"),
        ("%wide", "0", "need-no-other"),
    ],
)
def test_two_reductions_in_a_column_kernel(operand: str, along: str, failed: str) -> None:
    sizes = {"%y": "5x4", "%turned": "4x3"}.get(operand, "3x4")
    text = f"""
      func.func private @reduce_0(%x: tensor<3x4xf32>, %y: tensor<5x4xf32>, %a: tensor<f32>)
          -> (tensor<4xf32>, tensor<4xf32>) {{
        %0 = stablehlo.reduce(%x init: %a) applies stablehlo.add across dimensions = [0]
            : (tensor<3x4xf32>, tensor<f32>) -> tensor<4xf32>
        %turned = stablehlo.transpose %x, dims = [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>
        %wide = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<4xf32>) -> tensor<3x4xf32>
        %1 = stablehlo.reduce({operand} init: %a) applies stablehlo.maximum across dimensions = [{along}]
            : (tensor<{sizes}xf32>, tensor<f32>) -> tensor<4xf32>
        return %0, %1 : tensor<4xf32>, tensor<4xf32>
      }}"""
    assert _refused(text) == ({f"column-kernel.{failed}"} if failed else set())


def _refused(text: str) -> set[str]:
    """The conditions of the column kernel that do not hold for a function."""
    before = OUTCOMES.copy()
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        (fusion,) = (op for op in module.body.operations if isinstance(op, func.FuncOp))
        is_taken = has_columns(fusion)
    refused = {name for (name, holds), count in (OUTCOMES - before).items() if count and not holds}
    assert is_taken == (not refused)
    return refused
