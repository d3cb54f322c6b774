# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products that nothing joins, and convolutions that are no products: for each condition a case in which it fails."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from shlo_disc.lowering_cpu.policy import CPU_POLICY
from shlo_disc.shape_dialect.compile_state import compiling_for
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.dialect.fusion import Dot, fusion_of, is_fusion, set_fusion
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.transforms.decisions import OUTCOMES, Decisions
from shlo_disc.transforms.fusion.convolution_product import match_convolution
from shlo_disc.transforms.fusion.matrix_product import match_product
from shlo_disc.transforms.fusion.products import fuse_products
from tests.unit.transforms.test_loop_patterns import compiled, taken


def test_columns_of_the_result_are_left_to_each_product() -> None:
    def run(x: jax.Array, v: jax.Array, w: jax.Array, turned: bool = False) -> list[jax.Array]:
        return [(x @ u).T if turned else x @ u for u in (v, w)]

    shapes = ("m, k", "k, n", "k, n")
    assert taken(compiled(run, *shapes)[0], "horizontal-gemm") == 1
    done, failed = compiled(lambda *arrays: run(*arrays, turned=True), *shapes)
    assert "horizontal-gemm.writes-rows" in failed
    assert taken(done, "horizontal-gemm") == 0


def test_rows_of_a_kernel_that_are_pieces_of_the_products() -> None:
    def run(x: jax.Array, w: jax.Array, width: int = 4) -> jax.Array:
        return jax.nn.softmax(jnp.reshape(x @ w, (-1, width)))

    assert taken(compiled(lambda x, w: run(x, w, 8), "m, k", "k, 8")[0], "row-epilogue") == 1
    done, failed = compiled(run, "m, k", "k, 8")
    assert "row-epilogue.columns-are-rows-of-the-product" in failed
    assert taken(done, "row-epilogue") == 0


def with_products(text: str) -> ir.Module:
    """A module whose dots say what products they are."""
    module = ir.Module.parse(text)
    for op in module.body.operations:
        if isinstance(op, func.FuncOp) and is_fusion(op) and isinstance(fusion_of(op), Dot):
            set_fusion(op, Dot(product=match_product(op)))
    return module


def test_the_sum_of_a_product_without_elements() -> None:
    """It has no rows, and what sums it up has one."""
    text = """
      func.func private @dot_0(%x: tensor<0x4xf32>, %w: tensor<4x0xf32>) -> tensor<0x0xf32>
          attributes {disc.fusion = #disc.fusion<"dot", {}>} {
        %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
            : (tensor<0x4xf32>, tensor<4x0xf32>) -> tensor<0x0xf32>
        return %0 : tensor<0x0xf32>
      }
      func.func private @row_reduce_1(%x: tensor<0xf32>) -> (tensor<f32>, tensor<0xf32>)
          attributes {disc.fusion = #disc.fusion<"row_reduce", {collapsed, columns = 1 : i64}>} {
        %zero = stablehlo.constant dense<0.0> : tensor<f32>
        %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
            : (tensor<0xf32>, tensor<f32>) -> tensor<f32>
        return %0, %x : tensor<f32>, tensor<0xf32>
      }
      func.func public @main(%x: tensor<0x4xf32>, %w: tensor<4x0xf32>) -> tensor<f32> {
        %0 = call @dot_0(%x, %w) : (tensor<0x4xf32>, tensor<4x0xf32>) -> tensor<0x0xf32>
        %1 = stablehlo.reshape %0 : (tensor<0x0xf32>) -> tensor<0xf32>
        %2:2 = call @row_reduce_1(%1) : (tensor<0xf32>) -> (tensor<f32>, tensor<0xf32>)
        return %2#0 : tensor<f32>
      }"""
    decisions, before = Decisions(), OUTCOMES["row-epilogue.rows-are-as-many", False]
    with make_context(), ir.Location.unknown(), compiling_for(CPU_POLICY, strict=True):
        fuse_products(with_products(text), decisions)
    assert OUTCOMES["row-epilogue.rows-are-as-many", False] == before + 1
    assert decisions.taken == 0


