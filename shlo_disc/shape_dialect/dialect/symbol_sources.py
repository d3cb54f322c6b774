# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The solution of a program's symbols from the sizes of its arguments.

As `jax.export` does (`solve_dim_vars` in its shape_poly.py), sizes of one symbol come first; what is solved makes
further sizes into such, until none is left: `s` and `s + p` give `p`. Where `jax.export` gives up, sizes that are
linear in the unsolved symbols are eliminated as by Gauss, without fractions: `a + b` and `a - b` give both.

A solution is only looked for here. A call compares each size with what its specification is at the solution.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from shlo_disc.shape_dialect.dialect.types import Dims
from shlo_disc.shape_dialect.symbolic.expr import ZERO, Atom, Expr, FloorDiv, Max, Min, Mod, Symbol
from shlo_disc.shape_dialect.symbolic.monomials import Term

Step = tuple[str | int, ...]
"""One of ("size", argument, dim), ("symbol", number), ("number", n), ("add",), ("multiply",), ("floordiv",), ..."""

_MOST_UNKNOWN = 32
"""Symbols that are eliminated together."""


@dataclass(frozen=True)
class SymbolSource:
    """The equation that gives a symbol from an argument's size: `size == scale * symbol + offset + less`.

    `less` is made of symbols before this one in the program's order, and of sizes of arguments (`size_symbol`).
    """

    name: str
    argument: int
    dim: int
    scale: int
    offset: int
    less: Expr = ZERO


@dataclass(frozen=True)
class _Equation:
    """A size, what it is made of unsolved symbols, and the rest. `size` is a sum of sizes of arguments."""

    argument: int
    dim: int
    size: Expr
    unknown: Mapping[str, int]
    rest: Expr


def size_symbol(argument: int, dim: int) -> Expr:
    """Stands for the size of an argument, under a name that no symbol has."""
    return Expr.of_atom(Symbol(f"#{argument}.{dim}"))


def linear_in_one_symbol(dim: Expr) -> tuple[str, int, int] | None:
    """(symbol, scale, offset) when dim == scale * symbol + offset with scale >= 1, else None."""
    names = dim.symbols()
    if len(names) != 1:
        return None
    (name,) = names
    offset = dim.substitute({name: 0}).constant
    one = dim.substitute({name: 1}).constant
    if offset is None or one is None or one - offset < 1:
        return None
    scale = one - offset
    return (name, scale, offset) if dim == scale * Expr.symbol(name) + offset else None


def symbol_sources(shapes: Sequence[Dims]) -> tuple[SymbolSource, ...]:
    """For each symbol that the arguments' shapes determine the size it is solved from, in the order of solving.

    A size that is a symbol goes before one that is made of it. What is not determined has no source.
    """
    found = _of_one_symbol(shapes)
    while True:
        equations = list(_equations(shapes, found.keys()))
        alone = next((e for e in equations if len(e.unknown) == 1), None)
        alone = alone or _eliminated(equations)
        if alone is None:
            return tuple(found.values())
        source = _solved(alone)
        found[source.name] = source


def _of_one_symbol(shapes: Sequence[Dims]) -> dict[str, SymbolSource]:
    best: dict[str, SymbolSource] = {}
    of_dim = {dim: linear_in_one_symbol(dim) for dim in {dim for dims in shapes for dim in dims}}
    for position, dims in enumerate(shapes):
        for axis, dim in enumerate(dims):
            linear = of_dim[dim]
            if linear is None:
                continue
            source = SymbolSource(linear[0], position, axis, linear[1], linear[2])
            known = best.get(source.name)
            if known is None or (known.scale, known.offset) != (1, 0) == (source.scale, source.offset):
                best[source.name] = source
    return best


