# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that talk to other participants or to the host."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, storage_type
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.definition import Check, OpDef, define, refuse
from shlo_disc.shape_dialect.ops.element_types import ALL
from shlo_disc.shape_dialect.ops.propagation import Propagation, SizeRule, same_operands
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Relation
from shlo_disc.shape_dialect.utils.collectives import groups_of, participants, reduction_of, runs_on_all

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


# ---- checks ---------------------------------------------------------------------------------------------------------


def _check_number(op: ir.OpView) -> str | None:
    return None if runs_on_all(op) else _reason_that_it_remains(op)


def _check_legacy(op: ir.OpView) -> str | None:
    return "between several participants it has no lowering" if runs_on_all(op) else _reason_that_it_remains(op)


def _check_groups(op: ir.OpView) -> str | None:
    return _group_problem(op, are_even=False) if runs_on_all(op) else _reason_that_it_remains(op)


def _check_even_groups(op: ir.OpView) -> str | None:
    return _group_problem(op, are_even=True) if runs_on_all(op) else _reason_that_it_remains(op)


def _reason_that_it_remains(op: ir.OpView) -> str:
    """The reason that the import could not resolve a collective of a program for one participant."""
    count = participants(op)
    if count > 1:
        return f"it is for {count} participants; a program runs on one"
    return "the participant that the program runs on is in none of its groups"


def _group_problem(op: ir.OpView, *, are_even: bool) -> str | None:
    """The reason that several devices cannot run a collective. are_even: its groups have to be of one size."""
    if any(storage_type(e := ir.RankedTensorType(v.type).element_type) != e for v in op.operands):
        return "quantized elements have no lowering here"
    try:
        groups = groups_of(op)
    except ValueError as error:
        return str(error)
    if are_even and len({len(group) for group in groups}) != 1:
        return "groups of different sizes have no lowering"
    if len(op.regions) and reduction_of(op) is None:
        return "a reduction other than add, multiply, maximum, minimum, and, or, xor has no lowering"
    return None


def _collective(
    names: str, infer: SizeRule, check: Check = _check_groups, dtypes: frozenset[str] = ALL
) -> tuple[OpDef, ...]:
    return define("library", names, dtypes, gpu=dtypes, check=check, infer=infer, tests=_DEVICES)


_COLLECTIVES = (
    *_collective("all_gather", _infer_all_gather, _check_even_groups),
    *_collective("all_reduce", same_operands),
    *_collective("all_to_all", _infer_all_to_all, _check_even_groups),
    *_collective("collective_broadcast collective_permute", same_operands),
    *_collective("reduce_scatter", _infer_reduce_scatter, _check_even_groups),
    *_collective("partition_id replica_id", _infer_number, _check_number, frozenset({"ui32"})),
    *define("import", "collective_reduce cross-replica-sum", ALL, check=_check_legacy, tests=_TESTS),
)

COLLECTIVES = frozenset(op.name for op in _COLLECTIVES)
"""Ops that depend on the participants of a program."""

OPS = (
    *_COLLECTIVES,
    *define("import", "async_done async_start", ALL, tests=_TESTS),
    *refuse("infeed outfeed recv send", ALL, "a compiled program has no channel to the host while it runs",
            "pass arguments and return results"),
)  # fmt: skip

__all__ = ["COLLECTIVES", "OPS"]
