# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The search for a lower bound: intervals, then sample points, then linear programming, then cases for max and min."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import inf

from shlo_disc.shape_dialect.symbolic import facts_interval as interval
from shlo_disc.shape_dialect.symbolic.expr import Atom, Expr, Max, Min, Mod
from shlo_disc.shape_dialect.symbolic.facts_linear import Nonnegative, Problem
from shlo_disc.shape_dialect.symbolic.facts_store import Store
from shlo_disc.shape_dialect.symbolic.facts_witness import Witnesses, value_at
from shlo_disc.shape_dialect.symbolic.monomials import Monomial, divide_monomials

_MAX_NEIGHBOURS = 24
_MAX_SPLITS = 3
_MAX_POINTS = 64
_MAX_TERMS = 128
_MAX_PROBLEMS = 48

_FAR = 1 << 20
"""Distance below zero beyond which no bound of a value is looked for, where intervals give none."""

Bound = int | float | None


class BoundSearch:
    """Lower bounds of canonical expressions under the facts of a store; remembers them until `forget`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._bounds: dict[Expr, int | None] = {}
        self._quick: dict[Expr, int | None] = {}
        self._samples: dict[Expr, int | None] = {}
        self._values_of: dict[Expr, frozenset[int] | None] = {}
        self._witnesses = Witnesses(store)
        self._world = Nonnegative(store.domain)
        self._problems = 0

    def forget(self) -> None:
        """Drops what was derived, after the facts changed."""
        self._bounds.clear()
        self._quick.clear()
        self._samples.clear()
        self._values_of.clear()
        self._witnesses.forget()
        self._world = Nonnegative(self._store.domain)

    def at_least(self, e: Expr, bound: int) -> bool:
        """Tells whether `e >= bound` is proved."""
        low = self._quick_bound(e)
        if low is None or low < bound:
            sample = self.least_sample(e)
            if sample is not None and sample < bound:
                return False
            lows = (self._quick_bound(self._store.canonical(below)) for below in _below(e))
            if any(known is not None and known >= bound for known in lows):
                return True
            low = self._world.corner_bound(e) if _is_expandable(e) else None
        if low is None or low < bound:
            low = self.lower_bound(e)
        return low is not None and low >= bound

    def lower_bound(self, e: Expr) -> int | None:
        """The best lower bound found, or None."""
        if e not in self._bounds:
            self._problems = 0
            found = None if self._goes_far(e) else self._lower_bound(e, [], _MAX_SPLITS)
            self._bounds[e] = None if found is None or found == inf else int(found)
        return self._bounds[e]

    def contradicts(self, e: Expr) -> bool:
        """Tells whether the facts near `e` contradict each other."""
        return Problem(self._world, self._neighbours(e, [])).contradicts()

    def _goes_far(self, e: Expr) -> bool:
        if self._quick_bound(e) is not None:
            return False
        sample = self.least_sample(e)
        return sample is not None and sample < -_FAR

    def _quick_bound(self, e: Expr) -> int | None:
        if e not in self._quick:
            lows = (self._store.interval_of(form)[0] for form in (e, self._with_divisors(e)))
            self._quick[e] = max((low for low in lows if low is not None), default=None)
        return self._quick[e]

    def _with_divisors(self, e: Expr) -> Expr:
        """`e` with the divisor less 1 in place of each remainder that is subtracted: nowhere more than `e`."""
        result = e
        for coefficient, monomial in e.terms:
            if coefficient < 0 and len(monomial) == 1 and monomial[0][1] == 1 and isinstance(monomial[0][0], Mod):
                divisor = monomial[0][0].divisor
                if (self._store.interval_of(divisor)[0] or 0) >= 1:
                    result = result - Expr(((coefficient, monomial),)) + coefficient * (divisor - 1)
        return e if result is e else self._store.canonical(result)

    def least_sample(self, e: Expr) -> int | None:
        """The least value of `e` at some admissible values of the symbols; None where none are found."""
        if e not in self._samples:
            self._samples[e] = self._witnesses.least(e)
        return self._samples[e]

    def samples(self, symbols: frozenset[str], count: int) -> list[dict[str, int]]:
        """Up to `count` admissible values of these symbols, none of which is solved, and perhaps of others."""
        return self._witnesses.samples(symbols, count)

    def _lower_bound(self, e: Expr, assumed: list[Expr], splits: int) -> Bound:
        if e.constant is not None and not assumed:
            return e.constant
        best: Bound = self._quick_bound(e)
        if not assumed and best is not None and best == self.least_sample(e):
            return best
        factor = _common_factor(e)
        if factor:
            best = _larger(best, self._factored_bound(e, factor, assumed, splits))
        best = _larger(best, self._linear_bound(e, assumed))
        if best == inf:
            return inf
        if not assumed and best is not None and best == self.least_sample(e):
            return best
        atom = _first_extremum(e) if splits else None
        if atom is not None:
            best = _larger(best, self._split_bound(e, atom, assumed, splits - 1))
        return _larger(best, None if assumed else self._enumerated_bound(e))

    def _factored_bound(self, e: Expr, factor: Monomial, assumed: list[Expr], splits: int) -> Bound:
        """The bound from `e == factor * rest`, where each part has its own."""
        rest = Expr.from_terms((c, divide_monomials(m, factor) or ()) for c, m in e.terms)
        low = self._lower_bound(rest, assumed, splits)
        if low == inf:
            return inf
        rest_interval = (None if low is None else int(low), self._store.interval_of(rest)[1])
        return interval.multiply(self._store.interval_of(Expr(((1, factor),))), rest_interval)[0]

    def _linear_bound(self, e: Expr, assumed: list[Expr]) -> Bound:
        self._problems += 1
        if self._problems > _MAX_PROBLEMS or not _is_expandable(e):
            return None
        return Problem(self._world, self._neighbours(e, assumed)).lower_bound(e)

    def _split_bound(self, e: Expr, atom: Atom, assumed: list[Expr], splits: int) -> Bound:
        """The least bound over the cases of which operand a max or min is."""
        sign = 1 if isinstance(atom, Max) else -1
        worst: int | float = inf
        for chosen in atom.operands:
            case = self._store.canonical(_replace(e, atom, chosen))
            wins = [sign * (chosen - other) for other in atom.operands if other is not chosen]
            bound = self._lower_bound(case, assumed + wins, splits)
            if bound is None:
                return None
            worst = min(worst, bound)
        return worst

    def _neighbours(self, e: Expr, assumed: list[Expr]) -> list[Expr]:
        """The assumptions and the rows connected to them and to `e` through shared symbols, nearest first."""
        found = dict.fromkeys(filter(_is_expandable, assumed))
        queue = sorted(e.symbols().union(*(row.symbols() for row in assumed)))
        reached = set(queue)
        for name in queue:
            for row in self._store.rows_with(name):
                if len(found) >= _MAX_NEIGHBOURS + len(assumed):
                    return list(found)
                if _is_expandable(row):
                    found[row] = None
                for other in sorted(row.symbols() - reached):
                    reached.add(other)
                    queue.append(other)
        return list(found)

    def values(self, e: Expr) -> frozenset[int] | None:
        """All values of the canonical `e`, or a superset, when the domains are so small that they can be listed."""
        if e not in self._values_of:
            self._values_of[e] = self._enumerate(e)
        return self._values_of[e]

    def _enumerated_bound(self, e: Expr) -> int | None:
        return min(self.values(e) or (), default=None)

    def _enumerate(self, e: Expr) -> frozenset[int] | None:
        names = sorted(e.symbols())
        domains: list[range] = []
        points = 1
        for name in names:
            domain = self._values(name)
            if domain is None or points * len(domain) > _MAX_POINTS:
                return None
            points *= len(domain)
            domains.append(domain)
        rows = list({row: None for name in names for row in self._store.rows_with(name) if row.symbols() <= set(names)})
        found: set[int] = set()
        for values in product(*domains):
            env = dict(zip(names, values, strict=True))
            value = value_at(e, env)
            if value is not None and value not in found and self._admits(rows, env):
                found.add(value)
        return frozenset(found)

    def _admits(self, rows: list[Expr], env: dict[str, int]) -> bool:
        known = (value_at(row, env) for row in rows)
        excluded = (value_at(d, env) for d in self._store.nonzero if d.symbols() <= env.keys())
        return all(value is None or value >= 0 for value in known) and all(value != 0 for value in excluded)

    def _values(self, name: str) -> range | None:
        (low, high), (modulus, _) = self._store.domain(name)
        if low is None or high is None or interval.is_empty((low, high)):
            return None
        step = max(1, modulus)
        # A length beyond 2^63 would be an OverflowError of `len`.
        return None if (high - low) // step >= _MAX_POINTS else range(low, high + 1, step)


def _is_expandable(e: Expr) -> bool:
    """Tells whether writing each atom as a bound plus an unknown gives few enough terms, operands included."""
    return _expanded_terms(e) <= _MAX_TERMS


def _expanded_terms(e: Expr) -> int:
    count = sum(1 << min(20, sum(power for _, power in monomial)) for _, monomial in e.terms)
    for atom in e.atoms():
        if count > _MAX_TERMS:
            break
        count += sum(map(_expanded_terms, atom.operands))
    return count


def _common_factor(e: Expr) -> Monomial:
    """The monomial that divides all of two or more terms, or the empty one."""
    if len(e.terms) < 2 or not e.terms[-1][1]:
        return ()
    powers = dict(e.terms[0][1])
    for _, monomial in e.terms[1:]:
        other = dict(monomial)
        powers = {atom: min(power, other[atom]) for atom, power in powers.items() if atom in other}
    return tuple(powers.items())


def _larger(a: Bound, b: Bound) -> Bound:
    return b if a is None else a if b is None else max(a, b)


def _first_extremum(e: Expr) -> Atom | None:
    for atom in e.atoms():
        if isinstance(atom, (Max, Min)):
            return atom
        for operand in atom.operands:
            inner = _first_extremum(operand)
            if inner is not None:
                return inner
    return None


def _below(e: Expr) -> Iterator[Expr]:
    """Expressions that are nowhere more than `e`: an operand in place of a max that is added or a min subtracted."""
    for term in e.terms:
        coefficient, monomial = term
        if len(monomial) == 1 and monomial[0][1] == 1 and isinstance(monomial[0][0], Max if coefficient > 0 else Min):
            rest = e - Expr((term,))
            yield from (rest + coefficient * operand for operand in _leaves(monomial[0][0], type(monomial[0][0])))


def _leaves(atom: Atom, kind: type[Atom]) -> Iterator[Expr]:
    """The operands of a max or min; those of its operands where these are of the same kind."""
    for operand in atom.operands:
        inner = next(iter(operand.atoms()), None)
        if isinstance(inner, kind) and operand == Expr.of_atom(inner):
            yield from _leaves(inner, kind)
        else:
            yield operand


def _replace(e: Expr, old: Atom, new: Expr) -> Expr:
    def replace(atom: Atom) -> Expr:
        if atom == old:
            return new
        if not atom.operands:
            return Expr.of_atom(atom)
        return atom.rebuild(tuple(_replace(operand, old, new) for operand in atom.operands))

    return e.map_atoms(replace)
