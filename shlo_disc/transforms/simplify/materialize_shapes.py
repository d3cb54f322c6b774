# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Separates shape computations from data: a tensor whose elements are sizes becomes one `disc.shape`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.ops import ShapeOp
from shlo_disc.shape_dialect.dialect.types import dims_attr
from shlo_disc.shape_dialect.inference.unused_sizes import erase_unused_sizes
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import VALUE_RULES
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.ops.values import (
    Elements,
    SymbolicValues,
    is_boolean,
    is_shape_like,
)
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.utils.regions import entry_block

KEPT = {"stablehlo.constant", "disc.shape"}


def materialize_shapes(module: ir.Module, facts: Facts) -> None:
    """Replace every integer tensor of known elements by a constant or a `disc.shape`, in place."""
    values = SymbolicValues(facts, VALUE_RULES)
    blocks = list(all_blocks(entry_block(module)))
    found = []
    for op in [op for block in blocks for op in block.operations]:
        values.visit(op)
        if op.results and op.operation.name not in KEPT and not _is_comparison(op):
            # What a later `disc.bind` reads is data up to there.
            found.append((op, values.get(op.results[0])))
    for op, elements in found:
        _replace(op, elements, values)
    for block in reversed(blocks):
        erase_unused_sizes(block)
    for op in [op for block in blocks for op in block.operations if _is_comparison(op)]:
        _replace(op, values.get(op.results[0]), values)


def _is_comparison(op: ir.OpView) -> bool:
    """Tells whether an op gives booleans, which are looked at last: sizes need few of them once they are known."""
    return len(op.results) == 1 and is_shape_like(op.results[0].type) and is_boolean(op.results[0])


def _replace(op: ir.OpView, elements: Elements | None, values: SymbolicValues) -> None:
    if elements is None:
        return
    facts = values.facts
    new = _materialize(op, tuple(facts.simplify(facts.canonical(e)) for e in elements))
    if new is not None:
        op.results[0].replace_all_uses_with(new)
        values.elements[new] = elements


def _materialize(op: ir.OpView, elements: Elements) -> ir.Value | None:
    tensor = ir.RankedTensorType(op.results[0].type)
    with ir.InsertionPoint(op), op.location:
        if all(e.constant is not None for e in elements):
            return _constant(tensor, elements)
        if is_boolean(op.results[0]):
            return None
        if tensor.rank < 2:
            return ShapeOp(dims_attr(elements), result=tensor).results[0]
        flat = ir.RankedTensorType.get([len(elements)], tensor.element_type)
        row = ShapeOp(dims_attr(elements), result=flat).results[0]
        return ir.Operation.create("stablehlo.reshape", results=[tensor], operands=[row]).results[0]


def _constant(tensor: ir.RankedTensorType, elements: Elements) -> ir.Value:
    width = ir.IntegerType(tensor.element_type).width
    wrapped = [(e.constant or 0) % (1 << width) for e in elements]
    if width in (2, 4):
        return _narrow_constant(tensor, wrapped)
    numbers = np.array(wrapped, np.bool_) if width == 1 else np.array(wrapped, f"u{width // 8}").view(f"i{width // 8}")
    array = numbers.reshape(tensor.shape)
    attribute = ir.DenseElementsAttr.get(np.ascontiguousarray(array).data, type=tensor)
    return build.dense(attribute)


def _narrow_constant(tensor: ir.RankedTensorType, numbers: Sequence[int]) -> ir.Value:
    """NumPy's buffers have no integers of less than a byte."""
    attributes = [ir.IntegerAttr.get(tensor.element_type, n) for n in numbers]
    value = ir.DenseElementsAttr.get(attributes, tensor)
    return build.dense(value)
