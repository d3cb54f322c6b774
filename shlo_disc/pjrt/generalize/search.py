# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The simplest expression that has given values, in the language of `jax.export`'s dimension expressions.

A bottom-up search as in program synthesis: terms are sizes that are known, their quotients and remainders by constants,
products and extrema of two; candidates are a*t + c, then sums of two terms, then extrema of such. What a candidate
costs says how unlikely programs are to compute it: a divisor that the op at hand has as a stride costs little, one that
the program has nowhere more, and so do large coefficients and offsets. Of those that fit all samples the cheapest is
taken. With two samples nearly everything fits something; a third one that does not fit refutes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import combinations, product
from math import gcd
from typing import Any, NamedTuple

from shlo_disc.shape_dialect.symbolic.expr import Expr, FloorDiv, Mod

from .costs import Costs
from .terms import PLAIN, Term, Values, direction, divided, larger_or_smaller, negated

_DIVISORS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 32, 64, 128)
"""Tried although the program has them nowhere."""
_LARGEST_DIVISOR = 1 << 12
_MOST_DIVISORS = 12  # of those that the program has
_MOST_PAIRED = 6  # sizes of which products, quotients and sums are tried
_MOST_SUMMED = 250  # terms of which sums are tried
_MOST_COMPARED = 60  # terms of which extrema are tried
_MOST_NEGATED = 30  # of these that are tried with the sign changed
_MOST_NEARBY = 6  # larger sizes at which expressions are compared
_FACTORS = (1, -1, 2, -2, 3, 4)
_FAR = 0.4  # what it costs more if it is none of the op at hand


class Found(NamedTuple):
    """An expression and what it costs."""

    cost: float
    expression: Expr


