# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Assertions of a graph that follow from PyTorch's assumption that sizes are at least 2, none of the program's."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import sympy
import torch
from torch.fx import GraphModule, Node

from . import table
from .sizes import Sizes


def asserted(node: Node) -> torch.SymBool | None:
    """The condition that a node asserts; None where it is none of sizes."""
    if table.name_of(node.target) != "_assert_scalar.default":
        return None
    condition = node.args[0].meta.get("val") if isinstance(node.args[0], Node) else node.args[0]
    return condition if isinstance(condition, torch.SymBool) else None


def equations(module: GraphModule, stated: Set[str], sizes: Sizes) -> dict[Any, Any]:
    """The symbols that a graph asserts to be equal to expressions over the symbols `stated`."""
    found: dict[Any, Any] = {}
    for node in module.graph.nodes:
        condition = asserted(node)
        if condition is None or not isinstance(condition.node.expr, sympy.Eq):
            continue
        sides = condition.node.expr.args
        for symbol, other in (sides, sides[::-1]):
            if symbol.is_Symbol and not other.has(symbol) and _is_of(other, stated, sizes):
                found[symbol] = other
    return found


def _is_of(e: Any, symbols: Set[str], sizes: Sizes) -> bool:
    return all(str(sizes.size_of(symbol)) in symbols for symbol in e.free_symbols)


def is_assumed(condition: torch.SymBool, equal: dict[Any, Any]) -> bool:
    """Tells whether a condition is the least size that an expression has if all sizes are in PyTorch's ranges.

    Each call checks the ranges that the user gave. equal: the expressions of symbols, which each call checks as well.
    """
    relation = condition.node.expr
    if not isinstance(relation, sympy.Ge) or not isinstance(relation.rhs, sympy.Integer) or relation.lhs not in equal:
        return False
    return bool(condition.node.shape_env.bound_sympy(equal[relation.lhs]).lower >= relation.rhs)
