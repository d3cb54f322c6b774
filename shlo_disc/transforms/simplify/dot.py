# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dots read transposed operands where they lie: the layout is a matter of dimension numbers, not of data."""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.mlir import ir, rewrite, stablehlo
from shlo_disc.shape_dialect.propagation import integers
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


PATTERNS: list[tuple[str, Pattern]] = [("stablehlo.dot_general", transposed_operand)]
