# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The dynamic forms of ops whose attributes or types state sizes that are `?` now."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.ops.gathers import window_axes
from shlo_disc.shape_dialect.ops.size_relations import Size, rank, reshape_groups, splat_text

from .unknowns import Unknowns

SizeSource = int | Size | list["int | Size"]
"""A number, the size of a value, or the product of several."""


class SizeValues:
    """Sizes as values of the program: tensors of one i32, read from the values that have them.

    shapes: the shapes of all values in the static program.
    """

    def __init__(self, unknowns: Unknowns, shapes: dict[ir.Value, list[int]]):
        self.shapes = shapes
        self._forms: dict[ir.Value, ir.Value] = {}
        self._unknowns = unknowns
        self._position = 0
        self._i32 = ir.IntegerType.get_signless(32)

    def before(self, position: int) -> SizeValues:
        """Itself, for an op within the block's operation at a position."""
        self._position = position
        return self

    def replace(self, value: ir.Value, form: ir.Value) -> None:
        """The dynamic form stands for the value; its op is still there, for the sizes that name it."""
        self._forms[value] = form
        self.shapes[form] = self.shapes[value]
        value.replace_all_uses_with(form)

    def chosen(self, value: ir.Value, axis: int) -> int | Size:
        """The number, or the same size of an earlier value."""
        if not ir.RankedTensorType(value.type).is_dynamic_dim(axis):
            return int(ir.RankedTensorType(value.type).shape[axis])
        source = self._unknowns.source(self._position, Size(value, axis))
        if source is None:
            raise ValueError(f"no value has the size of axis {axis} of {value}")
        return Size(self._forms.get(source.value, source.value), source.axis)

    def vector(self, sources: Sequence[SizeSource], before: ir.OpView) -> ir.Value:
        """A rank-1 tensor of sizes, made before an op."""
        with ir.InsertionPoint(before), before.location:
            parts = [self._element(source) for source in sources]
            if len(parts) == 1:
                return parts[0]
            kind = ir.RankedTensorType.get([len(parts)], self._i32)
            attributes: dict[str, ir.Attribute] = {"dimension": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)}
            return ir.Operation.create("stablehlo.concatenate", [kind], parts, attributes=attributes).result

    def _element(self, source: SizeSource) -> ir.Value:
        """A tensor<1xi32>."""
        one = ir.RankedTensorType.get([1], self._i32)
        if isinstance(source, int):
            value = ir.DenseElementsAttr.get_splat(one, ir.IntegerAttr.get(self._i32, source))
            return build.dense(value)
        scalars = [self._scalar(factor) for factor in ([source] if isinstance(source, Size) else source)]
        total = scalars[0]
        for scalar in scalars[1:]:
            total = ir.Operation.create("stablehlo.multiply", [total.type], [total, scalar]).result
        return ir.Operation.create("stablehlo.reshape", [one], [total]).result

    def _scalar(self, source: int | Size) -> ir.Value:
        kind = ir.RankedTensorType.get([], self._i32)
        if isinstance(source, int):
            value = ir.DenseElementsAttr.get_splat(kind, ir.IntegerAttr.get(self._i32, source))
            return build.dense(value)
        axis = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), source.axis)
        return ir.Operation.create("stablehlo.get_dimension_size", [kind], [source.value], {"dimension": axis}).result


DynamicForm = Callable[[ir.OpView, SizeValues], None]


def stated_sizes(op: ir.OpView) -> list[Size]:
    """The sizes of an op's result that its operands do not have."""
    name = op.operation.name
    if name not in ("stablehlo.broadcast_in_dim", "stablehlo.constant", "stablehlo.iota"):
        return []
    covered = _broadcast_from(op) if name == "stablehlo.broadcast_in_dim" else {}
    return [Size(op.results[0], axis) for axis in range(rank(op.results[0])) if axis not in covered]


def _broadcast_from(op: ir.OpView) -> dict[int, Size]:
    """For each axis of a broadcast's result that is not broadcast, the operand's size that it has."""
    targets = ir.DenseI64ArrayAttr(op.attributes["broadcast_dimensions"])
    shape = ir.RankedTensorType(op.operands[0].type).shape
    return {target: Size(op.operands[0], axis) for axis, target in enumerate(targets) if shape[axis] != 1}


def _replace(
    op: ir.OpView, name: str, operands: Sequence[ir.Value], attributes: dict[str, ir.Attribute], sizes: SizeValues
) -> None:
    with ir.InsertionPoint(op), op.location:
        form = ir.Operation.create(f"stablehlo.{name}", [op.results[0].type], operands, attributes)
    sizes.replace(op.results[0], form.result)


