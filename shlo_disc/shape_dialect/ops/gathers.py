# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gathers and scatters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.ops.definition import define, no_flops
from shlo_disc.shape_dialect.ops.dynamic_forms import DynamicForm, StatedSizes, WholeAxes, create, kept_attributes
from shlo_disc.shape_dialect.ops.element_types import ALL
from shlo_disc.shape_dialect.ops.elementwise import check_body
from shlo_disc.shape_dialect.ops.index_maps import (
    ZERO,
    Amount,
    Coordinate,
    IndexMap,
    Read,
    Start,
    amounts,
    window_start,
)
from shlo_disc.shape_dialect.ops.propagation import Propagation
from shlo_disc.shape_dialect.ops.size_relations import Size, SizeRelations, extent, rank
from shlo_disc.shape_dialect.ops.values import known_elements
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Relation
from shlo_disc.shape_dialect.utils.attributes import integers

_TESTS = "tests/run/test_ops_gather.py"


def _learn_from_indices(
    p: Propagation,
    op: ir.OpView,
    operand: Dims,
    indices: Dims,
    vector_axis: int,
    axes: Sequence[int],
    batch: Sequence[tuple[int, int]],
) -> None:
    """An index has a component for each of `axes`; `batch` pairs axes of the operand with those of the indices."""
    if vector_axis < len(indices):
        p.equal(indices[vector_axis], Expr.const(len(axes)), op)
    for operand_axis, indices_axis in batch:
        p.equal(operand[operand_axis], indices[indices_axis], op)


def _gather_dims(p: Propagation, op: ir.OpView, sizes: Dims) -> list[Dims]:
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    operand, indices = dims_of(op.operands[0]), dims_of(op.operands[1])
    vector_axis = numbers.index_vector_dim
    needed = _axes_that_need_elements(p, operand, indices, sizes, numbers)
    p.fits((sizes[axis] for axis in needed), (operand[axis] for axis in needed), op)
    batch = list(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    _learn_from_indices(p, op, operand, indices, vector_axis, numbers.start_index_map, batch)
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    offset_sizes = iter([size for i, size in enumerate(sizes) if i not in dropped])
    batch_sizes = iter([size for i, size in enumerate(indices) if i != vector_axis])
    rank = len(operand) - len(dropped) + len(indices) - (vector_axis < len(indices))
    offsets = set(numbers.offset_dims)
    return [tuple(next(offset_sizes) if i in offsets else next(batch_sizes) for i in range(rank))]


def _axes_that_need_elements(
    p: Propagation, operand: Dims, indices: Dims, sizes: Dims, numbers: stablehlo.GatherDimensionNumbers
) -> list[int]:
    """All but batches, which the indices have as well; nor single positions for no more indices than there are."""
    single = [axis for axis in numbers.collapsed_slice_dims if sizes[axis].constant == 1]
    count = product(d for axis, d in enumerate(indices) if axis != numbers.index_vector_dim)
    if p.facts.prove(Relation.le(count, product(operand[axis] for axis in single))) is not True:
        single = []
    return [axis for axis in range(len(operand)) if axis not in (*single, *numbers.operand_batching_dims)]


def _infer_gather(p: Propagation, op: ir.OpView) -> list[Dims]:
    return _gather_dims(p, op, _window_of_gather(op))


def _window_of_gather(op: ir.OpView) -> Dims:
    return tuple(map(Expr.const, integers(op.attributes["slice_sizes"])))


def _window_of_dynamic_gather(op: ir.OpView) -> Dims:
    return known_elements(op.operands[2])


def _infer_dynamic_gather(p: Propagation, op: ir.OpView) -> list[Dims]:
    return _gather_dims(p, op, p.sizes(op.operands[2]))


def _infer_scatter(p: Propagation, op: ir.OpView) -> list[Dims]:
    numbers = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    count = len(op.results)
    operands, (indices, update, *updates) = ([dims_of(v) for v in part] for part in _parts(op, count))
    for first, others in ((operands[0], operands[1:]), (update, updates)):
        for other in others:
            for a, b in zip(first, other, strict=True):
                p.equal(a, b, op)
    vector_axis = numbers.index_vector_dim
    batch = list(zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True))
    axes = numbers.scattered_dims_to_operand_dims
    _learn_from_indices(p, op, operands[0], indices, vector_axis, axes, batch)
    windows = set(numbers.update_window_dims)
    places = [size for i, size in enumerate(indices) if i != vector_axis]
    for a, b in zip((size for i, size in enumerate(update) if i not in windows), places, strict=True):
        p.equal(a, b, op)
    dropped = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    targets = [size for i, size in enumerate(operands[0]) if i not in dropped]
    p.fits((update[i] for i in numbers.update_window_dims), targets, op)
    return operands


