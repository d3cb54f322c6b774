# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sliding windows: how large, how far apart, with which padding and holes, and how many fit.

StableHLO's own attributes hold numbers only. Where some parameter of a window is a size, the op carries all of them as
symbolic sizes in the attribute `disc.window`, which alone counts; its own attributes then only agree with its types.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.shape_dialect.dialect.ops import WindowAttr
from shlo_disc.shape_dialect.dialect.records import read_typed, to_attribute
from shlo_disc.shape_dialect.dialect.types import Dims
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation

WINDOW = "disc.window"

GROUPS = "disc.groups"
"""On a convolution where one is a size: the numbers of feature groups and of batch groups, which alone count."""


@dataclass(frozen=True)
class Window:
    """One value per dimension. `base_dilation` spreads the elements of the operand, `dilation` those of the window."""

    size: Dims
    stride: Dims
    base_dilation: Dims
    dilation: Dims
    low: Dims
    high: Dims

    def result(self, operand: Dims, facts: Facts) -> Dims:
        """The number of windows along each dimension of `operand`."""
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


def dilated(size: Expr, dilation: Expr, facts: Facts) -> Expr:
    """The extent of `size` elements that stand `dilation` apart."""
    if dilation.constant == 1:
        return size
    extent = (size - 1) * dilation + 1
    return extent if facts.prove(Relation.ge(size, 1)) is True else Expr.maximum(extent, 0)


def window_count(span: Expr, stride: Expr, facts: Facts) -> Expr:
    """The number of windows a `stride` apart that fit when the last one starts at most `span` after the first."""
    count = span // stride + 1
    return count if facts.prove(Relation.ge(span, 0)) is True else Expr.maximum(count, 0)


def read_window(attribute: ir.Attribute) -> Window:
    """Windows from their attribute. Raises Malformed."""
    return read_typed(Window, attribute, WindowAttr, "window", WINDOW)


def window_attribute(window: Window) -> ir.Attribute:
    """The attribute of an op."""
    return WindowAttr.get(to_attribute(window))
