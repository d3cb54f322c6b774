# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every convolution as one in canonical form: [batch, space..., feature] by [space..., input feature, output feature],
without holes in the input, reversal or groups of batches. What is plainly a product becomes a `dot_general`.

Transposes of the operands, their padding and all that feeds them are one kernel each. Padding stays with convolutions
that are computed as products, which fill it in as they gather their windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shlo_disc.shape_dialect.build import every, pad, reverse, transpose, view
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir, rewrite, stablehlo
from shlo_disc.shape_dialect.ops.values import known_elements
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.attributes import precision_attributes
from shlo_disc.shape_dialect.utils.convolution import (
    Convolution,
    convolution_of,
    group_count_attributes,
    has_canonical_order,
    is_canonical,
    static_padding,
)
from shlo_disc.shape_dialect.utils.windows import padding_attr
from shlo_disc.transforms.convolutions import takes_padding
from shlo_disc.transforms.simplify.data_movement import NO_MATCH, Pattern

_ZERO = Expr.const(0)


def canonical_convolution(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """Layouts by transposes, padding and holes by `pad`, reversal by `reverse`, batch groups as feature groups."""
    is_dynamic = op.operation.name == "stablehlo.dynamic_conv"
    if not is_dynamic and (is_canonical(op) or has_canonical_order(op) and takes_padding(op)):
        return NO_MATCH
    conv = convolution_of(op)
    padding = known_elements(op.operands[2]) if is_dynamic else static_padding(op)
    dims = dims_of(op.results[0])
    with rewriter.ip, op.location:
        lhs = _permuted(op.operands[0], conv.input)
        rhs = _permuted(op.operands[1], conv.kernel)
        waits = not has_canonical_order(op) and _is_plain(conv, padding)
        lhs = lhs if waits else _padded(lhs, conv, padding)
        if any(conv.reversal):
            rhs = reverse(rhs, [axis for axis, reversed_ in enumerate(conv.reversal) if reversed_])
        if conv.batch_groups != 1:
            lhs = _batches_as_features(lhs, conv.batch_groups, dims[conv.output[0]])
        result = tensor_type([dims[a] for a in conv.output], element_type_of(op.results[0]))
        attributes = _canonical_attributes(conv, op)
        if waits:
            attributes["padding"] = padding_attr([_constants(padding[i : i + 2]) for i in range(0, len(padding), 2)])
        new = ir.Operation.create("stablehlo.convolution", results=[result], operands=[lhs, rhs], attributes=attributes)
        back = [conv.output.index(axis) for axis in range(len(dims))]
        rewriter.replace_op(op, [_permuted(new.results[0], back)])
    return None


def _is_plain(conv: Convolution, padding: Dims) -> bool:
    """Tells whether nothing but zeros around the input keep a convolution in canonical order from being canonical."""
    is_constant = all(e.constant is not None for e in padding)
    return conv.rank > 0 and is_constant and set(conv.lhs_dilation) <= {1} and conv.batch_groups == 1


def _constants(sizes: Dims) -> list[int]:
    return [size.constant or 0 for size in sizes]


def _permuted(value: ir.Value, order: Sequence[int]) -> ir.Value:
    return value if list(order) == list(range(len(order))) else transpose(value, order)


def _padded(lhs: ir.Value, conv: Convolution, padding: Dims) -> ir.Value:
    holes = [d - 1 for d in conv.lhs_dilation]
    if not any(holes) and all(e.constant == 0 for e in padding):
        return lhs
    return pad(lhs, [_ZERO, *padding[::2], _ZERO], [_ZERO, *padding[1::2], _ZERO], [0, *holes, 0])


def _batches_as_features(lhs: ir.Value, groups: Expr, batch: Expr) -> ir.Value:
    """[groups * batch, space..., f] as [batch, space..., groups * f]."""
    _, *space, feature = dims_of(lhs)
    split = view(lhs, [groups, batch, *space, feature])
    moved = transpose(split, [*range(1, len(space) + 2), 0, len(space) + 2])
    return view(moved, [batch, *space, feature * groups])


def _canonical_attributes(conv: Convolution, op: ir.OpView) -> dict[str, Any]:
    last = conv.rank + 1
    space = list(range(1, last))
    kernel = list(range(conv.rank))
    numbers = stablehlo.ConvDimensionNumbers.get(0, last, space, conv.rank, last, kernel, 0, last, space)
    attributes: dict[str, Any] = {
        "dimension_numbers": numbers,
        "window_strides": ir.DenseI64ArrayAttr.get(list(conv.strides)),
        "rhs_dilation": ir.DenseI64ArrayAttr.get(list(conv.rhs_dilation)),
        **group_count_attributes((conv.feature_groups * conv.batch_groups, Expr.const(1))),
    }
    return attributes | precision_attributes(op)


def convolution_is_dot(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """A window of one element is a product over the features; one as large as the input, over space as well."""
    if not is_canonical(op):
        return NO_MATCH
    conv = convolution_of(op)
    lhs, rhs = list(op.operands)
    batch, *space, feature = dims_of(lhs)
    *window, _, outputs = dims_of(rhs)
    if conv.feature_groups != 1:
        return NO_MATCH
    is_whole = conv.rank > 0 and window == space and set(conv.rhs_dilation) == {1}
    if not is_whole and any(w.constant != 1 for w in window):
        return NO_MATCH
    result = dims_of(op.results[0])
    with rewriter.ip, op.location:
        if is_whole:
            contracted = (list(range(1, conv.rank + 2)), list(range(conv.rank + 1)))
            dims: Dims = (batch, outputs)
        else:
            lhs = lhs if set(conv.strides) <= {1} else every(lhs, [1, *conv.strides, 1])
            rhs = view(rhs, [feature, outputs])
            contracted = ([conv.rank + 1], [0])
            dims = result
        numbers = stablehlo.DotDimensionNumbers.get([], [], *contracted)
        attributes: dict[str, Any] = {"dot_dimension_numbers": numbers, **precision_attributes(op)}
        type_ = tensor_type(dims, element_type_of(op.results[0]))
        dot = ir.Operation.create("stablehlo.dot_general", results=[type_], operands=[lhs, rhs], attributes=attributes)
        rewriter.replace_op(op, [view(dot.results[0], result)])
    return None


PATTERNS: list[tuple[str, Pattern]] = [
    ("stablehlo.convolution", canonical_convolution),
    ("stablehlo.convolution", convolution_is_dot),
    ("stablehlo.dynamic_conv", canonical_convolution),
]
