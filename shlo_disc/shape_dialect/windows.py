# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sliding windows: how large, how far apart, with which padding and holes, and how many fit.

StableHLO's own attributes hold numbers only. Where some parameter of a window is a size, the op carries all of them as
symbolic sizes in the attribute `disc.window`, which alone counts; its own attributes then only agree with its types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.expr import Expr
from shlo_disc.shape_dialect.facts import Facts, Relation
from shlo_disc.shape_dialect.propagation import integers
from shlo_disc.shape_dialect.types import Dims, dims_attr, dims_of, dims_of_attr

SYMBOLIC = "disc.window"
_FIELDS = ("size", "stride", "base_dilation", "dilation", "low", "high")


@dataclass(frozen=True)
class Window:
    """One entry a dimension. `base_dilation` spreads the operand's elements, `dilation` the window's."""

    size: Dims
    stride: Dims
    base_dilation: Dims
    dilation: Dims
    low: Dims
    high: Dims

    def result(self, operand: Dims, facts: Facts) -> Dims:
        """How many windows there are along each dimension of `operand`."""
        counts = []
        for axis, padded in enumerate(self.padded(operand, facts)):
            extent = dilated(self.size[axis], self.dilation[axis], facts)
            counts.append(window_count(padded - extent, self.stride[axis], facts))
        return tuple(counts)

    def padded(self, operand: Dims, facts: Facts) -> Dims:
        """The sizes of `operand` with its holes and its padding."""
        spread = (dilated(d, k, facts) for d, k in zip(operand, self.base_dilation, strict=True))
        return tuple(low + d + high for low, d, high in zip(self.low, spread, self.high, strict=True))

    def is_trivial(self, axis: int) -> bool:
        """Along this dimension each element is a window of its own."""
        ones = (self.size, self.stride, self.base_dilation)
        padding = (self.low, self.high)
        return all(p[axis].constant == 1 for p in ones) and all(p[axis].constant == 0 for p in padding)

    def is_padded(self, axis: int) -> bool:
        """Windows may hold positions that are no elements of the operand."""
        low, high = self.low[axis].constant, self.high[axis].constant
        return low != 0 or high is None or high > 0 or self.base_dilation[axis].constant != 1

    def attributes(self, operand: Dims, result: Dims) -> dict[str, ir.Attribute]:
        """The attributes of a `reduce_window` with these windows over `operand`, which gives `result`."""
        columns = [self._numbers(axis) for axis in range(len(self.size))]
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
            attributes[SYMBOLIC] = ir.DictAttr.get({name: dims_attr(getattr(self, name)) for name in _FIELDS})
        return attributes

    def _numbers(self, axis: int) -> tuple[int, ...] | None:
        """The parameters along a dimension, in the order of `_FIELDS`; None where one of them is a size."""
        found = [getattr(self, name)[axis].constant for name in _FIELDS]
        known = tuple(c for c in found if c is not None)
        return known if len(known) == len(found) else None


def _stand_in(operand: Expr, result: Expr) -> tuple[int, ...]:
    """Windows of one element that take MLIR's shape inference from `operand` to `result` where both are numbers."""
    padding = (result - operand).constant if operand.constant is not None else 0
    return (1, 1, 1, 1, 0, padding or 0)


def dilated(size: Expr, dilation: Expr, facts: Facts) -> Expr:
    """The extent of `size` elements that stand `dilation` apart."""
    if dilation.constant == 1:
        return size
    extent = (size - 1) * dilation + 1
    return extent if facts.prove(Relation.ge(size, 1)) is True else Expr.maximum(extent, 0)


def window_count(room: Expr, stride: Expr, facts: Facts) -> Expr:
    """How many windows a `stride` apart fit when the last one starts at most `room` after the first."""
    count = room // stride + 1
    return count if facts.prove(Relation.ge(room, 0)) is True else Expr.maximum(count, 0)


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
    if SYMBOLIC in op.attributes:
        fields = ir.DictAttr(op.attributes[SYMBOLIC])
        return Window(*(dims_of_attr(fields[name]) for name in _FIELDS))
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
    if SYMBOLIC not in op.attributes:
        return ()
    fields = ir.DictAttr(op.attributes[SYMBOLIC])
    return tuple(dim for name in _FIELDS for dim in dims_of_attr(fields[name]))


def window_of_operands(parameters: Sequence[Dims]) -> Window:
    """The windows of `@stablehlo.dynamic_reduce_window` from its last five operands' elements."""
    size, stride, base_dilation, dilation, padding = parameters
    return Window(size, stride, base_dilation, dilation, padding[::2], padding[1::2])