def _equations(shapes: Sequence[Dims], solved: Collection[str]) -> list[_Equation]:
    """The sizes that are linear in symbols which are not solved, and have any."""
    found = []
    for position, dims in enumerate(shapes):
        for axis, dim in enumerate(dims):
            unknown: dict[str, int] = {}
            rest: list[Term] = []
            for coefficient, monomial in dim.terms:
                names = {name for atom, _ in monomial for name in atom.symbols if name not in solved}
                if not names:
                    rest.append((coefficient, monomial))
                elif len(monomial) == 1 and monomial[0][1] == 1 and isinstance(monomial[0][0], Symbol):
                    unknown[names.pop()] = coefficient
                else:
                    break
            else:
                if unknown:
                    size = size_symbol(position, axis)
                    found.append(_Equation(position, axis, size, unknown, Expr.from_terms(rest)))
    return found


def _eliminated(equations: Sequence[_Equation]) -> _Equation | None:
    """An equation of one unknown that follows from these; None where none does."""
    names = sorted({name for e in equations for name in e.unknown})
    if not names or len(names) > _MOST_UNKNOWN:
        return None
    rows = list(equations)
    done = 0
    for name in names:
        pivot = next((i for i in range(done, len(rows)) if rows[i].unknown.get(name)), None)
        if pivot is None:
            continue
        rows[done], rows[pivot] = rows[pivot], rows[done]
        rows = [row if i == done else _without(name, row, rows[done]) for i, row in enumerate(rows)]
        done += 1
    return next((row for row in rows[:done] if len(row.unknown) == 1), None)


def _without(name: str, row: _Equation, pivot: _Equation) -> _Equation:
    """`row` less what it has of a symbol, by means of the pivot's equation."""
    mine, by = row.unknown.get(name, 0), pivot.unknown[name]
    if not mine:
        return row
    unknown = {n: by * row.unknown.get(n, 0) - mine * pivot.unknown.get(n, 0) for n in {*row.unknown, *pivot.unknown}}
    left = {n: factor for n, factor in unknown.items() if factor}
    size, rest = by * row.size - mine * pivot.size, by * row.rest - mine * pivot.rest
    return _Equation(row.argument, row.dim, size, left, rest)


def _solved(equation: _Equation) -> SymbolSource:
    ((name, scale),) = equation.unknown.items()
    own = size_symbol(equation.argument, equation.dim)
    sign = -1 if scale < 0 and equation.size != own else 1
    scale *= sign
    less = sign * (equation.rest - equation.size) + own
    offset = less.constant_term
    return SymbolSource(name, equation.argument, equation.dim, scale, offset, less - offset)


# ---- in the artifact ------------------------------------------------------------------------------------------------

_OPERATIONS: tuple[tuple[type[Atom], str], ...] = ((FloorDiv, "floordiv"), (Mod, "mod"), (Max, "max"), (Min, "min"))


def steps_of(e: Expr, symbols: Sequence[str]) -> list[Step]:
    """A size in reverse Polish notation; a symbol is its number in `symbols`."""
    steps: list[Step] = []
    for number, (coefficient, monomial) in enumerate(e.terms):
        factors = [_steps_of_atom(atom, symbols) for atom, power in monomial for _ in range(power)]
        if coefficient != 1 or not factors:
            factors.insert(0, [("number", coefficient)])
        for place, factor in enumerate(factors):
            steps += [*factor, *([("multiply",)] if place else [])]
        steps += [("add",)] if number else []
    return steps or [("number", 0)]


def _steps_of_atom(atom: Atom, symbols: Sequence[str]) -> list[Step]:
    if isinstance(atom, Symbol):
        if atom.name.startswith("#"):
            argument, dim = map(int, atom.name[1:].split("."))
            return [("size", argument, dim)]
        return [("symbol", symbols.index(atom.name))]
    name = next(name for kind, name in _OPERATIONS if isinstance(atom, kind))
    steps = steps_of(atom.operands[0], symbols)
    for operand in atom.operands[1:]:
        steps += [*steps_of(operand, symbols), (name,)]
    return steps
