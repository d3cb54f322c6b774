# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of results that are computed from those of the operands and from attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

from shlo_disc.shape_dialect.dialect.types import Dims, product
from shlo_disc.shape_dialect.dialect.window import Window
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.data_movement import padded_size
from shlo_disc.shape_dialect.ops.size_relations import reshape_groups
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.symbolic.facts_simplify import divide
from shlo_disc.shape_dialect.utils.convolution import convolution_of


class Sizes(NamedTuple):
    """The sizes of an op: its operands' as it uses them, those in an attribute, and those of its result if known."""

    operands: list[Dims]
    attribute: Callable[[str], Dims]
    result: Callable[[int], Expr | None]
    facts: Facts


Formula = Callable[[ir.OpView, Sizes], "dict[int, Expr]"]
"""The sizes of the results of an op, by axis."""


def _reshape(op: ir.OpView, sizes: Sizes) -> dict[int, Expr]:
    """The size that is not known of those that some of the operand make.

    Where all are the same in the samples, one is not at other sizes if what it is made of is not.
    """
    source, result = (ir.RankedTensorType(v.type).shape for v in (op.operands[0], op.results[0]))
    found = {}
    for group, axes in reshape_groups(source, result):
        known = {axis: size for axis in axes if (size := sizes.result(axis)) is not None}
        unknown = [axis for axis in axes if axis not in known] if len(axes) > 1 else axes
        whole = product(sizes.operands[0][i] for i in group)
        if not unknown and whole.constant is None and all(size.constant is not None for size in known.values()):
            unknown = [_likeliest_part(whole, [(axis, result[axis]) for axis in axes])]
        if len(unknown) == 1:
            others = product(known[axis] for axis in axes if axis not in unknown)
            found[unknown[0]] = whole if others.constant == 1 else whole // others
    return found


def _likeliest_part(whole: Expr, parts: Sequence[tuple[int, int]]) -> int:
    """The first axis whose size makes the whole a multiple of the others', else the one with the largest size."""
    count = prod(size for _, size in parts)
    exact = (axis for axis, size in parts if size and (whole // (count // size)) * (count // size) == whole)
    return next(exact, max(parts, key=lambda part: part[1])[0])


def _concatenate(op: ir.OpView, sizes: Sizes) -> dict[int, Expr]:
    axis = ir.IntegerAttr(op.attributes["dimension"]).value
    return {axis: sum((dims[axis] for dims in sizes.operands), Expr.const(0))}


def _pad(op: ir.OpView, sizes: Sizes) -> dict[int, Expr]:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    columns = zip(sizes.operands[0], *(sizes.attribute(name) for name in names), strict=True)
    return {axis: padded_size(*column) for axis, column in enumerate(columns)}


def _slice(op: ir.OpView, sizes: Sizes) -> dict[int, Expr]:
    names = ("start_indices", "limit_indices", "strides")
    columns = zip(*(sizes.attribute(name) for name in names), strict=True)
    return {axis: ceildiv(limit - start, stride) for axis, (start, limit, stride) in enumerate(columns)}


def window_of(op: ir.OpView, sizes: Sizes, has_padding: bool = True) -> tuple[Dims, Window]:
    """The sizes that the windows of an op slide over, and the windows, without their padding if that is wanted."""
    if op.operation.name == "stablehlo.convolution":
        convolution = convolution_of(op)
        space = tuple(sizes.operands[0][axis] for axis in convolution.input[1:-1])
        extent = tuple(sizes.operands[1][axis] for axis in convolution.kernel[:-2])
        names = ("window_strides", "lhs_dilation", "rhs_dilation")
    else:
        space, extent = sizes.operands[0], sizes.attribute("window_dimensions")
        names = ("window_strides", "base_dilations", "window_dilations")
    ones, zeros = (Expr.const(1),) * len(space), (Expr.const(0),) * (2 * len(space))
    stride, base, dilation = (sizes.attribute(name) or ones for name in names)
    padding = (sizes.attribute("padding") if has_padding else ()) or zeros
    return space, Window(extent, stride, base, dilation, padding[::2], padding[1::2])


def window_axes(op: ir.OpView, rank: int) -> list[int]:
    """The axes of the result along which the windows slide."""
    if op.operation.name == "stablehlo.convolution":
        return list(convolution_of(op).output[1:-1])
    return list(range(rank))


def _windows(op: ir.OpView, sizes: Sizes) -> dict[int, Expr]:
    space, window = window_of(op, sizes)
    return dict(zip(window_axes(op, len(space)), window.result(space, sizes.facts), strict=True))


def _convolution(op: ir.OpView, sizes: Sizes) -> dict[int, Expr]:
    convolution, (groups,) = convolution_of(op), sizes.attribute("batch_group_count")
    batch = sizes.facts.simplify(sizes.operands[0][convolution.input[0]] // groups)
    return {**_windows(op, sizes), convolution.output[0]: batch}


def feature_groups(op: ir.OpView, sizes: Sizes) -> Expr | None:
    """The number of feature groups of a convolution, if it is a polynomial of symbols for all sizes."""
    convolution = convolution_of(op)
    groups, rest = divide(sizes.operands[0][convolution.input[-1]], sizes.operands[1][convolution.kernel[-2]])
    return groups if rest == 0 else None


def _select_and_scatter(op: ir.OpView, sizes: Sizes) -> dict[int, Expr]:
    return dict(enumerate(sizes.operands[0]))


def _custom_call(op: ir.OpView, sizes: Sizes) -> dict[int, Expr]:
    """Most often the sizes of an operand: the program does not say where a function gets its sizes from."""
    return {axis: size for dims in reversed(sizes.operands) for axis, size in enumerate(dims)}


FORMULAS: dict[str, Formula] = {
    "stablehlo.concatenate": _concatenate,
    "stablehlo.convolution": _convolution,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.pad": _pad,
    "stablehlo.reduce_window": _windows,
    "stablehlo.reshape": _reshape,
    "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.slice": _slice,
}

__all__ = ["FORMULAS", "Sizes", "feature_groups", "window_axes", "window_of"]
