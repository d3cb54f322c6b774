# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions and products."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.inference.propagation import Propagation, Rule
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.utils.attributes import integers


def _reduce(p: Propagation, op: ir.OpView) -> list[Dims]:
    removed = set(integers(op.attributes["dimensions"]))
    inputs = [dims_of(v) for v in list(op.operands)[: len(op.operands) // 2]]
    for other in inputs[1:]:
        for a, b in zip(inputs[0], other, strict=True):
            p.equal(a, b, op)
    return [tuple(d for i, d in enumerate(inputs[0]) if i not in removed) for _ in op.results]


def _dot_general(p: Propagation, op: ir.OpView) -> list[Dims]:
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    lhs, rhs = dims_of(op.operands[0]), dims_of(op.operands[1])
    lhs_batch, rhs_batch = numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions
    lhs_contracting, rhs_contracting = numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions
    for i, j in [*zip(lhs_batch, rhs_batch, strict=True), *zip(lhs_contracting, rhs_contracting, strict=True)]:
        p.equal(lhs[i], rhs[j], op)
    lhs_free = [lhs[i] for i in range(len(lhs)) if i not in {*lhs_batch, *lhs_contracting}]
    rhs_free = [rhs[j] for j in range(len(rhs)) if j not in {*rhs_batch, *rhs_contracting}]
    return [(*(lhs[i] for i in lhs_batch), *lhs_free, *rhs_free)]


RULES: dict[str, Rule] = {
    "stablehlo.dot_general": _dot_general,
    "stablehlo.reduce": _reduce,
}
