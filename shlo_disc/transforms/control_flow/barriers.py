# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`stablehlo.optimization_barrier`: its results are its operands, and what reads one needs all of them.

A program says by it that something is to be computed again, and late: `jax.checkpoint` passes what the forward pass
kept through a barrier together with the gradient that arrives, so that what is computed from it is neither merged with
the forward pass nor scheduled before the gradient. A barrier stays an op until kernels are chosen and ordered.
"""

from __future__ import annotations

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import BARRIER, BROADCASTS, GENERATORS
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.ops.values import is_shape_like
from shlo_disc.shape_dialect.utils.regions import terminator_of


def thin_barriers(block: ir.Block) -> None:
    """Take out of barriers, in place, what they say nothing about.

    That is what is made from nothing, sizes, complex and quantized values, which become others, and what is only
    returned. A barrier that orders nothing any more is erased.
    """
    for inner in all_blocks(block):
        for op in list(inner.operations):
            if op.operation.name == BARRIER:
                _thin(op.operation)


def remove_barriers(block: ir.Block) -> None:
    """Replace the results of barriers by their operands, in place."""
    for inner in all_blocks(block):
        for op in list(inner.operations):
            if op.operation.name == BARRIER:
                _replace(op.operation, range(len(op.operands)))
                op.operation.erase()


def _thin(op: ir.Operation) -> None:
    for operand, result in zip(op.operands, op.results, strict=True):
        for use in list(result.uses):
            if use.owner.operation == terminator_of(op.block).operation:
                use.owner.operands[use.operand_number] = operand
    kept = [i for i, v in enumerate(op.operands) if not _is_let_through(v)]
    _replace(op, [i for i in range(len(op.operands)) if i not in kept])
    stretches = {i: _broadcasts_of(op.operands[i]) for i in kept}
    sources = [stretches[i][-1].operands[0] if stretches[i] else op.operands[i] for i in kept]
    is_read = any(True for i in kept for _ in op.results[i].uses)
    if len(set(sources)) < 2 or not is_read:
        _replace(op, kept)
        op.erase()
    elif len(kept) < len(op.operands) or any(stretches.values()):
        with ir.InsertionPoint(op):
            new = ir.Operation.create(BARRIER, [v.type for v in sources], sources, loc=op.location)
            for i, value in zip(kept, new.results, strict=True):
                for stretch in reversed(stretches[i]):
                    clone = stretch.clone()
                    clone.operands[0] = value
                    value = clone.results[0]
                op.results[i].replace_all_uses_with(value)
        op.erase()


def _broadcasts_of(value: ir.Value) -> list[ir.Operation]:
    """The broadcasts that make a value, the last one first: a barrier of what they read means the same."""
    found: list[ir.Operation] = []
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in BROADCASTS:
        found.append(value.owner.operation)
        value = found[-1].operands[0]
    return found


def _replace(op: ir.Operation, positions: range | list[int]) -> None:
    for i in positions:
        op.results[i].replace_all_uses_with(op.operands[i])


def _is_let_through(value: ir.Value) -> bool:
    type_ = value.type
    if not isinstance(type_, ir.RankedTensorType) or is_shape_like(type_) or _is_generated(value):
        return True
    return not isinstance(type_.element_type, ir.IntegerType | ir.FloatType)


def _is_generated(value: ir.Value) -> bool:
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    name = owner.operation.name
    return name in GENERATORS or (name in BROADCASTS and _is_generated(owner.operands[0]))
