# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Advice on comparisons of sizes that JAX cannot decide while it traces: what to write, and what to state."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.symbolic.expr import Atom, Expr, FloorDiv, Mod, content
from shlo_disc.shape_dialect.symbolic.facts_relation import Relation

from .constraints import is_satisfiable
from .user_code import Place

_OF_EMPTIES = ((">=", "1"), ("<", "1"), (">", "0"), ("<=", "0"))
"""Comparisons that ask whether an array has elements."""


_EACH_OUTCOME = "give shlo_disc.jit compile_once=False, which compiles a program for each outcome"


def advice(left: str, op: str, right: str, place: Place | None, *, is_own: bool) -> str:
    """The advice on a comparison. is_own: the user's code compares, and no function that it calls."""
    try:
        relation = Relation(op, Expr.parse(left), Expr.parse(right))
    except ProgramError:
        return ""
    if op in ("==", "!="):
        return f'where it always holds, state it: constraints=("{written(Relation.eq(relation.lhs, relation.rhs))}",)'
    if not is_own and not is_extreme(place):
        return _on_library(relation, (op, right) in _OF_EMPTIES)
    expression = place.expression if place else None
    is_of_entries = place is not None and _compares_entries(expression, place)
    stated = _EACH_OUTCOME
    if either := _either(_unequal(relation) if is_of_entries else _ordered(relation)):
        stated = f"{either}, or {stated}"
    if is_of_entries:
        return (
            "Python compares tuples and lists by the first entries that differ. Compare the sizes themselves: choose "
            f"by jax.lax.cond(jax.numpy.asarray(size) {relation.operator} {right}, ...), whose branches have results "
            f"of the same shape. Else {stated}"
        )
    if isinstance(expression, ast.Compare) and len(expression.ops) == 1:
        as_array = ast.Name(f"jax.numpy.asarray({ast.unparse(expression.left)})")
        compared = ast.unparse(ast.Compare(as_array, expression.ops, expression.comparators))
        return f"choose by jax.lax.cond({compared}, ...), whose branches have results of the same shape. Else {stated}"
    if expression is None or place and place.called() in _EXTREMES:
        sizes = f"({left}, {right})"
        return (
            f"in place of min or max of sizes write jax.core.min_dim{sizes} or jax.core.max_dim{sizes}, which return a "
            f"size, and not a number as range and a count of parts need. Else {stated}"
        )
    return stated


def is_extreme(place: Place | None) -> bool:
    """Tells whether the larger or the smaller one of sizes is asked."""
    return place is not None and place.called() in _EXTREMES


_EXTREMES = ("builtins.min", "builtins.max", "numpy.minimum", "numpy.maximum")


def _compares_entries(expression: ast.expr | None, place: Place) -> bool:
    """Tells whether an expression compares tuples or lists, which Python does entry by entry."""
    match expression:
        case ast.Compare():
            compared = [expression.left, *expression.comparators]
        case ast.Call(args=[ast.List() | ast.Tuple() as values]) if place.called() in _EXTREMES:
            compared = values.elts
        case ast.Call(args=[_, _, *_]) if place.called() in _EXTREMES:
            compared = expression.args
        case _:
            return False
    return any(_is_sequence(value, place) for value in compared)


def _is_sequence(expression: ast.expr, place: Place) -> bool:
    """Tells whether the value of an expression is a tuple or a list."""
    match expression:
        case ast.Tuple() | ast.List() | ast.Attribute(attr="shape") | ast.Subscript(slice=ast.Slice()):
            return True
        case ast.BinOp():
            return _is_sequence(expression.left, place) or _is_sequence(expression.right, place)
        case ast.Call():
            return place._replace(expression=expression).called() in _SEQUENCES
    return isinstance(place.value_of(expression), tuple | list)


_SEQUENCES = ("builtins.tuple", "builtins.list", "builtins.sorted", "jax.numpy.shape", "numpy.shape")


def _on_library(relation: Relation, is_of_empties: bool) -> str:
    """Advice on a comparison in a function that the user calls, which has one outcome for all sizes of a program."""
    likely = _multiplied(_ordered(relation)[0])
    if is_of_empties and is_sensible(likely):
        return f'the function needs at least one element there: state it by constraints=("{written(likely)}",)'
    if either := _either(_ordered(relation)):
        return f"{either}, or {_EACH_OUTCOME}"
    found = (Relation(">=", divisor, Expr.const(1)) for divisor in _divisors(relation))
    stated = ", ".join(dict.fromkeys(f'"{written(least)}"' for least in found if is_sensible(least)))
    return f"the function divides by a size that may be 0: state constraints=({stated},)" if stated else ""


def _multiplied(relation: Relation) -> Relation:
    """The relation without a division: n >= 4 for floordiv(n, 4) >= 1."""
    atom, least = relation.lhs.single_atom, relation.rhs.constant
    if relation.operator != ">=" or not isinstance(atom, FloorDiv) or least is None:
        return relation
    divisor = atom.divisor.constant
    return Relation.ge(atom.dividend, least * divisor) if divisor and divisor > 0 else relation


def on_padding(size: str, padding: str) -> str:
    """Advice where JAX has to know that an axis is longer than a padding that mirrors its elements."""
    try:
        longer = Relation(">=", Expr.parse(size), Expr.parse(padding) + 1)
    except ProgramError:
        return ""
    return f'state that the axis is longer: constraints=("{written(longer)}",)' if is_sensible(longer) else ""


def _either(outcomes: Sequence[Relation]) -> str:
    """Advice to state the outcome, one of two; "" where neither can be stated."""
    stated = [f'constraints=("{written(r)}",)' for r in outcomes if is_sensible(r)]
    if len(stated) == 2:
        return f"state which one holds for yours, {stated[0]} or {stated[1]}"
    return f"where it holds for yours, state {stated[0]}" if stated else ""


def _unequal(relation: Relation) -> list[Relation]:
    """The two outcomes of a comparison of sizes that are not equal."""
    return [Relation(operator, relation.lhs, relation.rhs) for operator in (">", "<")]


def _ordered(relation: Relation) -> list[Relation]:
    """A comparison and its opposite, that of large sizes first."""
    return sorted((relation, relation.negate()), key=lambda r: r.operator not in (">", ">="))


def is_sensible(relation: Relation) -> bool:
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


__all__ = ["advice", "is_extreme", "is_sensible", "on_padding", "written"]
