# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A weight of narrow integers as floats, in ops that become one loop, however the program writes them.

It has rows only where those of its product are not few. Ops of the program, such as a concatenation of halves of bytes,
would be a kernel for any rows.
"""

from __future__ import annotations

from shlo_disc.shape_dialect.build import (
    and_,
    broadcast,
    broadcast_scalar,
    constant,
    convert,
    iota,
    leading,
    multiply,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
    subtract,
    view,
)
from shlo_disc.shape_dialect.dialect.types import element_type_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.transforms.simplify.dequantized_patterns import DequantizedProduct, Layout
from shlo_disc.transforms.simplify.index_digits import Read


def written_weight(found: DequantizedProduct) -> ir.Value:
    """The weight of a product in the order of its integers, without rows where those of the product are few."""
    weight, f32 = _Weight(found), ir.F32Type.get()
    scale, zero = found.layouts
    value = convert(weight.integers(), f32)
    if found.weight.integers.zero is not None:
        value = subtract(value, weight.parameter(found.weight.integers.zero, zero))
    if found.weight.scale is not None:
        value = multiply(value, weight.parameter(found.weight.scale, scale))
        value = convert(value, ir.Type.parse(found.weight.rounding))
    value = convert(value, element_type_of(found.other))
    is_there = 1 - found.is_of_few_rows
    first, *rest = weight.sizes
    sizes = (found.columns, found.rows) if found.has_dense_columns else (found.rows, found.columns)
    return view(leading(value, (first * is_there, *rest)), (is_there * sizes[0], Expr.const(sizes[1])))


class _Weight:
    """The elements of a weight, whose rows lie along several axes: by the halves of bytes and by groups.

    A reshape of what is broadcast would be a kernel of its own.
    """

    def __init__(self, found: DequantizedProduct):
        self.found = found
        rows, group = found.rows, found.group
        groups = rows // group
        self.half: int | None = None
        along, self.groups = [groups, group], [0]
        if found.half == 1:
            along, self.half = [groups, group // 2, 2], 2
        elif found.half:
            along, self.half, self.groups = [2, groups // 2, group], 0, [0, 1]
            if groups == 1:
                along, self.groups = [2, rows // 2], []
        self.first = int(bool(found.has_dense_columns))  # of the axes of rows
        self.column = 0 if self.first else len(along)
        along.insert(self.column, found.columns)
        self.sizes = tuple(map(Expr.const, along))

    def integers(self) -> ir.Value:
        """The integers of the weight, as they are."""
        data, code = self.found.weight.integers.data.value, self.found.weight.integers.code
        if self.half is None:
            return _of_bits(view(data, self.sizes), ir.Type.parse(code))
        byte, axis = element_type_of(data), self.first + self.half
        others = [other for other in range(len(self.sizes)) if other != axis]
        bytes_ = view(data, [self.sizes[other] for other in others])
        four = constant(4, byte, self.sizes)
        shifted = shift_right_logical(
            broadcast(bytes_, self.sizes, others), multiply(iota(self.sizes, byte, axis), four)
        )
        if code.startswith("ui"):
            return and_(shifted, constant(15, byte, self.sizes))
        signed = ir.IntegerType.get_signless(8)
        four = constant(4, signed, self.sizes)
        return shift_right_arithmetic(shift_left(_of_bits(shifted, signed), four), four)

    def parameter(self, read: Read, layout: Layout | None) -> ir.Value:
        """Scales or zero points, one for each element."""
        value = convert(read.value, ir.F32Type.get())
        if layout is None or not (layout.k or layout.n):
            return broadcast_scalar(view(value, ()), self.sizes)
        of_rows = (layout.k, [self.first + axis for axis in self.groups])
        of_columns = (layout.n, [self.column])
        axes = [axis for distance, own in sorted((of_rows, of_columns), reverse=True) if distance for axis in own]
        return broadcast(view(value, [self.sizes[axis] for axis in axes]), self.sizes, axes)


def _of_bits(value: ir.Value, element: ir.Type) -> ir.Value:
    """The same bits as elements of another type."""
    return value if element_type_of(value) == element else convert(value, element, "bitcast_convert")


__all__ = ["written_weight"]
