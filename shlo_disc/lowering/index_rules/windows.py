# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops over sliding windows: each element of the result folds the elements of its window, those that exist."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from math import prod

from shlo_disc.lowering.element_types import convert, element_of, round_to
from shlo_disc.lowering.elements import Elements, Positions
from shlo_disc.lowering.index_rules.folds import accumulator_of, multiply_add, nest, widen, zero_of
from shlo_disc.lowering.index_rules.rule import Rule
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.reduction import Combiner
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.dialect.window import Window
from shlo_disc.shape_dialect.mlir import arith, ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.convolution import convolution_of, static_padding
from shlo_disc.shape_dialect.utils.windows import window_of

MOST_SPELLED_OUT = 9
"""Elements of a window of static size that need no loop."""


def conjunction(e: Elements, conditions: list[ir.Value]) -> ir.Value | None:
    """All of `conditions`, scalars and vectors mixed; None when there are none."""
    result: ir.Value | None = None
    for condition in conditions:
        if result is None:
            result = condition
            continue
        if isinstance(result.type, ir.VectorType) or isinstance(condition.type, ir.VectorType):
            result, condition = e.splat(result), e.splat(condition)
        result = arith.andi(result, condition)
    return result


def window_position(
    e: Elements, window: Window, axis: int, size: ir.Value, position: Position, index: ir.Value | None
) -> tuple[Position, list[ir.Value]]:
    """The operand position of element `index` of the window at `position`, and the conditions that it is there."""
    if window.is_trivial(axis):
        return position, []
    stride, dilation = window.stride[axis], window.dilation[axis]
    place = e.math.scale(position, e.size_of(stride), stride.constant)
    if index is not None:
        place = e.math.add(place, arith.muli(index, e.size_of(dilation)))
    if not window.is_padded(axis):
        return place, []
    zero = index_constant(0)
    place = e.math.add(place, arith.subi(zero, e.size_of(window.low[axis])))
    conditions = [e.math.compare(arith.CmpIPredicate.sge, place, zero)]
    if window.base_dilation[axis].constant != 1:
        place, rest = e.math.divmod(place, e.size_of(window.base_dilation[axis]))
        conditions.append(e.math.compare(arith.CmpIPredicate.eq, rest, zero))
    conditions.append(e.math.compare(arith.CmpIPredicate.slt, place, size))
    return place, conditions


def _each(
    e: Elements,
    sizes: Sequence[Expr],
    start: list[ir.Value],
    body: Callable[[list[ir.Value], list[ir.Value]], list[ir.Value]],
) -> list[ir.Value]:
    """`nest` over the elements of a window, which are spelled out where they are few."""
    counts = [s.constant for s in sizes if s.constant is not None]
    if len(counts) < len(sizes) or prod(counts) > MOST_SPELLED_OUT:
        return nest(e, [e.size_of(s) for s in sizes], start, body)
    carried = start
    for indices in itertools.product(*map(range, counts)):
        carried = body([index_constant(i) for i in indices], carried)
    return carried


def _reduce_window(e: Elements, op: ir.OpView, value: ir.Value, positions: Positions) -> ir.Value:
    """Positions outside of the operand are passed over, as in XLA.

    The specification fills them with the initial value, which is no difference: it is neutral in the body.
    """
    count = len(op.results)
    inputs, inits = list(op.operands)[:count], list(op.operands)[count:]
    dims: Dims = dims_of(inputs[0])
    window = window_of(op)
    combiner = Combiner(op, e.elementwise)
    wide = any(not p.is_uniform for p in positions)
    start = [e.splat(e.at(v, ())) if wide else e.at(v, ()) for v in inits]
    axes = [a for a in range(len(dims)) if window.size[a].constant != 1]

    def body(indices: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
        index_of = dict(zip(axes, indices, strict=True))
        places, conditions = [], []
        for axis, position in enumerate(positions):
            size = e.size_of(dims[axis])
            place, found = window_position(e, window, axis, size, position, index_of.get(axis))
            places.append(place)
            conditions += found
        inside = conjunction(e, conditions)
        with nullcontext() if inside is None else e.only_where(inside):
            elements = [e.at(v, tuple(places)) for v in inputs]
        combined = combiner.combine(carried, [e.splat(v) for v in elements] if wide else elements)
        if inside is None:
            return combined
        return [e.select(inside, new, old) for new, old in zip(combined, carried, strict=True)]

    results = combiner.rounded(_each(e, [window.size[a] for a in axes], start, body))
    return results[list(op.results).index(value)]


def _convolution(e: Elements, op: ir.OpView, value: ir.Value, positions: Positions) -> ir.Value:
    """A convolution in canonical order, without holes in the input. Outside of it are zeros."""
    conv = convolution_of(op)
    spans = conv.window(op, static_padding(op))
    lhs, rhs = op.operands[0], op.operands[1]
    *window, depth, outputs = dims_of(rhs)
    sizes = dims_of(lhs)[1:-1]
    batch, *space, feature = positions
    element, result = element_of(lhs.type), element_of(value.type)
    accumulator = accumulator_of(element, result)
    group = Position(index_constant(0)) if conv.feature_groups == 1 else feature
    if outputs != conv.feature_groups != 1:
        group, _ = e.math.divmod(feature, e.size_of(conv.outputs_of_group(outputs)))
    first = e.math.scale(group, e.size_of(depth), depth.constant)

    def body(indices: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
        *taps, channel = indices
        places, conditions = [], []
        for axis, (position, tap) in enumerate(zip(space, taps, strict=True)):
            place, found = window_position(e, spans, axis, e.size_of(sizes[axis]), position, tap)
            places.append(place)
            conditions += found
        inside = conjunction(e, conditions)
        with nullcontext() if inside is None else e.only_where(inside):
            a = e.at(lhs, (batch, *places, e.math.add(first, channel)))
        b = e.at(rhs, (*(Position(i) for i in indices), feature))
        a, b = (widen(e, v, element, accumulator, carried[0]) for v in (a, b))
        a = a if inside is None else e.select(inside, a, zero)
        return [multiply_add(a, b, carried[0], accumulator)]

    zero = zero_of(accumulator)
    if any(not p.is_uniform for p in positions):
        zero = e.splat(zero)
    (total,) = nest(e, [e.size_of(d) for d in (*window, depth)], [zero], body)
    return round_to(convert(total, accumulator, result), result)


RULES: dict[str, Rule] = {
    "stablehlo.convolution": _convolution,
    "stablehlo.reduce_window": _reduce_window,
}
