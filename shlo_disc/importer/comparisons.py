# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Advice on comparisons of sizes that JAX cannot decide while it traces: what to write, and what to state."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.symbolic.expr import Atom, Expr, FloorDiv, Mod, content
from shlo_disc.shape_dialect.symbolic.facts_relation import Relation

from .constraints import is_satisfiable
from .user_code import Place

_OF_EMPTIES = ((">=", "1"), ("<", "1"), (">", "0"), ("<=", "0"))
"""Comparisons that ask whether an array has elements."""


def advice(left: str, op: str, right: str, place: Place | None, *, is_own: bool) -> str:
    """The advice on a comparison. is_own: the user's code compares, and no function that it calls."""
    try:
        relation = Relation(op, Expr.parse(left), Expr.parse(right))
    except ProgramError:
        return ""
    if op in ("==", "!="):
        return f'where it always holds, state it: constraints=("{written(Relation.eq(relation.lhs, relation.rhs))}",)'
    if not is_own:
        return _on_library(relation, (op, right) in _OF_EMPTIES)
    stated = "give shlo_disc.jit compile_once=False, which compiles a program for each outcome"
    if either := _either(relation):
        stated = f"{either}, or {stated}"
    expression = place.expression if place else None
    if isinstance(expression, ast.Compare) and len(expression.ops) == 1:
        left, right = ast.unparse(expression.left), ast.unparse(expression.comparators[0])
        return (
            f"choose by jax.lax.cond(jax.numpy.asarray({left}) {op} {right}, ...), whose branches have results of the "
            f"same shape. Else {stated}"
        )
    if expression is None or place and place.called() in ("builtins.min", "builtins.max"):
        sizes = f"({left}, {right})"
        return (
            f"in place of min or max of sizes write jax.core.min_dim{sizes} or jax.core.max_dim{sizes}. Else {stated}"
        )
    return stated


def _on_library(relation: Relation, is_of_empties: bool) -> str:
    """Advice on a comparison in a function that the user calls, which has one outcome for all sizes of a program."""
    likely = _ordered(relation)[0]
    if is_of_empties and _is_sensible(likely):
        return f'the function needs at least one element there: state it by constraints=("{written(likely)}",)'
    if either := _either(relation):
        return either
    found = (Relation(">=", divisor, Expr.const(1)) for divisor in _divisors(relation))
    stated = ", ".join(dict.fromkeys(f'"{written(least)}"' for least in found if _is_sensible(least)))
    return f"the function divides by a size that may be 0: state constraints=({stated},)" if stated else ""


def _either(relation: Relation) -> str:
    """Advice to state the outcome; "" where neither can be stated."""
    stated = [f'constraints=("{written(r)}",)' for r in _ordered(relation) if _is_sensible(r)]
    if len(stated) == 2:
        return f"state which one holds for yours, {stated[0]} or {stated[1]}"
    return f"where it holds for yours, state {stated[0]}" if stated else ""


def _ordered(relation: Relation) -> list[Relation]:
    """A comparison and its opposite, that of large sizes first."""
    return sorted((relation, relation.negate()), key=lambda r: r.operator not in (">", ">="))


def _is_sensible(relation: Relation) -> bool:
    """Tells whether a constraint says something: some sizes satisfy it and others do not, and none is a divisor."""
    if not relation.symbols() or any(divisor.symbols() for divisor in _divisors(relation)):
        return False
    return is_satisfiable([relation]) and is_satisfiable([relation.negate()])


def _divisors(relation: Relation) -> Iterator[Expr]:
    """The divisors in a comparison, also within operands."""

    def within(atom: Atom) -> Iterator[Expr]:
        if isinstance(atom, FloorDiv | Mod):
            yield atom.divisor
        for operand in atom.operands:
            for inner in operand.atoms():
                yield from within(inner)

    for side in (relation.lhs, relation.rhs):
        for atom in side.atoms():
            yield from within(atom)


def written(relation: Relation) -> str:
    """The relation as people write it, with what constraints= takes: `n <= 16` for `- 2*n + 32 >= 0`."""
    operator, size = relation.normal()
    factor = content((c, m) for c, m in size.terms if m)
    if operator == ">=" and factor > 1:
        size = Expr.from_terms((c // factor, m) for c, m in size.terms)  # rounded down, as factor * e >= - c allows
    return str(Relation(operator, size, Expr.const(0)).balanced())


__all__ = ["advice", "written"]