def _parts(op: ir.OpView, count: int) -> tuple[list[ir.Value], list[ir.Value]]:
    operands = list(op.operands)
    return operands[:count], operands[count:]


def window_axes(numbers: stablehlo.GatherDimensionNumbers, operand_rank: int) -> list[int]:
    """The axes of a gather's operand that its result keeps, in the order of its offset dimensions."""
    dropped = [*numbers.collapsed_slice_dims, *numbers.operand_batching_dims]
    return [axis for axis in range(operand_rank) if axis not in dropped]


def _relate_gather(r: SizeRelations, op: ir.OpView) -> None:
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


def _form_of_gather(s: StatedSizes, op: ir.OpView) -> ir.Value:
    kept = kept_attributes(op, "dimension_numbers", "indices_are_sorted")
    operands = [*op.operands, s.sizes(s.numbers(op, "slice_sizes"))]
    return create("dynamic_gather", op.results[0].type, operands, kept)


def _windows_of_gather(op: ir.OpView) -> Iterable[tuple[int, int]]:
    """The axes of the operand that the result keeps, each with that of the result."""
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    return zip(window_axes(numbers, rank(op.operands[0])), numbers.offset_dims, strict=True)


def _relate_scatter(r: SizeRelations, op: ir.OpView) -> None:
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


def map_gather(op: ir.OpView) -> IndexMap:
    """The index map of a gather."""
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    operand, indices, result = (dims_of(v) for v in (op.operands[0], op.operands[1], op.results[0]))
    offset_dims = list(numbers.offset_dims)
    batch = [Coordinate(axis) for axis in range(len(result)) if axis not in offset_dims]
    kept = dict(zip(window_axes(numbers, len(operand)), offset_dims, strict=True))
    starts = _starts_of(op, numbers, batch, operand, len(indices))
    at = [Coordinate(kept.get(axis), plus=starts.get(axis, ZERO)) for axis in range(len(operand))]
    vector_axis = numbers.index_vector_dim
    for axis, indices_axis in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
        at[axis] = batch[indices_axis - (indices_axis > vector_axis)]
    return (Read(0, tuple(at)),)


def _starts_of(
    op: ir.OpView, numbers: stablehlo.GatherDimensionNumbers, batch: Sequence[Coordinate], operand: Dims, rank: int
) -> dict[int, Amount | Start]:
    """The beginnings of the window of each index, by the operand's axis."""
    sizes = amounts(op, "slice_sizes", 2)
    starts = {}
    for component, axis in enumerate(numbers.start_index_map):
        where = list(batch)
        if numbers.index_vector_dim < rank:
            where.insert(numbers.index_vector_dim, Coordinate(plus=Expr.const(component)))
        starts[axis] = window_start(1, where, operand[axis], sizes[axis])
    return starts


OPS = (
    *define(
        "index", "gather", ALL, infer=_infer_gather, relate=_relate_gather,
        dynamic_form=DynamicForm(_form_of_gather, whole=WholeAxes("slice_sizes", _windows_of_gather)),
        index_map=map_gather, window=_window_of_gather, flops=no_flops, cost=6, code=12, tests=_TESTS,
    ),
    *define(
        "index", "dynamic_gather", ALL, infer=_infer_dynamic_gather, index_map=map_gather,
        window=_window_of_dynamic_gather, size_operands=(2,), flops=no_flops, cost=6, code=12, tests=_TESTS,
    ),
    *define(
        "kernel", "scatter", ALL, check=check_body, infer=_infer_scatter, relate=_relate_scatter, flops=no_flops,
        tests=_TESTS,
    ),
)  # fmt: skip

__all__ = ["OPS", "map_gather", "window_axes"]
