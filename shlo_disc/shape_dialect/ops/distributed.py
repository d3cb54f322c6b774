# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that talk to other participants or to the host."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.definition import OpDef, define, refuse
from shlo_disc.shape_dialect.ops.element_types import ALL
from shlo_disc.shape_dialect.ops.propagation import Propagation, SizeRule, same_operands
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Relation
from shlo_disc.shape_dialect.utils.collectives import groups_of

_TESTS = "tests/run/test_ops_distributed.py"
_DEVICES = "tests/pjrt/test_devices.py"


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


def _infer_all_gather(_: Propagation, op: ir.OpView) -> list[Dims]:
    return [_multiplied(op, dims_of(v), _axis(op, "all_gather_dim")) for v in op.operands]


def _infer_reduce_scatter(p: Propagation, op: ir.OpView) -> list[Dims]:
    return [_divided(p, op, dims_of(op.operands[0]), _axis(op, "scatter_dimension"))]


def _infer_all_to_all(p: Propagation, op: ir.OpView) -> list[Dims]:
    split, concat = _axis(op, "split_dimension"), _axis(op, "concat_dimension")
    return [_multiplied(op, _divided(p, op, dims_of(v), split), concat) for v in op.operands]


def _infer_number(_: Propagation, __: ir.OpView) -> list[Dims]:
    return [()]


def _collective(names: str, infer: SizeRule, dtypes: frozenset[str] = ALL) -> tuple[OpDef, ...]:
    return define("library", names, dtypes, gpu=dtypes, infer=infer, tests=_DEVICES)


OPS = (
    *_collective("all_gather", _infer_all_gather),
    *_collective("all_reduce", same_operands),
    *_collective("all_to_all", _infer_all_to_all),
    *_collective("collective_broadcast collective_permute", same_operands),
    *_collective("reduce_scatter", _infer_reduce_scatter),
    *_collective("partition_id replica_id", _infer_number, frozenset({"ui32"})),
    *define("import", "collective_reduce cross-replica-sum", ALL, tests=_TESTS),
    *define("import", "async_done async_start", ALL, tests=_TESTS),
    *refuse("infeed outfeed recv send", ALL, "a compiled program has no channel to the host while it runs",
            "pass arguments and return results"),
)  # fmt: skip
