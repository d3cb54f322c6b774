# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recognition of bodies of loops and branches that do not run, as far as the sizes show it.

What an op in there requires of sizes has to hold only where it runs: a loop over no rows takes no row.
"""

from __future__ import annotations

from collections import ChainMap

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks
from shlo_disc.shape_dialect.ops.values import SymbolicValues
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Relation
from shlo_disc.shape_dialect.utils.regions import terminator_of


def skipped_where(op: ir.OpView, values: SymbolicValues) -> list[Expr | None]:
    """For each block of a loop or a branch an expression that is at least 0 where it does not run; None: not known."""
    blocks = nested_blocks(op)
    if op.operation.name == "stablehlo.while":
        return [None, _at_least_zero(_first_test(op, values))]
    chosen = values.get(op.operands[0])
    if chosen is None:
        return [None] * len(blocks)
    if op.operation.name == "stablehlo.if":
        is_true = values.relation(op.operands[0]) or Relation.eq(chosen[0], 1)
        return [_at_least_zero(is_true), _at_least_zero(is_true.negate())]
    return _other_cases(chosen[0], len(blocks), values)


def _first_test(loop: ir.OpView, values: SymbolicValues) -> Relation | None:
    """The relation that has to hold for a loop to run at all, from the values that it starts with."""
    condition = nested_blocks(loop)[0]
    first = SymbolicValues(values.facts, values.rules, ChainMap({}, values.elements), ChainMap({}, values.relations))
    for argument, start in zip(condition.arguments, loop.operands, strict=True):
        known = values.get(start)
        if known is not None:
            first.elements[argument] = known
    for op in list(condition.operations)[:-1]:
        first.visit(op)
    return first.relation(terminator_of(condition).operands[0])


def _at_least_zero(relation: Relation | None) -> Expr | None:
    """An expression that is at least 0 where a relation does not hold."""
    if relation is None:
        return None
    operator, e = relation.negate().normal()
    return e if operator == ">=" else None


def _other_cases(index: Expr, count: int, values: SymbolicValues) -> list[Expr | None]:
    """An index that is out of range takes the last branch."""
    low, high = values.facts.range(index)
    if low is None or low < 0 or high is None or high >= count:
        return [None] * count
    return [Expr.maximum(index - k - 1, k - 1 - index) for k in range(count)]
