# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The windows of ops, read and written."""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, dims_of_attr
from shlo_disc.shape_dialect.dialect.window import GROUPS, WINDOW, Window, read_window, window_attribute
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.attributes import integers

_FIELDS = ("size", "stride", "base_dilation", "dilation", "low", "high")


def padding_attr(pairs: Sequence[Sequence[int]]) -> ir.Attribute:
    """Padding as `dense<[[low, high], ...]> : tensor<Nx2xi64>`."""
    integer = ir.IntegerType.get_signless(64)
    type_ = ir.RankedTensorType.get([len(pairs), 2], integer)
    return ir.DenseElementsAttr.get([ir.IntegerAttr.get(integer, n) for pair in pairs for n in pair], type_)


def padding_pairs(op: ir.OpView, rank: int) -> list[tuple[int, int]]:
    """The padding of a windowed op, (low, high) for each of its `rank` dimensions."""
    if "padding" not in op.attributes:
        return [(0, 0)] * rank
    attribute = ir.DenseIntElementsAttr(op.attributes["padding"])
    values = [int(attribute.get_splat_value().value)] * (2 * rank) if attribute.is_splat else list(attribute)
    return list(zip(values[::2], values[1::2], strict=True))


def _numbers(op: ir.OpView, name: str, rank: int) -> Dims:
    values = integers(op.attributes[name]) if name in op.attributes else [1] * rank
    return tuple(Expr.const(v) for v in values)


def window_of(op: ir.OpView) -> Window:
    """The windows of a `reduce_window` or `select_and_scatter`."""
    if WINDOW in op.attributes:
        return read_window(op.attributes[WINDOW])
    rank = len(dims_of(op.operands[0]))
    pairs = padding_pairs(op, rank)
    return Window(
        _numbers(op, "window_dimensions", rank),
        _numbers(op, "window_strides", rank),
        _numbers(op, "base_dilations", rank),
        _numbers(op, "window_dilations", rank),
        tuple(Expr.const(low) for low, _ in pairs),
        tuple(Expr.const(high) for _, high in pairs),
    )


def window_sizes(op: ir.OpView | ir.Operation) -> Dims:
    """The sizes in the attributes of an op, in addition to those of its types."""
    if GROUPS in op.attributes:
        return dims_of_attr(op.attributes[GROUPS])
    if WINDOW not in op.attributes:
        return ()
    window = read_window(op.attributes[WINDOW])
    return tuple(dim for name in _FIELDS for dim in getattr(window, name))


def window_of_operands(parameters: Sequence[Dims]) -> Window:
    """The windows of `@stablehlo.dynamic_reduce_window` from its last five operands' elements."""
    size, stride, base_dilation, dilation, padding = parameters
    return Window(size, stride, base_dilation, dilation, padding[::2], padding[1::2])


def window_attributes(window: Window, operand: Dims, result: Dims) -> dict[str, ir.Attribute]:
    """The attributes of a `reduce_window` with these windows over `operand`, which gives `result`."""
    columns = [_constants(window, axis) for axis in range(len(window.size))]
    symbolic = None in columns
    if symbolic:
        columns = [c or _stand_in(*sizes) for c, *sizes in zip(columns, operand, result, strict=True)]
    known = dict(zip(_FIELDS, zip(*(c for c in columns if c), strict=True), strict=True))
    attributes: dict[str, ir.Attribute] = {
        "window_dimensions": ir.DenseI64ArrayAttr.get(known["size"]),
        "window_strides": ir.DenseI64ArrayAttr.get(known["stride"]),
        "base_dilations": ir.DenseI64ArrayAttr.get(known["base_dilation"]),
        "window_dilations": ir.DenseI64ArrayAttr.get(known["dilation"]),
        "padding": padding_attr(list(zip(known["low"], known["high"], strict=True))),
    }
    if symbolic:
        attributes[WINDOW] = window_attribute(window)
    return attributes


def _constants(window: Window, axis: int) -> tuple[int, ...] | None:
    """The parameters along a dimension, in the order of `_FIELDS`; None where one of them is a size."""
    found = [getattr(window, name)[axis].constant for name in _FIELDS]
    known = tuple(c for c in found if c is not None)
    return known if len(known) == len(found) else None


def _stand_in(operand: Expr, result: Expr) -> tuple[int, ...]:
    """Windows of one element that take MLIR's shape inference from `operand` to `result` where both are numbers."""
    padding = (result - operand).constant if operand.constant is not None else 0
    return (1, 1, 1, 1, 0, padding or 0)
