# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The checker of fusions: each way in which the preconditions of a GEMM's epilogue can be missed is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import export

from shlo_disc.driver.compiler import import_stage, run_pipeline
from shlo_disc.errors import CompilerError
from shlo_disc.options import Options
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.transforms import decisions
from shlo_disc.verify import verify_fusions


def fused(function: Callable[..., Any], *specs: str) -> Any:
    scope = export.SymbolicScope()
    arguments = [jax.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), jnp.float32) for s in specs]
    program = export.export(jax.jit(function))(*arguments)
    return run_pipeline(import_stage(program, "cpu", Options(strict=True)), last="fuse").module


def rows_of_more_axes(x: Any, y: Any, w: Any, v: Any) -> Any:
    q = (x @ y)[:, :, None] + w + v[:, None, None]
    return q, q.sum(-1)


def read_twice(x: Any, y: Any) -> Any:
    p = x @ y
    sums = p.sum(0)
    return sums, jnp.tanh(p)


def other_columns(x: Any, y: Any) -> Any:
    p = jnp.reshape(x @ y, (-1, 4))
    return p / p.sum(1, keepdims=True)


def read_in_a_loop(x: Any, y: Any) -> Any:
    p = x @ y
    return jax.lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c + p), jnp.zeros_like(p))


def right(x: Any, y: Any) -> Any:
    p = x @ y
    return jax.nn.softmax(p + y.sum(0), axis=-1)


CASES = {
    "row-epilogue.full": (rows_of_more_axes, ["n, j", "j, k", "n, k, k", "n"]),
    "gemm-follower.one-reader": (read_twice, ["n, j", "j, k"]),
    "row-epilogue.columns-are-rows-of-the-product": (other_columns, ["n, j", "j, 8"]),
}


@pytest.mark.parametrize("name", CASES)
def test_right_fusions_pass(name: str) -> None:
    function, specs = CASES[name]
    fused(function, *specs)
    fused(right, "n, j", "j, k")
    fused(read_in_a_loop, "n, j", "j, k")
    fused(lambda x, w: jnp.tanh(jnp.einsum("bmk,kn->mnb", x, w)), "n, m, j", "j, k")
    fused(lambda x, w: jnp.tanh(jnp.einsum("km,kn->nm", x, w)), "n, 1", "n, n")


def test_an_epilogue_without_one_of_its_conditions_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "row-epilogue.full"
    function, specs = CASES[name]
    monkeypatch.setattr(decisions, "TURNED_OFF", {name})
    with pytest.raises(CompilerError, match="does not read its sums along all that it goes through"):
        fused(function, *specs)


# ---- kernels of rows ------------------------------------------------------------------------------------------------

ROWS = """
  func.func private @row_reduce_0(%x: tensor<4x3xf32>) -> tensor<RESULT>
      attributes {disc.fusion = #disc.fusion<"row_reduce", {columns = 1 : i64}>} {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32>
    %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [OTHER]
        : (tensor<4x3xf32>, tensor<f32>) -> tensor<RESULT>
    return %1 : tensor<RESULT>
  }
  func.func public @main(%x: tensor<4x3xf32>) -> tensor<RESULT> {
    %0 = call @row_reduce_0(%x) : (tensor<4x3xf32>) -> tensor<RESULT>
    return %0 : tensor<RESULT>
  }"""


@pytest.mark.parametrize(("other", "result"), [("0", "3xf32"), ("0, 1", "f32")])
def test_reductions_along_other_rows(other: str, result: str) -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(ROWS.replace("OTHER", other).replace("RESULT", result))
        with pytest.raises(CompilerError, match="not along the same rows"):
            verify_fusions(module)
        verify_fusions(ir.Module.parse(ROWS.replace("OTHER", "1").replace("RESULT", "4xf32")))


# ---- kernels of columns ---------------------------------------------------------------------------------------------

COLUMNS = """
  func.func private @reduce_0(%x: tensor<2x4x3xf32>) -> tensor<SIZESxf32>
      attributes {disc.fusion = #disc.fusion<"reduce", {by_columns}>} {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [ALONG]
        : (tensor<2x4x3xf32>, tensor<f32>) -> tensor<SIZESxf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [AXES] : (tensor<SIZESxf32>) -> tensor<2x4x3xf32>
    return RETURNED
  }"""


@pytest.mark.parametrize(
    ("sizes", "along", "axes", "returned", "fault"),
    [
        ("3", "0, 1", "2", "%0 : tensor<3xf32>", ""),
        ("2x3", "1", "0, 2", "%0 : tensor<2x3xf32>", ""),
        ("4", "0, 2", "1", "%0 : tensor<4xf32>", "reduces along other axes"),
        ("2x4", "2", "0, 1", "%0 : tensor<2x4xf32>", "reduces along other axes"),
        ("2x3", "1", "0, 2", "%1 : tensor<2x4x3xf32>", "has other sizes than its reduction"),
    ],
)
def test_reductions_down_columns(sizes: str, along: str, axes: str, returned: str, fault: str) -> None:
    text = COLUMNS.replace("SIZES", sizes).replace("ALONG", along).replace("AXES", axes).replace("RETURNED", returned)
    text = text.replace(f"-> tensor<{sizes}xf32>", f"-> {returned.split(': ')[1]}", 1)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        if fault:
            with pytest.raises(CompilerError, match=fault):
                verify_fusions(module)
        else:
            verify_fusions(module)


# ---- kernels that are split over blocks -----------------------------------------------------------------------------

PARTS = """
  func.func private @reduce_0(%x: tensor<2x4x3xf32>) -> (tensor<2x3xf32>, tensor<SIZESxf32>)
      attributes {disc.fusion = #disc.fusion<"reduce", {by_columns, partials = 1 : i64}>} {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<2x4x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %1 = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<SIZESxf32>
    return %0, %1 : tensor<2x3xf32>, tensor<SIZESxf32>
  }"""


def test_scratch_memory_for_parts() -> None:
    with make_context(), ir.Location.unknown():
        verify_fusions(ir.Module.parse(PARTS.replace("SIZES", "5x2x3")))
        with pytest.raises(CompilerError, match="has other sizes than the values"):
            verify_fusions(ir.Module.parse(PARTS.replace("SIZES", "5x3x2")))
        with pytest.raises(CompilerError, match="do not have room for each value"):
            verify_fusions(ir.Module.parse(PARTS.replace("SIZES", "2x3").replace("partials = 1", "partials = 2")))
