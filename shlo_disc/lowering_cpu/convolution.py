# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions that the runtime computes by the micro-kernels of products (`runtime/native/convolution.cpp`).

One in canonical form is a product of [pixels, window * features] by [window * features, output features], whose
left-hand side is gathered while it is packed. That pays for deep windows, where the direct kernel
(`convolution_kernel.py`) would read far too many weights for each of its tiles. Windows of 3 x 3 side by side are left
to Winograd's algorithm (`winograd_kernel.py`) wherever there are enough features.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.lowering.elementwise import element_of
from shlo_disc.lowering_cpu.gemm_kernel import Tile
from shlo_disc.mlir import func, ir
from shlo_disc.shape_dialect.convolution import convolution_of
from shlo_disc.shape_dialect.expr import Expr
from shlo_disc.shape_dialect.types import Dims, dims_of, product
from shlo_disc.transforms.fusion.matrix_product import ELEMENTS, Axis, MatrixProduct

DEEPEST_DIRECT = 2048
"""Elements under a window up to which the direct kernel is as fast as a product with packed weights."""

FEWEST_CHANNELS = 16
"""Features of the input and of the result from which Winograd's algorithm pays, as in `winograd.cpp`."""


@dataclass(frozen=True)
class ConvolutionProduct:
    """One call of the runtime's `convolution`. Operand 0 of the fusion is the input, operand 1 has the weights."""

    product: MatrixProduct
    input: Dims
    result: Dims
    window: Dims
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    may_transform: bool

    def words(self) -> list[Expr]:
        """The fields of `DiscConvolution` behind its product and before its pointers."""
        one = Expr.const(1)
        images, *space, channels = self.input
        rows = [one] * (2 - len(space))

        def pair(values: Dims | list[Expr]) -> list[Expr]:
            return [*rows, *values]

        words = [images, *pair(space), channels, *pair(self.result[1:-1]), *pair(self.window)]
        return words + [*pair([Expr.const(s) for s in self.strides]), *pair([Expr.const(d) for d in self.dilations])]


def match_convolution(fusion: func.FuncOp) -> ConvolutionProduct | None:
    """The convolution that is a fusion of kind "convolution"; None when there are no tiles for it."""
    operations = list(fusion.entry_block.operations)
    op = operations[0]
    if op.operation.name != "stablehlo.convolution" or len(operations) != 2:
        return None
    conv = convolution_of(op)
    lhs, rhs = (dims_of(v) for v in op.operands)
    result = dims_of(op.results[0])
    element = element_of(op.operands[0].type).name
    is_plain = element in ELEMENTS and element_of(op.results[0].type).name == element
    if not is_plain or conv.feature_groups != 1 or conv.rank not in (1, 2):
        return None
    if list(op.operands) != list(fusion.entry_block.arguments):
        return None
    features, depth, zero = rhs[-1], product(rhs[:-1]), Expr.const(0)
    m = Axis(product(result[:-1]), zero, zero, features)
    n = Axis(features, zero, Expr.const(1), Expr.const(1))
    k = Axis(depth, zero, features, zero)
    whole = MatrixProduct(element, 0, 1, (), m, n, k)
    return ConvolutionProduct(whole, lhs, result, rhs[:-2], conv.strides, conv.rhs_dilation, _may_transform(op))


def is_direct(convolution: ConvolutionProduct, is_packed: bool, tile: Tile) -> bool:
    """Whether the direct kernel is the better one at any number of pixels."""
    if convolution.may_transform:
        return False
    depth, features = convolution.product.k.size.constant, convolution.product.n.size.constant
    if not is_packed or depth is None or features is None or depth < DEEPEST_DIRECT:
        return True
    panels = -(-features // tile.columns)
    return 4 * panels * tile.columns > 5 * features


def _may_transform(op: ir.OpView) -> bool:
    """Whether Winograd's algorithm applies: windows of 3 x 3 side by side, and no precision is asked for.

    At run time there have to be enough features and pixels as well.
    """
    conv = convolution_of(op)
    *window, channels, features = (d.constant for d in dims_of(op.operands[1]))
    if window != [3, 3] or set(conv.strides) != {1} or set(conv.rhs_dilation) != {1}:
        return False
    if any(size is not None and size < FEWEST_CHANNELS for size in (channels, features)):
        return False
    is_f32 = element_of(op.operands[0].type).name == "f32"
    return is_f32 and ("precision_config" not in op.attributes or _is_default(op.attributes["precision_config"]))


def _is_default(precision: ir.Attribute) -> bool:
    return all("DEFAULT" in str(p) for p in ir.ArrayAttr(precision))
