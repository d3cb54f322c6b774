# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions over whole axes."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.definition import define
from shlo_disc.shape_dialect.ops.element_types import ALL
from shlo_disc.shape_dialect.ops.elementwise import check_body
from shlo_disc.shape_dialect.ops.propagation import Propagation
from shlo_disc.shape_dialect.ops.size_relations import SizeRelations, numbers_of, rank
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.attributes import integers


def _infer_reduce(p: Propagation, op: ir.OpView) -> list[Dims]:
    removed = set(integers(op.attributes["dimensions"]))
    inputs = [dims_of(v) for v in list(op.operands)[: len(op.operands) // 2]]
    for other in inputs[1:]:
        for a, b in zip(inputs[0], other, strict=True):
            p.equal(a, b, op)
    return [tuple(d for i, d in enumerate(inputs[0]) if i not in removed) for _ in op.results]


def _relate_reduce(r: SizeRelations, op: ir.OpView) -> None:
    inputs = list(op.operands)[: len(op.results)]
    removed = numbers_of(op, "dimensions")
    kept = [i for i in range(rank(inputs[0])) if i not in removed]
    r.same_shape(inputs)
    for result in op.results:
        r.same_axes(inputs[0], kept, result, range(len(kept)))


def _flops_of_reduce(op: ir.OpView) -> Expr:
    return product(dims_of(op.operands[0])) * (len(op.operands) // 2)


OPS = define(
    "reduction", "reduce", ALL, check=check_body, infer=_infer_reduce, relate=_relate_reduce,
    flops=_flops_of_reduce, tests="tests/run/test_ops_reduce.py",
)  # fmt: skip
