# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions as products of patches, where a target has no kernel that gathers windows while it multiplies.

The windows of the input are written out, [batch, space..., window..., feature], and multiplied by the weights: the
explicit form of Chellapilla, Puri and Simard (2006), known as im2col. It takes memory, as many times the input as a
window has elements that no other window shares, and in turn all arithmetic is that of a matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.build import ONE, constant, create, iota, shape_tensor, view
from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.ops import integer_attr
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, product, tensor_type
from shlo_disc.shape_dialect.mlir import ir, rewrite, stablehlo
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.attributes import precision_attributes
from shlo_disc.shape_dialect.utils.convolution import Convolution, convolution_of, is_canonical
from shlo_disc.transforms.simplify.data_movement import NO_MATCH, Pattern

MOST = 128
"""Elements of a window, or windows of an image, of which one is so bounded: so many times the input patches take."""

_ELEMENTS = ("f32", "f64", "f16", "bf16")

_INDEX = 64
"""Bits of an index: an axis may be longer than 32 bits tell."""


def convolution_of_patches(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """A convolution of one group in canonical form, of enough features."""
    if not policy().patch_features or not is_canonical(op) or not _pays(op):
        return NO_MATCH
    conv = convolution_of(op)
    with rewriter.ip, op.location:
        patches = _patches(op.operands[0], dims_of(op.operands[1])[: conv.rank], dims_of(op.results[0]), conv)
        contracted = (list(range(conv.rank + 1, 2 * conv.rank + 2)), list(range(conv.rank + 1)))
        numbers = stablehlo.DotDimensionNumbers.get([], [], *contracted)
        attributes: dict[str, Any] = {"dot_dimension_numbers": numbers}
        attributes |= precision_attributes(op)
        rewriter.replace_op(op, [create("dot_general", [patches, op.operands[1]], op.results[0].type, attributes)])
    return None


def _pays(op: ir.OpView) -> bool:
    """Tells whether a product of patches has enough to do for what they take to write and read."""
    conv, elements = convolution_of(op), {str(element_type_of(v)) for v in (*op.operands, op.results[0])}
    if conv.rank == 0 or conv.feature_groups != 1 or len(elements) != 1 or not elements <= set(_ELEMENTS):
        return False
    *window, _, features = dims_of(op.operands[1])
    images = dims_of(op.results[0])[1:-1]
    blowup = [count for count in (product(window).constant, product(images).constant) if count is not None]
    depth = product(dims_of(op.operands[1])[:-1])
    is_large = all(n.constant is None or n.constant >= policy().patch_features for n in (depth, features))
    return is_large and min(blowup, default=MOST + 1) <= MOST


def _patches(value: ir.Value, window: Dims, result: Dims, conv: Convolution) -> ir.Value:
    """[batch, space..., window..., feature] of [batch, space..., feature]: one gather of features."""
    rank, (batch, *space, features) = conv.rank, dims_of(value)
    places = [_places((*result[1:-1], *window), axis, conv) for axis in range(rank)]
    numbers = ir.Attribute.parse(
        f"#stablehlo.gather<offset_dims = [0, {2 * rank + 1}], collapsed_slice_dims = {[*range(1, rank + 1)]}, "
        f"start_index_map = {[*range(1, rank + 1)]}, index_vector_dim = {2 * rank}>"
    )
    operands = [value, _side_by_side(places), shape_tensor((batch, *(ONE for _ in space), features))]
    type_ = tensor_type((batch, *result[1:-1], *window, features), element_type_of(value))
    return create("dynamic_gather", operands, type_, {"dimension_numbers": numbers})


def _places(dims: Dims, axis: int, conv: Convolution) -> ir.Value:
    """The positions of the elements of all windows along an axis of space: [space..., window...]."""
    integer = ir.IntegerType.get_signless(_INDEX)

    def multiples(of_axis: int, step: int) -> ir.Value:
        numbers = iota(dims, integer, of_axis)
        return numbers if step == 1 else build.multiply(numbers, constant(step, integer, dims))

    starts, steps = multiples(axis, conv.strides[axis]), multiples(conv.rank + axis, conv.rhs_dilation[axis])
    return build.add(starts, steps)


def _side_by_side(values: Sequence[ir.Value]) -> ir.Value:
    """Values of one type along a new last axis."""
    dims, element = dims_of(values[0]), element_type_of(values[0])
    parts = [view(value, (*dims, ONE)) for value in values]
    if len(parts) == 1:
        return parts[0]
    type_ = tensor_type((*dims, Expr.const(len(parts))), element)
    return create("concatenate", parts, type_, {"dimension": integer_attr(len(dims))})


PATTERNS: list[tuple[str, Pattern]] = [("stablehlo.convolution", convolution_of_patches)]
