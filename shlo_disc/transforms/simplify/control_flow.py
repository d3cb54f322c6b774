# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Branches whose choice is known are opened; loops carry only what changes, and compute only what depends on it."""

from __future__ import annotations

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.carried import carry_less, values_read
from shlo_disc.shape_dialect.regions import constant_of, nested_blocks


def simplify_control_flow(block: ir.Block) -> None:
    """Simplify the loops and branches of a block, and those in them, in place."""
    _open_known_branches(block)
    carry_less(block)


HOISTED = frozenset(
    "stablehlo." + name
    for name in (
        "cholesky", "convolution", "dot_general", "dynamic_conv", "dynamic_gather", "fft", "gather", "reduce",
        "reduce_window", "scatter", "sort", "transpose", "triangular_solve",
    )
)  # fmt: skip
"""Ops that cost more than reading their result again."""


def hoist_invariants(block: ir.Block) -> None:
    """Move what is costly and the same in every iteration before its loop, in place."""
    for op in list(block.operations):
        for nested in nested_blocks(op):
            hoist_invariants(nested)
        if op.operation.name == "stablehlo.while":
            for nested in nested_blocks(op):
                _hoist(nested, op)


def _hoist(block: ir.Block, loop: ir.OpView) -> None:
    inside = set(block.arguments)
    invariant = []
    for op in list(block.operations)[:-1]:
        if nested_blocks(op) or any(value in inside for value in values_read(op.operation)):
            inside.update(op.results)
        else:
            invariant.append(op.operation)
    moved: set[ir.Operation] = set()
    for op in reversed(invariant):
        if op.name in HOISTED or any(use.owner.operation in moved for result in op.results for use in result.uses):
            moved.add(op)
    for op in invariant:
        if op in moved:
            op.move_before(loop.operation)


def _open_known_branches(block: ir.Block) -> None:
    for op in list(block.operations):
        for nested in nested_blocks(op):
            _open_known_branches(nested)
        branch = _taken(op)
        if branch is None:
            continue
        *members, terminator = list(branch.operations)
        for member in members:
            member.operation.move_before(op.operation)
        for result, value in zip(op.results, terminator.operands, strict=True):
            result.replace_all_uses_with(value)
        op.operation.erase()


def _taken(op: ir.OpView) -> ir.Block | None:
    """The branch that a constant chooses; None when the choice is data, and for any other op."""
    if op.operation.name not in ("stablehlo.if", "stablehlo.case"):
        return None
    constant = constant_of(op.operands[0])
    if constant is None:
        return None
    branches = nested_blocks(op)
    chosen = int(ir.DenseElementsAttr(constant.attributes["value"]).get_splat_value().value)
    if op.operation.name == "stablehlo.if":
        return branches[0 if chosen else 1]
    return branches[chosen if 0 <= chosen < len(branches) else -1]