def test_a_row_kernel_without_columns() -> None:
    text = """
      func.func private @dot_0(%x: tensor<4x8xf32>, %w: tensor<8xf32>) -> tensor<4xf32>
          attributes {disc.fusion = #disc.fusion<"dot", {}>} {
        %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
            : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>
      }
      func.func private @row_reduce_1(%x: tensor<4xf32>) -> tensor<4xf32>
          attributes {disc.fusion = #disc.fusion<"row_reduce", {collapsed}>} {
        return %x : tensor<4xf32>
      }
      func.func public @main(%x: tensor<4x8xf32>, %w: tensor<8xf32>) -> tensor<4xf32> {
        %0 = call @dot_0(%x, %w) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4xf32>
        %1 = call @row_reduce_1(%0) : (tensor<4xf32>) -> tensor<4xf32>
        return %1 : tensor<4xf32>
      }"""
    decisions, before = Decisions(), OUTCOMES["row-epilogue.walks-rows", False]
    with make_context(), ir.Location.unknown(), compiling_for(CPU_POLICY, strict=True):
        fuse_products(with_products(text), decisions)
    assert OUTCOMES["row-epilogue.walks-rows", False] == before + 1
    assert decisions.taken == 0


# ---- convolutions ---------------------------------------------------------------------------------------------------

DIMENSIONS = {
    1: ("8", "3", "[b, 0, f]x[0, i, o]->[b, 0, f]"),
    2: ("8x8", "3x3", "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"),
    3: ("8x8x8", "3x3x3", "[b, 0, 1, 2, f]x[0, 1, 2, i, o]->[b, 0, 1, 2, f]"),
}


def is_product(rank: int = 2, element: str = "f32", groups: int = 1, swapped: bool = False, follower: str = "") -> bool:
    """Tells whether a fusion with a convolution of 16 features by 16 is a product."""
    image, window, numbers = DIMENSIONS[rank]
    made = image.replace("8", "6")
    x, w, y = (f"tensor<{s}x{element}>" for s in (f"2x{image}x16", f"{window}x{16 // groups}x16", f"2x{made}x16"))
    arguments = f"%w: {w}, %x: {x}" if swapped else f"%x: {x}, %w: {w}"
    text = f"""
      func.func private @convolution_0({arguments}) -> {y}
          attributes {{disc.fusion = #disc.fusion<"convolution", {{}}>}} {{
        %0 = stablehlo.convolution(%x, %w) dim_numbers = {numbers}, window = {{}}
            {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}} : ({x}, {w}) -> {y}
        {follower and f"%1 = {follower} %0 : {y}"}
        return {"%1" if follower else "%0"} : {y}
      }}"""
    with make_context(), ir.Location.unknown(), compiling_for(CPU_POLICY, strict=True):
        module = ir.Module.parse(text)
        (fusion,) = (op for op in module.body.operations if isinstance(op, func.FuncOp))
        return match_convolution(fusion) is not None


def test_convolutions_that_are_products() -> None:
    assert is_product() and is_product(rank=1) and is_product(element="f64")


@pytest.mark.parametrize(
    ("condition", "options"),
    [
        ("convolution-product.is-alone", {"follower": "stablehlo.tanh"}),
        ("convolution-product.reads-the-arguments", {"swapped": True}),
        ("convolution-product.elements", {"element": "f16"}),
        ("convolution-product.one-group", {"groups": 2}),
        ("convolution-product.rank", {"rank": 3}),
    ],
)
def test_convolutions_that_are_no_products(condition: str, options: dict[str, object]) -> None:
    before = OUTCOMES[condition, False]
    assert not is_product(**options)
    assert OUTCOMES[condition, False] == before + 1
