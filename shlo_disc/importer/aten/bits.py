# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bits as those of another dtype, and shifts of integers.

Shifts by as many bits as there are, or by fewer than none, move every bit out.
"""

from __future__ import annotations

from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.mlir import ir

from .arithmetic import times
from .graph import Graph
from .table import translates


def _operands(t: Graph, x: Any, y: Any) -> tuple[ir.Value, ir.Value, ir.Value, int]:
    """Both operands, where the shift is by fewer bits than there are, and the greatest such shift."""
    if t.dtype.is_floating_point or t.dtype == torch.bool:
        raise t.refuse(f"a shift of {t.dtype} has no lowering", "shift integers")
    value, by = t.operand(x, t.dtype), t.operand(y, t.dtype)
    most = torch.iinfo(t.dtype).bits - 1
    low, high = (t.constant(n, t.dtype, t.dims) for n in (0, most))
    inside = build.and_(t.compare("GE", by, low), t.compare("LE", by, high))
    return value, by, inside, most


@translates("__lshift__.Scalar", "__lshift__.Tensor", "bitwise_left_shift.Tensor", "bitwise_left_shift.Tensor_Scalar",
            "bitwise_left_shift.Scalar_Tensor")  # fmt: skip
def left(t: Graph, x: Any, y: Any) -> ir.Value:
    """x * 2^y."""
    value, by, inside, most = _operands(t, x, y)
    if isinstance(y, int) and 0 <= y <= most:
        return build.shift_left(value, by)
    zero = t.constant(0, t.dtype, t.dims)
    return t.select(inside, build.shift_left(value, t.select(inside, by, zero)), zero)


@translates("__rshift__.Scalar", "__rshift__.Tensor", "bitwise_right_shift.Tensor", "bitwise_right_shift.Tensor_Scalar",
            "bitwise_right_shift.Scalar_Tensor")  # fmt: skip
def right(t: Graph, x: Any, y: Any) -> ir.Value:
    """x / 2^y rounded down."""
    value, by, inside, most = _operands(t, x, y)
    if isinstance(y, int) and 0 <= y <= most:
        return (build.shift_right_arithmetic if t.dtype.is_signed else build.shift_right_logical)(value, by)
    if t.dtype.is_signed:
        own = t.select(inside, by, t.constant(most, t.dtype, t.dims))
        return build.shift_right_arithmetic(value, own)
    zero = t.constant(0, t.dtype, t.dims)
    return t.select(inside, build.shift_right_logical(value, t.select(inside, by, zero)), zero)


@translates("square", takes_complex=True)
def squared(t: Graph, x: Any) -> ir.Value:
    """x * x."""
    return times(t, x, x)


@translates("view.dtype")
def bits_as(t: Graph, x: ir.Value, _: Any) -> ir.Value:
    """The bits of the elements as those of another dtype of the same width."""
    if t.dtype_of(x).itemsize != t.dtype.itemsize or torch.bool in (t.dtype, t.dtype_of(x)):
        raise t.refuse(f"a view of {t.dtype_of(x)} as {t.dtype} has no translation")
    return t.op("bitcast_convert", [x], t.dims, t.element(t.dtype))
