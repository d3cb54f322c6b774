# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Legalises legacy ops: those of older StableHLO versions become today's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.build import broadcast, shape_tensor, transpose
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir, rewrite, stablehlo
from shlo_disc.shape_dialect.utils.attributes import precision_attributes
from shlo_disc.transforms.simplify.data_movement import Pattern


def broadcast_in_front(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """`broadcast` adds axes before the operand's."""
    result, rank = dims_of(op.results[0]), len(dims_of(op.operands[0]))
    with rewriter.ip, op.location:
        rewriter.replace_op(op, [broadcast(op.operands[0], result, range(len(result) - rank, len(result)))])
    return None


def dot(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """The last axis of the left against the first of the right."""
    a, b = op.operands
    lhs, rhs = ("ak", "kb") if len(dims_of(a)) == 2 else ("k", "kb")
    rhs = rhs[: len(dims_of(b))]
    with rewriter.ip, op.location:
        rewriter.replace_op(op, [_dot(lhs, a, rhs, b, "ab", op)[1]])
    return None


def einsum(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """Sums over letters of one operand only, a `dot_general` for the rest, and the result's order of letters."""
    *terms, result = ir.StringAttr(op.attributes["einsum_config"]).value.replace("->", ",").split(",")
    with rewriter.ip, op.location:
        operands = []
        for position, (term, value) in enumerate(zip(terms, op.operands, strict=True)):
            elsewhere = result + "".join(terms[:position] + terms[position + 1 :])
            kept = [letter for letter in term if letter in elsewhere]
            operands.append(("".join(kept), _sum(value, [i for i, t in enumerate(term) if t not in kept])))
        letters, value = operands[0] if len(operands) == 1 else _dot(*operands[0], *operands[1], result, op)
        rewriter.replace_op(op, [transpose(value, [letters.index(letter) for letter in result])])
    return None


def _sum(value: ir.Value, axes: Sequence[int]) -> ir.Value:
    if not axes:
        return value
    kind = element_type_of(value)
    scalar = ir.RankedTensorType.get([], kind)
    kept = [d for i, d in enumerate(dims_of(value)) if i not in axes]
    op = ir.Operation.create(
        "stablehlo.reduce",
        results=[tensor_type(kept, kind)],
        operands=[value, build.constant(0, kind)],
        attributes={"dimensions": ir.DenseI64ArrayAttr.get(list(axes))},
        regions=1,
    )
    block = ir.Block.create_at_start(op.regions[0], [scalar, scalar])
    with ir.InsertionPoint(block):
        total = build.add(*block.arguments)
        ir.Operation.create("stablehlo.return", operands=[total])
    return op.results[0]


def _dot(lhs: str, a: ir.Value, rhs: str, b: ir.Value, result: str, op: ir.OpView) -> tuple[str, ir.Value]:
    """The product of two terms, of the element type and precision of `op`, and its letters."""
    both = [letter for letter in lhs if letter in rhs]
    batch = [letter for letter in both if letter in result]
    inner = [letter for letter in both if letter not in result]
    numbers = [[term.index(letter) for letter in letters] for letters in (batch, inner) for term in (lhs, rhs)]
    letters = [*batch, *(t for t in lhs if t not in both), *(t for t in rhs if t not in both)]
    sizes = dict(zip(lhs + rhs, dims_of(a) + dims_of(b), strict=True))
    type_ = tensor_type([sizes[letter] for letter in letters], element_type_of(op.results[0]))
    dimensions: Any = stablehlo.DotDimensionNumbers.get(*numbers)
    attributes = {"dot_dimension_numbers": dimensions, **precision_attributes(op)}
    return "".join(letters), build.create("dot_general", [a, b], type_, attributes)


def torch_index_select(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """A gather of whole slices along one axis, which indices out of range clamp."""
    operand, index = op.operands
    dims, index_dims = dims_of(operand), dims_of(index)
    axis, batch = (ir.IntegerAttr(op.attributes[name]).value for name in ("dim", "batch_dims"))
    selected = range(axis, axis + len(index_dims) - batch)
    places = [i for i in range(len(dims_of(op.results[0]))) if i not in selected and i >= batch]
    batches = ", ".join(map(str, range(batch)))
    numbers = ir.Attribute.parse(
        f"#stablehlo.gather<offset_dims = {places}, collapsed_slice_dims = [{axis}], "
        f"operand_batching_dims = [{batches}], start_indices_batching_dims = [{batches}], "
        f"start_index_map = [{axis}], index_vector_dim = {len(index_dims)}>"
    )
    sizes = [build.ONE if i == axis or i < batch else d for i, d in enumerate(dims)]
    with rewriter.ip, op.location:
        attributes = {"dimension_numbers": numbers}
        operands = [operand, index, shape_tensor(sizes)]
        rewriter.replace_op(op, [build.create("dynamic_gather", operands, op.results[0].type, attributes)])
    return None


PATTERNS: list[tuple[str, Pattern]] = [
    ("stablehlo.broadcast", broadcast_in_front),
    ("stablehlo.dot", dot),
    ("stablehlo.einsum", einsum),
    ("stablehlo.torch_index_select", torch_index_select),
    ("stablehlo.unary_einsum", einsum),
]
