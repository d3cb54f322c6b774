# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of rows with a transposed matrix from outside get the matrix the way in which a kernel for rows reads it.

The gradient of a recurrent network has them: it multiplies by the weights of the network the other way round.
"""

from __future__ import annotations

from shlo_disc.shape_dialect.build import transpose
from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.types import dims_of, product
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks
from shlo_disc.transforms.decisions import Decisions, Pattern
from shlo_disc.transforms.simplify.loop_product import LoopProduct

DOT = "stablehlo.dot_general"

WEIGHTS: Pattern[LoopProduct] = Pattern(
    "pre-transpose-weights", "a matrix that a loop multiplies by is transposed before the loop"
)


@WEIGHTS.requires("the right-hand side comes from outside of the loop")
def _matrix_is_from_outside(found: LoopProduct) -> bool:
    return not found.is_inside(found.dot.operands[1])


@WEIGHTS.requires("it is a product of rows with the rows of a matrix")
def _multiplies_rows_by_rows(found: LoopProduct) -> bool:
    numbers = found.numbers
    inner = [list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)]
    ranks = [len(dims_of(v)) for v in found.dot.operands]
    return inner == [[1], [1]] and ranks == [2, 2] and not list(numbers.lhs_batching_dimensions)


def pre_transpose_weights(block: ir.Block, decisions: Decisions) -> None:
    """Transpose small matrices by whose rows the loops of a block multiply before the loops, in place."""
    for op in list(block.operations):
        for nested in nested_blocks(op):
            pre_transpose_weights(nested, decisions)
        if op.operation.name == "stablehlo.while":
            body = nested_blocks(op)[1]
            for inner in [i.operation for i in body.operations if i.operation.name == DOT]:
                _pre_transpose_weights(op, inner, decisions)


def _pre_transpose_weights(loop: ir.OpView, dot: ir.Operation, decisions: Decisions) -> None:
    if WEIGHTS.match(lambda dot: LoopProduct(loop, dot), dot) is None:
        return
    rhs = dot.operands[1]
    size = product(dims_of(rhs)).constant
    if size is None or size > policy().transposed_weights or not decisions.take(WEIGHTS.name, dot):
        return
    with ir.InsertionPoint(loop), dot.location:
        transposed = transpose(rhs, [1, 0])
    dot.operands[1] = transposed
    dot.attributes["dot_dimension_numbers"] = stablehlo.DotDimensionNumbers.get([], [], [1], [0])
