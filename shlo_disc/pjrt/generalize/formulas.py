# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of results that are computed from those of the operands and from attributes."""

from __future__ import annotations

from collections.abc import Callable

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.dialect.types import Dims, product
from shlo_disc.shape_dialect.inference.rules.data_movement import padded_size
from shlo_disc.shape_dialect.inference.size_relations import reshape_groups
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.utils.convolution import convolution_of, static_padding
from shlo_disc.shape_dialect.utils.windows import window_of

Formula = Callable[[ir.OpView, "list[Dims]", "Callable[[str], Dims]"], "dict[int, Expr]"]
"""From an op, its operands' sizes and its attributes: the sizes of its results, by axis."""


def _reshape(op: ir.OpView, operands: list[Dims], attribute: Callable[[str], Dims]) -> dict[int, Expr]:
    source, result = (ir.RankedTensorType(v.type).shape for v in (op.operands[0], op.results[0]))
    groups = reshape_groups(source, result)
    return {axes[0]: product(operands[0][i] for i in group) for group, axes in groups if len(axes) == 1}


def _concatenate(op: ir.OpView, operands: list[Dims], attribute: Callable[[str], Dims]) -> dict[int, Expr]:
    axis = ir.IntegerAttr(op.attributes["dimension"]).value
    return {axis: sum((dims[axis] for dims in operands), Expr.const(0))}


def _pad(op: ir.OpView, operands: list[Dims], attribute: Callable[[str], Dims]) -> dict[int, Expr]:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    columns = zip(operands[0], *(attribute(name) for name in names), strict=True)
    return {axis: padded_size(*column) for axis, column in enumerate(columns)}


def _slice(op: ir.OpView, operands: list[Dims], attribute: Callable[[str], Dims]) -> dict[int, Expr]:
    names = ("start_indices", "limit_indices", "strides")
    columns = zip(*(attribute(name) for name in names), strict=True)
    return {axis: ceildiv(limit - start, stride) for axis, (start, limit, stride) in enumerate(columns)}


def _reduce_window(op: ir.OpView, operands: list[Dims], attribute: Callable[[str], Dims]) -> dict[int, Expr]:
    return dict(enumerate(window_of(op).result(operands[0], Facts())))


def _convolution(op: ir.OpView, operands: list[Dims], attribute: Callable[[str], Dims]) -> dict[int, Expr]:
    convolution = convolution_of(op)
    window = convolution.window(op, static_padding(op))
    space = tuple(operands[0][axis] for axis in convolution.input[1:-1])
    return dict(zip(convolution.output[1:-1], window.result(space, Facts()), strict=True))


def _custom_call(op: ir.OpView, operands: list[Dims], attribute: Callable[[str], Dims]) -> dict[int, Expr]:
    """Most often the sizes of an operand: the program does not say where a function gets its sizes from."""
    return {axis: size for dims in reversed(operands) for axis, size in enumerate(dims)}


FORMULAS: dict[str, Formula] = {
    "stablehlo.concatenate": _concatenate,
    "stablehlo.convolution": _convolution,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.pad": _pad,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.reshape": _reshape,
    "stablehlo.slice": _slice,
}

__all__ = ["FORMULAS"]
