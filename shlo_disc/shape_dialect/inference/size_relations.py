# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of an op's operands and results that are the same, computed from others, or fixed by its attributes.

An op without a rule fixes every size it touches. Sizes of 0 and 1 are never unknown: 1 may stand for a broadcast.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from shlo_disc.shape_dialect.dialect.types import element_type_of
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.utils.op_sets import ELEMENTWISE


class Size(NamedTuple):
    """The size of a value along an axis."""

    value: ir.Value
    axis: int


class SizeRelations(ABC):
    """The relations of sizes that rules state."""

    @abstractmethod
    def same(self, a: Size, b: Size) -> None:
        """The two are equal in every instance."""

    def same_shape(self, values: Sequence[ir.Value]) -> None:
        """All values have one shape."""
        for other in values[1:]:
            self.same_axes(values[0], range(rank(values[0])), other, range(rank(other)))

    def same_axes(self, a: ir.Value, a_axes: Iterable[int], b: ir.Value, b_axes: Iterable[int]) -> None:
        """The sizes of `a` along `a_axes` are those of `b` along `b_axes`."""
        for i, j in zip(a_axes, b_axes, strict=True):
            self.same(Size(a, i), Size(b, j))

    @abstractmethod
    def computed(self, result: Size, sources: Iterable[Size]) -> None:
        """The result is a function of the sources, and of nothing else that could change."""

    @abstractmethod
    def fix(self, value: ir.Value, axes: Iterable[int] | None = None) -> None:
        """The sizes (all by default) stay the numbers they are."""


def rank(value: ir.Value) -> int:
    """The rank of a tensor; 0 of anything else."""
    return ir.RankedTensorType(value.type).rank if isinstance(value.type, ir.RankedTensorType) else 0


def extent(size: Size) -> int:
    """The number that the size is in the static program."""
    return int(ir.RankedTensorType(size.value.type).shape[size.axis])


Rule = Callable[[SizeRelations, ir.OpView], None]


def _integers(op: ir.OpView, name: str, default: Sequence[int] = ()) -> list[int]:
    return list(ir.DenseI64ArrayAttr(op.attributes[name])) if name in op.attributes else list(default)


def _elementwise(r: SizeRelations, op: ir.OpView) -> None:
    r.same_shape([*op.results, *(v for v in op.operands if rank(v))])


def _all_alike(r: SizeRelations, op: ir.OpView) -> None:
    r.same_shape([*op.results, *op.operands])


def _one_to_one(r: SizeRelations, op: ir.OpView) -> None:
    for result, operand in zip(op.results, op.operands, strict=True):
        r.same_shape([result, operand])


def _bitcast(r: SizeRelations, op: ir.OpView) -> None:
    source, result = op.operands[0], op.results[0]
    common = range(min(rank(source), rank(result)))
    r.same_axes(source, common, result, common)
    for value in (source, result):
        r.fix(value, range(len(common), rank(value)))


def splat_text(constant: ir.OpView) -> str:
    """The literal of a constant whose elements are all alike; "" of another. Complex elements are had as text only."""
    if isinstance(element_type_of(constant.results[0]), ir.ComplexType):
        text = constant.operation.get_asm(use_local_scope=True)
    else:
        value = constant.attributes["value"]
        text = "" if isinstance(value, ir.DenseElementsAttr) and not value.is_splat else str(value)
    start = text.index("dense<") + len("dense<") if "dense<" in text else len(text)
    literal = text[start : text.find(">", start)]
    return "" if literal.startswith(("[", '"')) else literal


def _constant(r: SizeRelations, op: ir.OpView) -> None:
    if not splat_text(op):
        r.fix(op.results[0])


def _stated(r: SizeRelations, op: ir.OpView) -> None:
    """The attributes alone state the sizes, and other ops say what they must equal."""


def _broadcast(r: SizeRelations, op: ir.OpView) -> None:
    for axis, target in enumerate(_integers(op, "broadcast_dimensions")):
        if extent(Size(op.operands[0], axis)) > 1:
            r.same(Size(op.operands[0], axis), Size(op.results[0], target))


