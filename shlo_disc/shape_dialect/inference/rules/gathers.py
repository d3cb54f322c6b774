# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gathers and scatters: the sizes of their windows and of the places that indices name."""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.inference.propagation import Propagation, Rule
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Relation
from shlo_disc.shape_dialect.utils.attributes import integers


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


def _gather(p: Propagation, op: ir.OpView) -> list[Dims]:
    return _gather_dims(p, op, tuple(Expr.const(s) for s in integers(op.attributes["slice_sizes"])))


def _dynamic_gather(p: Propagation, op: ir.OpView) -> list[Dims]:
    return _gather_dims(p, op, p.sizes(op.operands[2]))


def _scatter(p: Propagation, op: ir.OpView) -> list[Dims]:
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


RULES: dict[str, Rule] = {
    "stablehlo.dynamic_gather": _dynamic_gather,
    "stablehlo.gather": _gather,
    "stablehlo.scatter": _scatter,
}
