# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A convolution as a matrix product over windows."""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.mlir import func
from shlo_disc.shape_dialect.convolution import convolution_of, static_padding
from shlo_disc.shape_dialect.expr import Expr
from shlo_disc.shape_dialect.types import Dims, dims_of, element_type_of, product
from shlo_disc.transforms.convolutions import has_tiles, may_transform
from shlo_disc.transforms.fusion.matrix_product import Axis, MatrixProduct


@dataclass(frozen=True)
class ConvolutionProduct:
    """A product whose operand 0 is the input, and operand 1 has the weights. `padding` is that at the low ends."""

    product: MatrixProduct
    input: Dims
    result: Dims
    window: Dims
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: Dims
    may_transform: bool


def match_convolution(fusion: func.FuncOp) -> ConvolutionProduct | None:
    """The convolution that is a fusion of kind "convolution"; None when it cannot be a product."""
    operations = list(fusion.entry_block.operations)
    op = operations[0]
    if op.operation.name != "stablehlo.convolution" or len(operations) != 2 or not has_tiles(op):
        return None
    if list(op.operands) != list(fusion.entry_block.arguments):
        return None
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
