# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dots read transposed operands where they lie: the layout is a matter of dimension numbers, not of data.

Dots of narrow elements are sums of 32 bits, from which a narrower result is converted: an op like others, to be fused.
"""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.shape_dialect.build import convert, create, multiply, reduce, transpose
from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.dtypes import BY_MLIR
from shlo_disc.shape_dialect.mlir import ir, rewrite, stablehlo
from shlo_disc.shape_dialect.ops.element_types import SUM_TYPES
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.transforms.simplify.data_movement import NO_MATCH, Pattern, defined_by


def transposed_operand(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """`dot_general(transpose(a), b)` reads `a`, as long as the free sizes of `a` keep their order."""
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    sides = [
        (list(numbers.lhs_batching_dimensions), list(numbers.lhs_contracting_dimensions)),
        (list(numbers.rhs_batching_dimensions), list(numbers.rhs_contracting_dimensions)),
    ]
    operands = list(op.operands)
    folded = False
    for position, (batch, contracting) in enumerate(sides):
        transpose = defined_by(operands[position], ("stablehlo.transpose",))
        if transpose is None:
            continue
        permutation = integers(transpose.attributes["permutation"])
        if not _keeps_free_order(permutation, {*batch, *contracting}):
            continue
        sides[position] = ([permutation[i] for i in batch], [permutation[i] for i in contracting])
        operands[position] = transpose.operands[0]
        folded = True
    if not folded:
        return NO_MATCH
    attributes = {name: op.attributes[name] for name in op.attributes}
    (lhs_batch, lhs_contracting), (rhs_batch, rhs_contracting) = sides
    attributes["dot_dimension_numbers"] = stablehlo.DotDimensionNumbers.get(
        lhs_batch, rhs_batch, lhs_contracting, rhs_contracting
    )
    with rewriter.ip:
        new = ir.Operation.create(
            "stablehlo.dot_general",
            results=[op.results[0].type],
            operands=operands,
            attributes=attributes,
            loc=op.location,
        )
        rewriter.replace_op(op, new)
    return None


def _keeps_free_order(permutation: Sequence[int], used: set[int]) -> bool:
    free = [source for i, source in enumerate(permutation) if i not in used]
    return free == sorted(free)


def is_rounded(dot: ir.OpView) -> bool:
    """Tells whether the target's products write the result's type, which is that of the operands."""
    types = {str(element_type_of(v)) for v in (*dot.operands, dot.results[0])}
    return len(types) == 1 and types <= policy().rounded_products


def narrow_result(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """`dot_general : bf16` is `convert(dot_general : f32)`, and so for other narrow types, where products write f32."""
    element, result = element_type_of(op.operands[0]), element_type_of(op.results[0])
    sums = SUM_TYPES.get(str(element))
    if is_rounded(op) or sums is None or str(result) == sums or BY_MLIR[str(result)].bits >= BY_MLIR[sums].bits:
        return NO_MATCH
    if element_type_of(op.operands[1]) != element or isinstance(result, ir.FloatType) != isinstance(
        element, ir.FloatType
    ):
        return NO_MATCH
    with rewriter.ip, op.location:
        attributes = {name: op.attributes[name] for name in op.attributes}
        type_ = tensor_type(dims_of(op.results[0]), ir.Type.parse(sums))
        rewriter.replace_op(op, [convert(create("dot_general", list(op.operands), type_, attributes), result)])
    return None


def transposed_narrow_result(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """`transpose(convert(dot))` is `convert(transpose(dot))`: a dot writes its result transposed."""
    converted = defined_by(op.operands[0], ("stablehlo.convert",))
    dot = None if converted is None else defined_by(converted.operands[0], ("stablehlo.dot_general",))
    if converted is None or dot is None or any(len(list(o.results[0].uses)) != 1 for o in (converted, dot)):
        return NO_MATCH
    with rewriter.ip, op.location:
        type_ = tensor_type(dims_of(op.results[0]), element_type_of(dot.results[0]))
        transposed = create("transpose", [dot.results[0]], type_, {"permutation": op.attributes["permutation"]})
        rewriter.replace_op(op, [convert(transposed, element_type_of(op.results[0]))])
    return None


def inner_product(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """A dot without rows and columns is a reduction of products: it is fused with what computes its operands."""
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batch, contracting = list(numbers.lhs_batching_dimensions), list(numbers.lhs_contracting_dimensions)
    others = [*numbers.rhs_batching_dimensions, *numbers.rhs_contracting_dimensions]
    lhs, rhs = op.operands
    sums = SUM_TYPES.get(str(element_type_of(lhs)))
    if element_type_of(lhs) != element_type_of(rhs) or sums is None:
        return NO_MATCH
    if BY_MLIR[str(element_type_of(op.results[0]))].bits > BY_MLIR[sums].bits:
        return NO_MATCH
    if any(len(dims_of(side)) != len(others) for side in (lhs, rhs)):
        return NO_MATCH
    with rewriter.ip, op.location:
        places = dict(zip([*batch, *contracting], others, strict=True))
        turned = transpose(rhs, [places[axis] for axis in range(len(others))])
        terms = multiply(*(convert(side, ir.Type.parse(sums)) for side in (lhs, turned)))
        total = reduce(terms, contracting, "add", 0) if contracting else terms
        total = transpose(total, [sorted(batch).index(axis) for axis in batch])
        rewriter.replace_op(op, [convert(total, element_type_of(op.results[0]))])
    return None


PATTERNS: list[tuple[str, Pattern]] = [
    ("stablehlo.dot_general", inner_product),
    ("stablehlo.dot_general", transposed_operand),
    ("stablehlo.dot_general", narrow_result),
    ("stablehlo.transpose", transposed_narrow_result),
]