def _transpose(r: SizeRelations, op: ir.OpView) -> None:
    permutation = _integers(op, "permutation")
    r.same_axes(op.operands[0], permutation, op.results[0], range(len(permutation)))


def _reshape(r: SizeRelations, op: ir.OpView) -> None:
    source, result = op.operands[0], op.results[0]
    for group, target in reshape_groups(ir.RankedTensorType(source.type).shape, ir.RankedTensorType(result.type).shape):
        if len(target) != 1:
            r.fix(source, group)
            r.fix(result, target)
        elif len(group) == 1:
            r.same(Size(source, group[0]), Size(result, target[0]))
        else:
            r.computed(Size(result, target[0]), [Size(source, axis) for axis in group])


def reshape_groups(source: Sequence[int], result: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Least groups of axes with equal products, in order; axes of size 1 belong to none. Nothing when it is empty."""
    if 0 in source:
        return []
    groups = []
    left = [axis for axis, size in enumerate(source) if size > 1]
    right = [axis for axis, size in enumerate(result) if size > 1]
    while left and right:
        a, b = [left.pop(0)], [right.pop(0)]
        while (x := math.prod(source[i] for i in a)) != (y := math.prod(result[i] for i in b)):
            if x < y:
                a.append(left.pop(0))
            else:
                b.append(right.pop(0))
        groups.append((a, b))
    return groups


def _slice(r: SizeRelations, op: ir.OpView) -> None:
    source, result = op.operands[0], op.results[0]
    names = ("start_indices", "limit_indices", "strides")
    for axis, (start, limit, stride) in enumerate(zip(*(_integers(op, n) for n in names), strict=True)):
        whole = Size(source, axis)
        if limit != extent(whole):
            r.fix(result, [axis])
        elif (start, stride) == (0, 1):
            r.same(whole, Size(result, axis))
        else:
            r.computed(Size(result, axis), [whole])


def _dynamic_slice(r: SizeRelations, op: ir.OpView) -> None:
    r.fix(op.results[0])


def _dynamic_update_slice(r: SizeRelations, op: ir.OpView) -> None:
    r.same_shape([op.operands[0], op.results[0]])


def _concatenate(r: SizeRelations, op: ir.OpView) -> None:
    axis = ir.IntegerAttr(op.attributes["dimension"]).value
    others = [i for i in range(rank(op.results[0])) if i != axis]
    for operand in op.operands:
        r.same_axes(operand, others, op.results[0], others)
    r.computed(Size(op.results[0], axis), [Size(v, axis) for v in op.operands])


def _pad(r: SizeRelations, op: ir.OpView) -> None:
    source, result = op.operands[0], op.results[0]
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    for axis, amounts in enumerate(zip(*(_integers(op, n) for n in names), strict=True)):
        _related(r, Size(source, axis), Size(result, axis), unchanged=not any(amounts))


def _related(r: SizeRelations, source: Size, result: Size, *, unchanged: bool) -> None:
    if unchanged:
        r.same(source, result)
    else:
        r.computed(result, [source])


def _reduce(r: SizeRelations, op: ir.OpView) -> None:
    inputs = list(op.operands)[: len(op.results)]
    removed = _integers(op, "dimensions")
    kept = [i for i in range(rank(inputs[0])) if i not in removed]
    r.same_shape(inputs)
    for result in op.results:
        r.same_axes(inputs[0], kept, result, range(len(kept)))


def _dot_general(r: SizeRelations, op: ir.OpView) -> None:
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    (lhs, rhs), result = op.operands, op.results[0]
    batch = (list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions))
    contracting = (list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions))
    r.same_axes(lhs, batch[0], rhs, batch[1])
    r.same_axes(lhs, contracting[0], rhs, contracting[1])
    lhs_free = [i for i in range(rank(lhs)) if i not in (*batch[0], *contracting[0])]
    rhs_free = [i for i in range(rank(rhs)) if i not in (*batch[1], *contracting[1])]
    r.same_axes(lhs, [*batch[0], *lhs_free], result, range(len(batch[0]) + len(lhs_free)))
    r.same_axes(rhs, rhs_free, result, range(rank(result) - len(rhs_free), rank(result)))


def window_axes(numbers: stablehlo.GatherDimensionNumbers, operand_rank: int) -> list[int]:
    """The axes of a gather's operand that its result keeps, in the order of its offset dimensions."""
    dropped = [*numbers.collapsed_slice_dims, *numbers.operand_batching_dims]
    return [axis for axis in range(operand_rank) if axis not in dropped]


def _gather(r: SizeRelations, op: ir.OpView) -> None:
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    (operand, indices), result = op.operands, op.results[0]
    offsets = list(numbers.offset_dims)
    for offset, axis in zip(offsets, window_axes(numbers, rank(operand)), strict=True):
        _same_if_whole(r, Size(operand, axis), Size(result, offset))
    batch = [i for i in range(rank(indices)) if i != numbers.index_vector_dim]
    r.same_axes(indices, batch, result, [i for i in range(rank(result)) if i not in offsets])
    r.fix(indices, [i for i in range(rank(indices)) if i == numbers.index_vector_dim])
    r.same_axes(operand, numbers.operand_batching_dims, indices, numbers.start_indices_batching_dims)


def _same_if_whole(r: SizeRelations, whole: Size, window: Size) -> None:
    if extent(whole) == extent(window):
        r.same(whole, window)
    else:
        r.fix(window.value, [window.axis])


def _scatter(r: SizeRelations, op: ir.OpView) -> None:
    numbers = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    count = len(op.results)
    operands, indices, updates = op.operands[:count], op.operands[count], op.operands[count + 1 :]
    r.same_shape([*operands, *op.results])
    windows = list(numbers.update_window_dims)
    batch = [i for i in range(rank(indices)) if i != numbers.index_vector_dim]
    dropped = [*numbers.inserted_window_dims, *numbers.input_batching_dims]
    whole = [i for i in range(rank(operands[0])) if i not in dropped]
    for update in updates:
        r.same_axes(indices, batch, update, [i for i in range(rank(update)) if i not in windows])
        for window, axis in zip(windows, whole, strict=True):
            _same_if_whole(r, Size(operands[0], axis), Size(update, window))
    r.fix(indices, [i for i in range(rank(indices)) if i == numbers.index_vector_dim])
    r.same_axes(operands[0], numbers.input_batching_dims, indices, numbers.scatter_indices_batching_dims)


def _branches(r: SizeRelations, op: ir.OpView) -> None:
    for region in op.regions:
        _match(r, op.results, _terminator(region).operands)


def _while(r: SizeRelations, op: ir.OpView) -> None:
    _match(r, op.results, op.operands)
    for region in op.regions:
        _match(r, op.results, region.blocks[0].arguments)
    _match(r, op.results, _terminator(op.regions[1]).operands)


def _match(r: SizeRelations, a: Iterable[ir.Value], b: Iterable[ir.Value]) -> None:
    for x, y in zip(a, b, strict=True):
        r.same_shape([x, y])


def _terminator(region: ir.Region) -> ir.OpView:
    operations = region.blocks[0].operations
    return operations[len(operations) - 1]


def _reduce_window(r: SizeRelations, op: ir.OpView) -> None:
    inputs = list(op.operands)[: len(op.results)]
    r.same_shape(inputs)
    r.same_shape(list(op.results))
    source, result = inputs[0], op.results[0]
    for axis in range(rank(source)):
        _related(r, Size(source, axis), Size(result, axis), unchanged=_is_trivial_window(op, axis))


def _is_trivial_window(op: ir.OpView, axis: int) -> bool:
    names = ("window_dimensions", "window_strides", "base_dilations")
    if any(values and values[axis] != 1 for values in (_integers(op, n) for n in names)):
        return False
    if "padding" not in op.attributes:
        return True
    amounts = list(ir.DenseIntElementsAttr(op.attributes["padding"]))
    return not any(amounts[2 * axis : 2 * axis + 2])


def _convolution(r: SizeRelations, op: ir.OpView) -> None:
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    groups = [ir.IntegerAttr(op.attributes[n]).value for n in ("feature_group_count", "batch_group_count")]
    (lhs, rhs), result = op.operands, op.results[0]
    if groups != [1, 1]:
        r.fix(lhs, [numbers.input_batch_dimension, numbers.input_feature_dimension])
        r.fix(rhs, [numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension])
    r.same_axes(lhs, [numbers.input_feature_dimension], rhs, [numbers.kernel_input_feature_dimension])
    r.same_axes(lhs, [numbers.input_batch_dimension], result, [numbers.output_batch_dimension])
    r.same_axes(rhs, [numbers.kernel_output_feature_dimension], result, [numbers.output_feature_dimension])
    spatial = (numbers.input_spatial_dimensions, numbers.kernel_spatial_dimensions, numbers.output_spatial_dimensions)
    for i, j, k in zip(*spatial, strict=True):
        r.computed(Size(result, k), [Size(lhs, i), Size(rhs, j)])


def _batch_norm(r: SizeRelations, op: ir.OpView) -> None:
    """All that goes by feature has one size; the rest has the shape of the first operand."""
    axis = ir.IntegerAttr(op.attributes["feature_index"]).value
    whole = op.operands[0]
    for value in [*list(op.operands)[1:], *op.results]:
        if rank(value) == rank(whole):
            r.same_shape([whole, value])
        else:
            r.same(Size(value, 0), Size(whole, axis))


def _select_and_scatter(r: SizeRelations, op: ir.OpView) -> None:
    r.same_shape([op.operands[0], op.results[0]])


def _fft(r: SizeRelations, op: ir.OpView) -> None:
    batch = range(rank(op.operands[0]) - len(_integers(op, "fft_length")))
    r.same_axes(op.operands[0], batch, op.results[0], batch)
    for value in (op.operands[0], op.results[0]):
        r.fix(value, range(len(batch), rank(value)))


def _triangular_solve(r: SizeRelations, op: ir.OpView) -> None:
    a, b = op.operands
    last = rank(a) - 1
    side = last - 1 if ir.BoolAttr(op.attributes["left_side"]).value else last
    r.same_shape([b, op.results[0]])
    r.same_axes(a, [*range(last - 1), last - 1, last], b, [*range(last - 1), side, side])


RULES: dict[str, Rule] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(
        ("stablehlo." + n for n in ("complex", "imag", "map", "real", "reverse", "cholesky")), _elementwise
    ),
    **dict.fromkeys(("stablehlo.uniform_dequantize", "stablehlo.uniform_quantize", "stablehlo.sort"), _all_alike),
    "stablehlo.bitcast_convert": _bitcast,
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.batch_norm_grad": _batch_norm,
    "stablehlo.batch_norm_inference": _batch_norm,
    "stablehlo.batch_norm_training": _batch_norm,
    "stablehlo.case": _branches,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.constant": _constant,
    "stablehlo.convolution": _convolution,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.fft": _fft,
    "stablehlo.gather": _gather,
    "stablehlo.get_dimension_size": _stated,
    "stablehlo.if": _branches,
    "stablehlo.iota": _stated,
    "stablehlo.optimization_barrier": _one_to_one,
    "stablehlo.pad": _pad,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.reshape": _reshape,
    "stablehlo.scatter": _scatter,
    "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
    "stablehlo.triangular_solve": _triangular_solve,
    "stablehlo.while": _while,
}

__all__ = ["RULES", "Rule", "Size", "SizeRelations", "extent", "rank", "reshape_groups", "splat_text", "window_axes"]
