# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A convolution as a matrix product over windows."""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.shape_dialect.dialect.problems import Axis, ConvolutionProduct, MatrixProduct
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.convolution import convolution_of, static_padding
from shlo_disc.transforms.convolutions import has_one_group, has_product_elements, has_runtime_rank, may_transform
from shlo_disc.transforms.decisions import Pattern

CONVOLUTION_PRODUCT: Pattern[_Fused] = Pattern("convolution-product", "a convolution is a product over its windows")


@dataclass(frozen=True)
class _Fused:
    """A fusion and the convolution that it begins with."""

    fusion: func.FuncOp
    op: ir.OpView


@CONVOLUTION_PRODUCT.requires("nothing else is computed with it")
def _is_alone(found: _Fused) -> bool:
    return len(list(found.fusion.entry_block.operations)) == 2


@CONVOLUTION_PRODUCT.requires("the input and the weights are the fusion's arguments, in this order")
def _reads_the_arguments(found: _Fused) -> bool:
    return list(found.op.operands) == list(found.fusion.entry_block.arguments)


@CONVOLUTION_PRODUCT.requires("input, weights and result have one element type, and products of it exist")
def _elements(found: _Fused) -> bool:
    return has_product_elements(found.op)


@CONVOLUTION_PRODUCT.requires("every feature of the result is made of all features of the input")
def _one_group(found: _Fused) -> bool:
    return has_one_group(found.op)


@CONVOLUTION_PRODUCT.requires("the runtime gathers windows of this rank: 1 or 2")
def _rank(found: _Fused) -> bool:
    return has_runtime_rank(found.op)


def match_convolution(fusion: func.FuncOp) -> ConvolutionProduct | None:
    """The convolution that is a fusion of kind "convolution"; None when it cannot be a product."""
    found = CONVOLUTION_PRODUCT.match(_fused, fusion)
    return None if found is None else _product_of(found.op)


def _fused(fusion: func.FuncOp) -> _Fused | None:
    op = next(iter(fusion.entry_block.operations))
    return _Fused(fusion, op) if op.operation.name == "stablehlo.convolution" else None


def _product_of(op: ir.OpView) -> ConvolutionProduct:
    conv = convolution_of(op)
    lhs, rhs = (dims_of(v) for v in op.operands)
    result = dims_of(op.results[0])
    features, depth, zero = rhs[-1], product(rhs[:-1]), Expr.const(0)
    m = Axis(product(result[:-1]), zero, zero, features)
    n = Axis(features, zero, Expr.const(1), Expr.const(1))
    k = Axis(depth, zero, features, zero)
    whole = MatrixProduct(str(element_type_of(op.operands[0])), 0, 1, (), m, n, k)
    low = static_padding(op)[::2]
    return ConvolutionProduct(whole, lhs, result, rhs[:-2], conv.strides, conv.rhs_dilation, low, may_transform(op))