def _sizes(value: ir.Value) -> list[int | Size]:
    """A value's own sizes."""
    tensor = ir.RankedTensorType(value.type)
    return [Size(value, i) if tensor.is_dynamic_dim(i) else int(size) for i, size in enumerate(tensor.shape)]


def _chosen(op: ir.OpView, sizes: SizeValues) -> ir.Value:
    """The result's sizes, none of which the operands have."""
    result = op.results[0]
    return sizes.vector([sizes.chosen(result, axis) for axis in range(rank(result))], op)


def _constant(op: ir.OpView, sizes: SizeValues) -> None:
    text = splat_text(op)
    element = ir.RankedTensorType(op.results[0].type).element_type
    with ir.InsertionPoint(op) as place, op.location:
        scalar = ir.Operation.parse(f"stablehlo.constant dense<{text}> : tensor<{element}>")
        place.insert(scalar)
    operands = [scalar.result, _chosen(op, sizes)]
    _replace(op, "dynamic_broadcast_in_dim", operands, {"broadcast_dimensions": ir.DenseI64ArrayAttr.get([])}, sizes)


def _iota(op: ir.OpView, sizes: SizeValues) -> None:
    _replace(op, "dynamic_iota", [_chosen(op, sizes)], {"iota_dimension": op.attributes["iota_dimension"]}, sizes)


def _broadcast(op: ir.OpView, sizes: SizeValues) -> None:
    result, own, covered = op.results[0], _sizes(op.operands[0]), _broadcast_from(op)
    sources = [
        own[covered[axis].axis] if axis in covered else sizes.chosen(result, axis) for axis in range(rank(result))
    ]
    attributes = {"broadcast_dimensions": op.attributes["broadcast_dimensions"]}
    _replace(op, "dynamic_broadcast_in_dim", [op.operands[0], sizes.vector(sources, op)], attributes, sizes)


def _reshape(op: ir.OpView, sizes: SizeValues) -> None:
    source, result = op.operands[0], op.results[0]
    own = _sizes(source)
    sources: list[SizeSource] = [*_sizes(result)]
    for group, target in reshape_groups(sizes.shapes[source], sizes.shapes[result]):
        if ir.RankedTensorType(result.type).is_dynamic_dim(target[0]):
            sources[target[0]] = [own[axis] for axis in group]
    _replace(op, "dynamic_reshape", [source, sizes.vector(sources, op)], {}, sizes)


def _slice(op: ir.OpView, sizes: SizeValues) -> None:
    """An axis whose result is dynamic ends where the operand does."""
    source, kept = op.operands[0], ir.RankedTensorType(op.results[0].type)
    starts, limits, strides = (list(ir.DenseI64ArrayAttr(op.attributes[n])) for n in _SLICE)
    own = _sizes(source)
    ends = [own[axis] if kept.is_dynamic_dim(axis) else limit for axis, limit in enumerate(limits)]
    bounds = [sizes.vector(numbers, op) for numbers in (starts, ends, strides)]
    _replace(op, "real_dynamic_slice", [source, *bounds], {}, sizes)


_SLICE = ("start_indices", "limit_indices", "strides")


def _gather(op: ir.OpView, sizes: SizeValues) -> None:
    """A window is the whole axis where the result is dynamic."""
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    operand, indices = op.operands
    result, own = ir.RankedTensorType(op.results[0].type), _sizes(operand)
    windows: list[SizeSource] = list(ir.DenseI64ArrayAttr(op.attributes["slice_sizes"]))
    for offset, axis in zip(numbers.offset_dims, window_axes(numbers, rank(operand)), strict=True):
        if result.is_dynamic_dim(offset):
            windows[axis] = own[axis]
    if all(isinstance(window, int) for window in windows):
        return
    kept = {n: op.attributes[n] for n in ("dimension_numbers", "indices_are_sorted") if n in op.attributes}
    _replace(op, "dynamic_gather", [operand, indices, sizes.vector(windows, op)], kept, sizes)


DYNAMIC_FORMS: dict[str, DynamicForm] = {
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.constant": _constant,
    "stablehlo.gather": _gather,
    "stablehlo.iota": _iota,
    "stablehlo.reshape": _reshape,
    "stablehlo.slice": _slice,
}
"""Replacement of each op whose result has a dynamic size."""

__all__ = ["DYNAMIC_FORMS", "SizeValues", "stated_sizes"]
