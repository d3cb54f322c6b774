# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lower bounds by linear programming over monomials.

Every symbol is written as `low + stride * x` with x >= 0, every operation as its bound plus a nonnegative unknown, and
the products of those unknowns are the columns. Inequalities, the definitions of the operations, upper bounds and
products of inequalities with unknowns are the rows (the linearisation of Sherali and Adams 1990). Only rows that can
repair a negative coefficient are taken, so that a query costs what its own neighbourhood costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import floor, gcd, inf

from shlo_disc.shape_dialect.symbolic import facts_interval as interval
from shlo_disc.shape_dialect.symbolic.expr import ZERO, Atom, Expr, Max, Min, Mod, Symbol, content
from shlo_disc.shape_dialect.symbolic.facts_congruence import Congruence
from shlo_disc.shape_dialect.symbolic.facts_interval import Interval
from shlo_disc.shape_dialect.symbolic.facts_simplex import GaveUp, Infeasible, minimise
from shlo_disc.shape_dialect.symbolic.monomials import Monomial, divide_monomials

_MAX_ROWS = 24
_MAX_DEFINITIONS = 12
_MAX_DEGREE = 3

SymbolDomain = Callable[[str], tuple[Interval, Congruence]]


def tighten(row: Expr) -> Expr:
    """The strongest integer form of `row >= 0`: divided by its content, the constant rounded down."""
    common = content(term for term in row.terms if term[1])
    if common <= 1:
        return row
    return Expr.from_terms((c // common, m) for c, m in row.terms)


class Nonnegative:
    """Translates expressions into polynomials over unknowns that are at least 0. `upper` holds their other bounds."""

    def __init__(self, domain: SymbolDomain) -> None:
        self._domain = domain
        self._shifts: dict[str, Expr] = {}
        self.upper: dict[str, int | None] = {}
        self._operations: dict[Atom, Expr] = {}
        self._defined_by: dict[str, Atom] = {}
        self._definitions: dict[str, list[Expr]] = {}
        self._converted: dict[Expr, Expr] = {}
        self._intervals: dict[Expr, Interval] = {}

    def convert(self, e: Expr) -> Expr:
        """`e` over the unknowns."""
        known = self._converted.get(e)
        if known is None:
            shifts = {name: self._shift(name) for name in sorted(e.symbols())}
            known = self._converted[e] = self._flatten(e.substitute(shifts))
        return known

    def corner_bound(self, e: Expr) -> int | None:
        """The value at the corner where all unknowns are 0, when no unknown can lower it."""
        target = self.convert(e)
        return target.constant_term if all(c >= 0 for c, m in target.terms if m) else None

    def definitions(self, e: Expr) -> list[Expr]:
        """Rows that define the operations behind the unknowns of `e`, which is over unknowns."""
        rows: list[Expr] = []
        for atom in e.atoms():
            if isinstance(atom, Symbol) and atom.name in self._defined_by:
                if atom.name not in self._definitions:
                    self._definitions[atom.name] = self._define(self._defined_by[atom.name])
                rows.extend(self._definitions[atom.name])
        return rows

    def _unknown(self, name: str, low: int | None, high: int | None, stride: int) -> Expr:
        """`low + stride * x`, `high - stride * x` or, unbounded, the difference of two unknowns."""
        x = Expr.of_atom(Symbol(name))
        if low is not None:
            self.upper[name] = None if high is None else (high - low) // stride
            return low + stride * x
        self.upper[name] = None
        if high is not None:
            return high - stride * x
        self.upper[name + "-"] = None
        return x - Expr.of_atom(Symbol(name + "-"))

    def _shift(self, name: str) -> Expr:
        shift = self._shifts.get(name)
        if shift is None:
            (low, high), (modulus, residue) = self._domain(name)
            if low is None and high is None and modulus > 1:
                shift = residue + modulus * self._unknown(name, None, None, 1)
            else:
                shift = self._unknown(name, low, high, max(1, modulus))
            self._shifts[name] = shift
        return shift

    def _flatten(self, e: Expr) -> Expr:
        return e.map_atoms(self._flatten_atom)

    def _flatten_atom(self, atom: Atom) -> Expr:
        if isinstance(atom, Symbol):
            return Expr.of_atom(atom)
        known = self._operations.get(atom)
        if known is not None:
            return known
        if isinstance(atom, Mod):
            known = self._flatten(atom.dividend - atom.divisor * (atom.dividend // atom.divisor))
        else:
            low, high = self._interval_of_atom(atom)
            name = f"<{atom}>"
            known = self._unknown(name, low, high, 1)
            self._defined_by[name] = atom
            if low is None and high is None:
                self._defined_by[name + "-"] = atom
        self._operations[atom] = known
        return known

    def _interval_of_atom(self, atom: Atom) -> Interval:
        return interval.of_atom(atom, self._interval_of_unknown, self._interval)

    def _interval_of_unknown(self, name: str) -> Interval:
        return (0, self.upper[name])

    def _interval(self, e: Expr) -> Interval:
        known = self._intervals.get(e)
        if known is None:
            known = self._intervals[e] = interval.of_expr(e, self._interval_of_atom)
        return known

    def _define(self, atom: Atom) -> list[Expr]:
        value = Expr.of_atom(atom)
        if isinstance(atom, Max):
            rows = [value - e for e in atom.operands]
        elif isinstance(atom, Min):
            rows = [e - value for e in atom.operands]
        else:
            rows = self._define_floordiv(value, atom.operands[0], atom.operands[1])
        return [tighten(self._flatten(row)) for row in rows]

    def _define_floordiv(self, quotient: Expr, dividend: Expr, divisor: Expr) -> list[Expr]:
        low, high = self._interval(divisor)
        remainder = dividend - divisor * quotient
        if low is not None and low > 0:
            return [remainder, divisor - 1 - remainder]
        if high is not None and high < 0:
            return [-remainder, remainder - divisor - 1]
        return []


class Problem:
    """A minimisation over rows near one expression."""

    def __init__(self, world: Nonnegative, rows: Iterable[Expr]) -> None:
        """`rows` are expressions known to be at least 0."""
        self._world = world
        self._pool: list[Expr] = []
        self._columns: dict[Monomial, list[Expr]] = {}
        self._selected: dict[Expr, None] = {}
        self._needed: dict[Monomial, None] = {}
        for row in rows:
            self._add_to_pool(tighten(world.convert(row)))

    def lower_bound(self, e: Expr) -> int | float | None:
        """A lower bound of `e`; None when none was found, infinity when the rows contradict each other."""
        target = self._world.convert(e)
        if all(c >= 0 for c, m in target.terms if m) and not self._pool and not self._world.definitions(target):
            return target.constant_term
        self._define_operations(target)
        touched = {m for _, m in target.terms}
        for coefficient, monomial in target.terms:
            if monomial and coefficient < 0:
                self._needed[monomial] = None
        self._close(touched)
        repaired = {m for row in self._selected for c, m in row.terms if c < 0}
        if any(c < 0 and m not in repaired for c, m in target.terms if m):
            return None
        return self._minimise(target)

    def contradicts(self) -> bool:
        """Tells whether the rows have no common solution even over the rationals."""
        self._define_operations(ZERO)
        if all(row.constant_term >= 0 for row in self._pool):
            return False
        for row in self._pool:
            if row.constant_term < 0:
                self._select(row)
        self._close(set())
        return self._minimise(ZERO) == inf

    def _add_to_pool(self, row: Expr) -> None:
        if row.constant is not None and row.constant >= 0:
            return
        self._pool.append(row)
        for coefficient, monomial in row.terms:
            if coefficient < 0:
                self._columns.setdefault(monomial, []).append(row)

    def _define_operations(self, target: Expr) -> None:
        seen: set[Expr] = set()
        queue = [target, *self._pool]
        for e in queue:
            for row in self._world.definitions(e):
                if row not in seen and len(seen) < 2 * _MAX_DEFINITIONS:
                    seen.add(row)
                    self._add_to_pool(row)
                    queue.append(row)

    def _select(self, row: Expr) -> None:
        if row in self._selected or len(self._selected) >= _MAX_ROWS:
            return
        self._selected[row] = None
        for coefficient, monomial in row.terms:
            if monomial and coefficient > 0:
                self._needed.setdefault(monomial)

    def _close(self, touched: set[Monomial]) -> None:
        """Selects rows until every needed column has all rows that could raise its coefficient."""
        done = 0
        while True:
            needed = list(self._needed)
            for monomial in needed[done:]:
                if len(self._selected) >= _MAX_ROWS:
                    return
                self._repair(monomial)
            done = len(needed)
            before = len(self._selected)
            for row in self._pool:
                if row.constant_term < 0 and any(
                    c > 0 and (m in self._needed or m in touched) for c, m in row.terms if m
                ):
                    self._select(row)
            if len(self._needed) == done and len(self._selected) == before:
                return

    def _repair(self, monomial: Monomial) -> None:
        for row in self._columns.get(monomial, ()):
            self._select(row)
        degree = sum(power for _, power in monomial)
        for atom, _ in monomial:
            rest_monomial = divide_monomials(monomial, ((atom, 1),))
            rest = Expr.from_terms([(1, rest_monomial or ())])
            upper = self._world.upper.get(str(atom))
            if upper is not None:
                self._select(rest * (upper - Expr.of_atom(atom)))
            if 2 <= degree <= _MAX_DEGREE:
                for row in self._columns.get(((atom, 1),), ()):
                    self._select(rest * row)

    def _minimise(self, target: Expr) -> int | float | None:
        forms = [_linear_form(row) for row in self._selected]
        objective = _linear_form(target)
        try:
            value = minimise(objective, forms)
        except Infeasible:
            return inf
        except GaveUp:
            return None
        if value is None:
            return None
        # The target is its constant plus a multiple of the common divisor of its coefficients.
        step = gcd(*objective[1].values()) if objective[1] else 1
        return objective[0] - step * floor((objective[0] - value) / step)


def _linear_form(e: Expr) -> tuple[int, dict[Monomial, int]]:
    return e.constant_term, {m: c for c, m in e.terms if m}
