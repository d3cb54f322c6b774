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


@pytest.mark.parametrize(("returned", "types"), [("%0#0, %0#1", "tensor<4xf32>, tensor<4xi32>"),
                                                 ("%0#0, %x", "tensor<4xf32>, tensor<3x4xf32>"),
                                                 ("%0#0", "tensor<4xf32>")])  # fmt: skip
def test_a_reduction_of_two_values_or_beside_another_one_has_no_column_kernel(returned: str, types: str) -> None:
    text = f"""
      func.func private @reduce_0(%x: tensor<3x4xf32>, %i: tensor<3x4xi32>, %a: tensor<f32>, %b: tensor<i32>)
          -> ({types}) {{
        %0:2 = stablehlo.reduce(%x init: %a), (%i init: %b) across dimensions = [0]
            : (tensor<3x4xf32>, tensor<3x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
          reducer(%p: tensor<f32>, %q: tensor<f32>) (%r: tensor<i32>, %s: tensor<i32>) {{
            stablehlo.return %p, %r : tensor<f32>, tensor<i32>
          }}
        return {returned} : {types}
      }}"""
    before = OUTCOMES["column-kernel.has-one-result", False]
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        (fusion,) = (op for op in module.body.operations if isinstance(op, func.FuncOp))
        assert not has_columns(fusion)
    assert OUTCOMES["column-kernel.has-one-result", False] == before + 1
