# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Branches whose choice is known are opened; loops carry only what changes, and compute only what depends on it."""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.inference.sizes_inside import sizes_stated
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import TABLE
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks, symbols_read_in
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation
from shlo_disc.transforms.control_flow.carried import drop_carried, has_side_effects, values_read
from shlo_disc.transforms.control_flow.known_branches import open_known_branches
from shlo_disc.transforms.decisions import Decisions, Pattern


def simplify_control_flow(block: ir.Block) -> None:
    """Simplify the loops and branches of a block, and those in them, in place."""
    open_known_branches(block)
    drop_carried(block)


HOISTED = frozenset(
    "stablehlo." + name
    for name in (
        "cholesky", "convolution", "dot_general", "dynamic_conv", "dynamic_gather", "fft", "gather", "reduce",
        "reduce_window", "scatter", "sort", "transpose", "triangular_solve",
    )
)  # fmt: skip
"""Ops that cost more than reading their result again."""

_IMPURE = frozenset({"disc.bind", *(f"stablehlo.{name}" for name in ("infeed", "outfeed", "recv", "rng", "send"))})
"""Ops that may give another result the next time, or that count for more than their results."""


@dataclass
class _Invariant:
    """An op in a block of a loop, with the values and the symbols that differ from iteration to iteration."""

    op: ir.OpView
    varying: set[ir.Value]
    sizes: set[str]
    facts: Facts


INVARIANT: Pattern[_Invariant] = Pattern("hoist-invariant", "what is the same in every iteration is computed once")


@INVARIANT.requires("what it reads is the same in every iteration")
def _reads_nothing_that_varies(found: _Invariant) -> bool:
    return not any(value in found.varying for value in values_read(found.op.operation))


@INVARIANT.requires("its sizes are the same in every iteration")
def _has_invariant_sizes(found: _Invariant) -> bool:
    return not found.sizes or all(found.sizes.isdisjoint(size.symbols()) for size in sizes_stated(found.op))


@INVARIANT.requires("it is no loop or branch: those may run without end, where the loop would not run at all")
def _runs_straight(found: _Invariant) -> bool:
    return not nested_blocks(found.op)


@INVARIANT.requires("it computes its results from its operands and does nothing else")
def _has_no_other_effect(found: _Invariant) -> bool:
    op = found.op.operation
    return op.name not in _IMPURE and not has_side_effects(op)


@INVARIANT.requires("the windows that it reads lie inside, so that it may run although the loop does not")
def _may_run_before_the_loop(found: _Invariant) -> bool:
    return _may_run_before(found.op.operation, found.facts)


def _may_run_before(op: ir.Operation, facts: Facts) -> bool:
    """Tells whether an op may run even if its loop does not: its operands exist, however small the arrays are."""
    definition = TABLE.get(op.name)
    if definition is None or definition.window is None:
        return True
    try:
        window = definition.window(op.opview)
    except ValueError:
        return False
    return all(facts.prove(Relation.le(a, b)) is True for a, b in zip(window, dims_of(op.operands[0]), strict=True))


def hoist_invariants(block: ir.Block, facts: Facts, decisions: Decisions) -> None:
    """Move what is costly and the same in every iteration before its loop, in place."""
    for op in list(block.operations):
        for nested in nested_blocks(op):
            hoist_invariants(nested, facts, decisions)
        if op.operation.name == "stablehlo.while":
            for nested in nested_blocks(op):
                _hoist(nested, op, facts, decisions)


def _hoist(block: ir.Block, loop: ir.OpView, facts: Facts, decisions: Decisions) -> None:
    """Each costly op that may move, and what it needs."""
    varying: set[ir.Value] = set(block.arguments)
    sizes = symbols_read_in(loop)
    invariant = []
    for op in list(block.operations)[:-1]:
        if INVARIANT.match(lambda op: _Invariant(op, varying, sizes, facts), op) is None:
            varying.update(op.results)
        else:
            invariant.append(op.operation)
    moved: set[ir.Operation] = set()
    needed: set[ir.Value] = set()
    for op in reversed(invariant):
        is_needed = any(result in needed for result in op.results)
        if is_needed or (op.name in HOISTED and decisions.take(INVARIANT.name, op)):
            moved.add(op)
            needed.update(values_read(op))
    for op in invariant:
        if op in moved:
            op.move_before(loop.operation)
