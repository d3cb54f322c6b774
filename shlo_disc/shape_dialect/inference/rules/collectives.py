# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives: arrays grow by the number of a group's members, or are divided by it."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.inference.propagation import Propagation, Rule
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Relation
from shlo_disc.shape_dialect.utils.collectives import groups_of


def _same(_: Propagation, op: ir.OpView) -> list[Dims]:
    return [dims_of(v) for v, _ in zip(op.operands, op.results, strict=False)]


def _members(op: ir.OpView) -> int:
    return len(groups_of(op)[0])


def _divided(p: Propagation, op: ir.OpView, dims: Dims, axis: int) -> Dims:
    count = Expr.const(_members(op))
    p.require(Relation.eq(dims[axis] % count, 0), op)
    return (*dims[:axis], dims[axis] // count, *dims[axis + 1 :])


def _multiplied(op: ir.OpView, dims: Dims, axis: int) -> Dims:
    return (*dims[:axis], dims[axis] * _members(op), *dims[axis + 1 :])


def _axis(op: ir.OpView, name: str) -> int:
    return int(ir.IntegerAttr(op.attributes[name]).value)


def _all_gather(_: Propagation, op: ir.OpView) -> list[Dims]:
    return [_multiplied(op, dims_of(v), _axis(op, "all_gather_dim")) for v in op.operands]


def _reduce_scatter(p: Propagation, op: ir.OpView) -> list[Dims]:
    return [_divided(p, op, dims_of(op.operands[0]), _axis(op, "scatter_dimension"))]


def _all_to_all(p: Propagation, op: ir.OpView) -> list[Dims]:
    split, concat = _axis(op, "split_dimension"), _axis(op, "concat_dimension")
    return [_multiplied(op, _divided(p, op, dims_of(v), split), concat) for v in op.operands]


def _number(_: Propagation, __: ir.OpView) -> list[Dims]:
    return [()]


RULES: dict[str, Rule] = {
    "stablehlo.all_gather": _all_gather,
    "stablehlo.all_reduce": _same,
    "stablehlo.all_to_all": _all_to_all,
    "stablehlo.collective_broadcast": _same,
    "stablehlo.collective_permute": _same,
    "stablehlo.partition_id": _number,
    "stablehlo.reduce_scatter": _reduce_scatter,
    "stablehlo.replica_id": _number,
}
