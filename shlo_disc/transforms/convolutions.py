# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions that are computed as matrix products, of [pixels, window * features] by [window * features, features].

The runtime gathers the rows of the left-hand side from the input while it packs them, with zeros for what lies outside
of it, or goes by Winograd's algorithm; what follows is done tile by tile as behind any other product. That pays where
the weights are packed ahead. Other convolutions are left to a kernel of their own.
"""

from __future__ import annotations

from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.access import is_splat
from shlo_disc.shape_dialect.utils.convolution import convolution_of, is_depthwise, static_padding
from shlo_disc.shape_dialect.utils.regions import is_fixed

ELEMENTS = ("f32", "f64")
"""Element types of the input, the weights and the result."""


def is_product(op: ir.OpView, packed: bool) -> bool:
    """Tells whether a canonical convolution is best computed as a product, its weights `packed` ahead or not."""
    if not has_tiles(op):
        return False
    if may_transform(op):
        return True
    *window, features = (d.constant for d in dims_of(op.operands[1]))
    depth = product(dims_of(op.operands[1])[:-1]).constant
    target = policy()
    if depth is None or features is None or depth * features < target.gathered_weights or not packed:
        return False
    return 4 * -(-features // target.gemm_columns) * target.gemm_columns <= 5 * features


def takes_padding(op: ir.OpView) -> bool:
    """Tells whether a convolution in canonical order is best computed without a padded copy of its input."""
    lhs, rhs = list(op.operands)
    if lhs == rhs or any(e.constant is None or e.constant < 0 for e in static_padding(op)):
        return False
    window = dims_of(rhs)[:-2]
    return any(w.constant != 1 for w in window) and is_product(op, is_fixed(rhs))


def has_tiles(op: ir.OpView) -> bool:
    """Tells whether products have the element type, and the runtime the rank."""
    return has_product_elements(op) and has_one_group(op) and has_runtime_rank(op)


def has_product_elements(op: ir.OpView) -> bool:
    """Tells whether input, weights and result are of one element type that there are products of."""
    elements = {str(element_type_of(v)) for v in (*op.operands, op.results[0])}
    return len(elements) == 1 and elements <= set(ELEMENTS)


def has_one_group(op: ir.OpView) -> bool:
    """Tells whether every feature of the result is made of all features of the input."""
    return convolution_of(op).feature_groups == 1


def has_runtime_rank(op: ir.OpView) -> bool:
    """Tells whether the runtime gathers windows of so many axes."""
    return convolution_of(op).rank in (1, 2)


def may_transform(op: ir.OpView) -> bool:
    """Tells whether Winograd's algorithm applies: windows of 3 x 3 side by side, and no precision is asked for.

    At run time there have to be enough features and pixels as well.
    """
    conv = convolution_of(op)
    *window, channels, features = (d.constant for d in dims_of(op.operands[1]))
    if window != [3, 3] or set(conv.strides) != {1} or set(conv.rhs_dilation) != {1}:
        return False
    if any(size is not None and size < policy().winograd_channels for size in (channels, features)):
        return False
    is_f32 = str(element_type_of(op.operands[0])) == "f32"
    return is_f32 and ("precision_config" not in op.attributes or _is_default(op.attributes["precision_config"]))


def _is_default(precision: ir.Attribute) -> bool:
    return all("DEFAULT" in str(p) for p in ir.ArrayAttr(precision))


def is_direct_convolution(op: ir.Operation) -> bool:
    """A canonical convolution that is worth a kernel of its own."""
    if op.name != "stablehlo.convolution" or any(is_splat(v) for v in op.operands):
        return False
    conv = convolution_of(op.opview)
    if is_depthwise(op.opview):
        groups = conv.feature_groups.constant
        return groups is None or groups >= policy().depthwise_features
    features = conv.outputs_of_group(dims_of(op.operands[1])[-1]).constant
    if features is None:
        return conv.feature_groups.constant is not None
    return conv.feature_groups == 1 or features >= policy().grouped_features
