# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that a program on one participant needs no code for: collectives, barriers, tuples, tokens and futures.

Where every group of a collective has one member, each member's result is its own operand. What remains after this, such
as a collective of several participants, is for a program that several devices run together; the import check refuses it
in others.
"""

from __future__ import annotations

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.distributed import COLLECTIVES
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.utils.collectives import participants, stated_groups

_IDENTITY_CALLS = (
    "LayoutConstraint", "SPMDFullToShardShape", "SPMDShardToFullShape", "Sharding", "annotate_device_placement",
)  # fmt: skip
"""Custom calls that only say how a value lies on participants or in memory."""

_UNUSED = ("stablehlo.after_all", "stablehlo.async_start", "stablehlo.create_token", "stablehlo.tuple")
"""Erased when nothing uses them any more. What an `async_start` does is where its `async_done` was."""


def resolve(block: ir.Block) -> None:
    """Resolve what can be in a block and the blocks of its loops and branches, in place."""
    for inner in list(all_blocks(block)):
        for op in list(inner.operations):
            with ir.InsertionPoint(op), op.location:
                values = _values(op)
            if values is not None:
                for result, value in zip(op.results, values, strict=True):
                    result.replace_all_uses_with(value)
                op.operation.erase()


def erase_unused(block: ir.Block) -> None:
    """Erase the tuples, tokens and futures without uses in a block and the blocks of its loops and branches."""
    for inner in reversed(list(all_blocks(block))):
        for op in reversed(list(inner.operations)):
            if op.operation.name in _UNUSED and not any(True for r in op.results for _ in r.uses):
                op.operation.erase()


def _values(op: ir.OpView) -> list[ir.Value] | None:
    """The values of an op's results; None when it stays."""
    name = op.operation.name
    if name == "stablehlo.custom_call" and _is_identity_call(op):
        return list(op.operands)
    if name == "stablehlo.get_tuple_element":
        source = op.operands[0].owner
        is_known = not isinstance(source, ir.Block) and source.operation.name == "stablehlo.tuple"
        return [source.operands[ir.IntegerAttr(op.attributes["index"]).value]] if is_known else None
    if name == "stablehlo.async_done":
        return _done(op)
    if name not in COLLECTIVES or participants(op) > 1:
        return None
    if name in ("stablehlo.partition_id", "stablehlo.replica_id"):
        type_ = op.results[0].type
        zero = ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(ir.RankedTensorType(type_).element_type, 0))
        return [build.dense(zero)]
    if not _has_group(op):
        return None
    return [_cast(v, r.type) for v, r in zip(op.operands, op.results, strict=False)]  # a root may follow the operands


def _done(op: ir.OpView) -> list[ir.Value] | None:
    """The results of what was started, which is moved here: nothing runs beside it."""
    start = op.operands[0].owner
    if isinstance(start, ir.Block) or start.name != "stablehlo.async_start":
        return None
    body = start.regions[0].blocks[0]
    for argument, operand in zip(body.arguments, start.operands, strict=True):
        argument.replace_all_uses_with(operand)
    resolve(body)
    *inner, terminator = body.operations
    for moved in inner:
        moved.operation.move_before(op.operation)
    return list(terminator.operands)


def _is_identity_call(op: ir.OpView) -> bool:
    target = ir.StringAttr(op.attributes["call_target_name"]).value
    same = [v.type for v in op.operands] == [r.type for r in op.results]
    return target in _IDENTITY_CALLS and same


def _cast(value: ir.Value, type_: ir.Type) -> ir.Value:
    """`value` as a type of the same shape that knows more or fewer of its sizes."""
    if value.type == type_:
        return value
    return ir.Operation.create("stablehlo.convert", results=[type_], operands=[value]).results[0]


def _has_group(op: ir.OpView) -> bool:
    """Tells whether the participant is in a group, or every one is. A permutation or broadcast gives others zeros."""
    return any(stated_groups(op)) or "source_target_pairs" not in op.attributes


__all__ = ["erase_unused", "resolve"]