class Search:
    """Finds expressions. Terms of a size are made once."""

    def __init__(self, environments: Sequence[dict[str, int]], constants: Iterable[int]):
        """environments: the symbols' values in each sample. constants: what the program has as strides and sizes."""
        self._environments = environments
        self._costs = Costs(frozenset(constants))
        small = sorted(k for k in self._costs.constants if 1 < k <= _LARGEST_DIVISOR)[:_MOST_DIVISORS]
        self._divisors = tuple(dict.fromkeys((*small, *_DIVISORS)))
        self._values: dict[Expr, Values | None] = {}
        self._families: dict[tuple[Expr, tuple[int, ...]], dict[Values, list[Term]]] = {}
        self._known: dict[Any, Found | None] = {}

    def add_symbol(self, name: str, values: Values) -> None:
        """Let expressions have one more symbol."""
        for environment, value in zip(self._environments, values, strict=True):
            environment[name] = value

    def learn_divisors(self, values: Iterable[Values], bases: Sequence[Expr]) -> None:
        """The divisors of what is no line of a size count as the program's own: other sizes will have them, too.

        Of one quotient or remainder, that is: a sum of them fits many values by chance.
        """
        directions = {direction(known)[0] for base in bases if (known := self.values(base))}
        for one in values:
            if len(set(one)) > 1 and direction(one)[0] not in directions and (found := self.find(one, bases, ())):
                if len(found.expression.atoms()) == 1 and abs(found.expression.constant_term) <= 1:
                    self._costs.divisors_found |= _divisors_in(found.expression)
        self._known.clear()

    def values(self, expression: Expr) -> Values | None:
        """The value of an expression in each sample; None where that divides by zero."""
        if expression not in self._values:
            try:
                found: Values | None = tuple(expression.evaluate(e) for e in self._environments)
            except ZeroDivisionError:
                found = None
            self._values[expression] = found
        return self._values[expression]

    def fits(self, expression: Expr, values: Values) -> bool:
        """Tells whether an expression has these values."""
        return self.values(expression) == values

    def is_less(self, one: Expr, other: Expr) -> bool:
        """Tells whether an expression is less than another one at some sizes near the samples', and never more."""
        near = ({name: v + k for name, v in e.items()} for e in self._environments for k in range(1, _MOST_NEARBY + 1))
        try:
            differences = {one.evaluate(environment) - other.evaluate(environment) for environment in near}
        except ZeroDivisionError:
            return False
        return min(differences) < 0 and max(differences) <= 0

    def mirrored(self, values: Values, expression: Expr) -> Iterator[Expr]:
        """The expression, and a constant less it, as far as they have these values."""
        known = self.values(expression)
        if known == values:
            yield expression
        elif known is not None and len(total := {a + b for a, b in zip(known, values, strict=True)}) == 1:
            yield total.pop() - expression

    def find(
        self, values: Values, near: Sequence[Expr], others: Sequence[Expr], divisors: Iterable[int] = ()
    ) -> Found | None:
        """The cheapest expression of these values.

        near, others: sizes that it may be made of, those of the op at hand and the program's, the likelier ones first.
        divisors: constants of the op at hand.
        """
        handicaps: dict[Expr, float] = {}
        for first, bases in ((0.0, near), (_FAR if near else 0, others)):
            for rank, base in enumerate(bases):
                if base.constant is None:
                    handicaps.setdefault(base, first + 0.01 * rank)
        return self._remembered(values, tuple(handicaps.items()), divisors)

    def _remembered(
        self, values: Values, bases: tuple[tuple[Expr, float], ...], divisors: Iterable[int]
    ) -> Found | None:
        near = tuple(sorted({abs(k) for k in divisors if 1 < abs(k) <= _LARGEST_DIVISOR}))
        key = values, bases, near
        if key not in self._known:
            self._known[key] = self._search(values, bases, near)
        return self._known[key]

    def _search(self, values: Values, handicaps: Sequence[tuple[Expr, float]], near: tuple[int, ...]) -> Found | None:
        if len(set(values)) == 1:
            return Found(0, Expr.const(values[0]))
        near = tuple(dict.fromkeys((*near, *_small_factors(reduce(gcd, values)))))
        divisors = (self._divisors, *((k,) for k in near if k not in self._divisors))
        found = self._line(values, handicaps, near, divisors)
        bases = [base for base, _ in handicaps[:_MOST_PAIRED]]
        if found is None or found.cost > PLAIN + 1:
            pair = self._line(values, list(self._pairs(bases)), near, ((),))
            found = _cheaper(found, pair and Found(pair.cost + 1, pair.expression))
        return found or self._sum(values, bases, near) or self._extremum(values, bases, near)

    # a*t + c

    def _line(
        self,
        values: Values,
        bases: Sequence[tuple[Expr, float]],
        near: tuple[int, ...],
        divisors: Sequence[tuple[int, ...]],
    ) -> Found | None:
        """The cheapest of the terms of all bases, each with its additional cost, with all these divisors."""
        wanted, length = direction(values)
        best: tuple[float, Term, int] | None = None
        for (base, handicap), group in product(bases, divisors):
            for term in self._family(base, group).get(wanted, ()):
                if best and handicap + term.cost >= best[0]:
                    break
                factor, rest = divmod(length, direction(term.values)[1])
                if rest:
                    continue
                cost = handicap + self._costs.term(term, near) + self._costs.factor(factor, term)
                cost += self._costs.offset(values[0] - factor * term.values[0], near)
                if not best or cost < best[0]:
                    best = cost, term, factor
        if not best:
            return None
        cost, term, factor = best
        return Found(cost, factor * term.expression() + (values[0] - factor * term.values[0]))

    def _pairs(self, bases: Sequence[Expr]) -> Iterator[tuple[Expr, float]]:
        """Products and sums of two sizes, and, with what they cost more, the larger one, and quotients of two.

        A size that has not changed in three samples is no part of a sum: a number says as much.
        """
        for e in bases:
            yield e * e, 0
        for e, f in combinations(bases, 2):
            yield e * f, 0
            if len(self._environments) < 3 or (self._varies(e) and self._varies(f)):
                yield from ((e + f, 0.3), (e - f, 0.3))
        for e, f in combinations(bases, 2):
            yield from ((Expr.minimum(e, f), 1), (Expr.maximum(e, f), 1))
            yield from ((e // f, 2), (f // e, 2), (e % f, 2), (f % e, 2))

    def _varies(self, expression: Expr) -> bool:
        return len(set(self.values(expression) or ())) > 1

    # Terms

    def _family(self, base: Expr, divisors: tuple[int, ...]) -> dict[Values, list[Term]]:
        """A size, its quotients and its remainders, by the direction in which they vary; the cheapest first."""
        key = base, divisors
        if key not in self._families:
            found: dict[Values, list[Term]] = {}
            for term in sorted(self._terms(base, divisors), key=lambda term: term.cost):
                found.setdefault(direction(term.values)[0], []).append(term)
            self._families[key] = found
        return self._families[key]

    def _terms(self, base: Expr, divisors: tuple[int, ...]) -> list[Term]:
        values = self.values(base)
        if values is None:
            return []
        terms = [Term(values, PLAIN, lambda: base)]
        for divisor in dict.fromkeys(divisors):
            terms += divided(base, values, divisor)
        return [term for term in terms if len(set(term.values)) > 1]

    def _cheapest_terms(self, bases: Sequence[Expr], near: tuple[int, ...], count: int) -> list[Term]:
        groups = (self._divisors, *((k,) for k in near if k not in self._divisors))
        families = [self._family(base, group) for base in bases for group in groups]
        terms = [term for family in families for terms in family.values() for term in terms]
        return sorted(terms, key=lambda term: self._costs.term(term, near))[:count]

    # a*t + b*u + c

    def _sum(self, values: Values, bases: Sequence[Expr], near: tuple[int, ...]) -> Found | None:
        """With three samples or more, for two can be had by any sum."""
        if len(set(values)) < 2 or len(values) < 3:
            return None
        terms = self._cheapest_terms(bases, near, _MOST_SUMMED)
        by_direction: dict[Values, list[Term]] = {}
        for term in terms:
            by_direction.setdefault(direction(term.values)[0], []).append(term)
        best: Found | None = None
        for term in terms:
            cost = self._costs.term(term, near)
            if best and cost + PLAIN >= best.cost:
                break
            for factor in dict.fromkeys((*_FACTORS, *near, term.divisor)):
                rest = tuple(v - factor * t for v, t in zip(values, term.values, strict=True))
                limit = best.cost - cost - self._costs.factor(factor, term) if best else None
                if other := self._cheapest_line(rest, by_direction, near, limit):
                    total = cost + self._costs.factor(factor, term) + other.cost
                    best = Found(total, factor * term.expression() + other.expression)
        return best

    def _cheapest_line(
        self, values: Values, terms: dict[Values, list[Term]], near: tuple[int, ...], limit: float | None
    ) -> Found | None:
        wanted, length = direction(values)
        for term in terms.get(wanted, ()):
            factor, rest = divmod(length, direction(term.values)[1])
            if rest:
                continue
            offset = values[0] - factor * term.values[0]
            cost = self._costs.term(term, near) + self._costs.factor(factor, term) + self._costs.offset(offset, near)
            if limit is None or cost < limit:
                return Found(cost, factor * term.expression() + offset)
        return None

    # max(a + c, b + d) and min(a + c, b + d)

    def _extremum(self, values: Values, bases: Sequence[Expr], near: tuple[int, ...]) -> Found | None:
        if len(values) < 3:
            return None
        terms = self._cheapest_terms(bases, near, _MOST_COMPARED)
        terms += [negated(term) for term in terms[:_MOST_NEGATED]]
        zero = Term((0,) * len(values), 0, lambda: Expr.const(0))
        best: Found | None = None
        for a, b in combinations([zero, *terms], 2):
            cost = self._costs.term(a, near) + self._costs.term(b, near) + 1
            if best and cost >= best.cost:
                continue
            if (made := larger_or_smaller(values, a, b)) is not None:
                cost += sum(self._costs.offset(e.constant_term, near) for e in made.atoms()[0].operands)
                best = _cheaper(best, Found(cost, made))
        return best


def _cheaper(a: Found | None, b: Found | None) -> Found | None:
    return min((found for found in (a, b) if found), key=lambda found: found.cost, default=None)


def _divisors_in(expression: Expr) -> set[int]:
    """The constant divisors of an expression's quotients and remainders."""
    atoms = [atom for atom in expression.atoms() if isinstance(atom, FloorDiv | Mod)]
    inner = [_divisors_in(operand) for atom in atoms for operand in atom.operands]
    return {k for atom in atoms if (k := atom.divisor.constant)}.union(*inner)


def _small_factors(number: int) -> list[int]:
    """The divisors of a common factor of all values; the values may have been rounded to multiples of one."""
    return [k for k in (number, *_DIVISORS) if 1 < k <= _LARGEST_DIVISOR and number % k == 0]


__all__ = ["Found", "Search", "Values"]
