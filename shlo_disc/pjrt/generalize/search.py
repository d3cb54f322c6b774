# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The simplest expression that has given values, in the language of `jax.export`'s dimension expressions.

A bottom-up search as in program synthesis: terms are sizes that are known, their quotients and remainders by constants,
products and extrema of two; candidates are a*t + c, then sums of two terms, then extrema of such. What a candidate
costs says how unlikely programs are to compute it: a divisor that the op at hand has as a stride costs little, one that
the program has nowhere more, and so do large coefficients and offsets. Of those that fit all samples the cheapest is
taken. With two samples nearly everything fits something; a third one that does not fit refutes it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
from itertools import combinations, product
from math import gcd, log2
from typing import Any, NamedTuple

from shlo_disc.shape_dialect.symbolic.expr import Expr, FloorDiv, Max, Min, Mod

Values = tuple[int, ...]

_DIVISORS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 32, 64, 128)
"""Tried although the program has them nowhere."""
_LARGEST_DIVISOR = 1 << 12
_MOST_DIVISORS = 12  # of those that the program has
_MOST_OFFSETS = 16  # a divisor for which all offsets are tried
_MOST_MULTIPLES = 3  # of a size that are divided
_MOST_PAIRED = 6  # sizes of which products, quotients and sums are tried
_MOST_SUMMED = 250  # terms of which sums are tried
_MOST_COMPARED = 60  # terms of which extrema are tried
_MOST_NEARBY = 6  # larger sizes at which expressions are compared
_FACTORS = (1, -1, 2, -2, 3, 4)
_PLAIN = 1.0  # what a size that is known costs
_FAR = 0.4  # what it costs more if it is none of the op at hand


class Term(NamedTuple):
    """Something that varies over the samples. cost: without that of the divisor of a quotient or remainder."""

    values: Values
    cost: float
    expression: Callable[[], Expr]
    divisor: int = 1
    is_remainder: bool = False


class Found(NamedTuple):
    """An expression and what it costs."""

    cost: float
    expression: Expr


class Search:
    """Finds expressions. Terms of a size are made once."""

    def __init__(self, environments: Sequence[dict[str, int]], constants: Iterable[int]):
        """environments: the symbols' values in each sample. constants: what the program has as strides and sizes."""
        self._environments = environments
        self._constants = frozenset(constants)
        small = sorted(k for k in self._constants if 1 < k <= _LARGEST_DIVISOR)[:_MOST_DIVISORS]
        self._divisors = tuple(dict.fromkeys((*small, *_DIVISORS)))
        self._values: dict[Expr, Values | None] = {}
        self._families: dict[tuple[Expr, tuple[int, ...]], dict[Values, list[Term]]] = {}
        self._known: dict[Any, Found | None] = {}
        self._divisors_found: set[int] = set()

    def add_symbol(self, name: str, values: Values) -> None:
        """Let expressions have one more symbol."""
        for environment, value in zip(self._environments, values, strict=True):
            environment[name] = value

    def learn_divisors(self, values: Iterable[Values], bases: Sequence[Expr]) -> None:
        """The divisors of what is no line of a size count as the program's own: other sizes will have them, too.

        Of one quotient or remainder, that is: a sum of them fits many values by chance.
        """
        directions = {_direction(known)[0] for base in bases if (known := self.values(base))}
        for one in values:
            if len(set(one)) > 1 and _direction(one)[0] not in directions and (found := self.find(one, bases, ())):
                if len(found.expression.atoms()) == 1 and abs(found.expression.constant_term) <= 1:
                    self._divisors_found |= _divisors_in(found.expression)
        self._known.clear()

    def values(self, expression: Expr) -> Values | None:
        """What an expression is in each sample; None where that divides by zero."""
        if expression not in self._values:
            try:
                found: Values | None = tuple(expression.evaluate(e) for e in self._environments)
            except ZeroDivisionError:
                found = None
            self._values[expression] = found
        return self._values[expression]

    def fits(self, expression: Expr, values: Values) -> bool:
        """Whether an expression has these values."""
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
        if found is None or found.cost > _PLAIN + 1:
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
        """Of the terms of all bases, each with what it costs in addition, with all these divisors the cheapest."""
        direction, length = _direction(values)
        best: tuple[float, Term, int] | None = None
        for (base, handicap), group in product(bases, divisors):
            for term in self._family(base, group).get(direction, ()):
                if best and handicap + term.cost >= best[0]:
                    break
                factor, rest = divmod(length, _direction(term.values)[1])
                if rest:
                    continue
                cost = handicap + self._cost(term, near) + self._factor_cost(factor, term)
                cost += self._offset_cost(values[0] - factor * term.values[0], near)
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

    def _cost(self, term: Term, near: tuple[int, ...]) -> float:
        if term.divisor == 1:
            return term.cost
        if term.divisor in near:
            return term.cost + 1.0
        if term.divisor in self._divisors_found:
            return term.cost + 1.7
        least = 1.5 + 0.7 * log2(term.divisor)
        return term.cost + (min(least, 1.8 + 0.1 * log2(term.divisor)) if term.divisor in self._constants else least)

    def _factor_cost(self, factor: int, term: Term) -> float:
        if factor == 1:
            return 0
        if factor == term.divisor and not term.is_remainder:
            return 0.3
        if factor == -1:
            return 0.7 if term.is_remainder else 1.5
        usual = 1.2 if abs(factor) in self._constants else 1.5 + log2(abs(factor))
        return usual + (factor < 0)

    def _offset_cost(self, offset: int, near: tuple[int, ...]) -> float:
        if abs(offset) <= 2:
            return (0, 0.5, 1.0)[abs(offset)]
        is_stepped = 0.5 if self._divisors_found else 0
        if abs(offset) in near or abs(offset) in self._constants:
            return 1.6 + is_stepped
        return 1 + log2(abs(offset) + 1) + is_stepped

    # Terms

    def _family(self, base: Expr, divisors: tuple[int, ...]) -> dict[Values, list[Term]]:
        """A size, its quotients and its remainders, by the direction in which they vary; the cheapest first."""
        key = base, divisors
        if key not in self._families:
            found: dict[Values, list[Term]] = {}
            for term in sorted(self._terms(base, divisors), key=lambda term: term.cost):
                found.setdefault(_direction(term.values)[0], []).append(term)
            self._families[key] = found
        return self._families[key]

    def _terms(self, base: Expr, divisors: tuple[int, ...]) -> list[Term]:
        values = self.values(base)
        if values is None:
            return []
        terms = [Term(values, _PLAIN, lambda: base)]
        for divisor in dict.fromkeys(divisors):
            terms += _divided(base, values, divisor)
        return [term for term in terms if len(set(term.values)) > 1]

    def _cheapest_terms(self, bases: Sequence[Expr], near: tuple[int, ...], count: int) -> list[Term]:
        groups = (self._divisors, *((k,) for k in near if k not in self._divisors))
        families = [self._family(base, group) for base in bases for group in groups]
        terms = [term for family in families for terms in family.values() for term in terms]
        return sorted(terms, key=lambda term: self._cost(term, near))[:count]

    # a*t + b*u + c

    def _sum(self, values: Values, bases: Sequence[Expr], near: tuple[int, ...]) -> Found | None:
        """With three samples or more, for two can be had by any sum."""
        if len(set(values)) < 2 or len(values) < 3:
            return None
        terms = self._cheapest_terms(bases, near, _MOST_SUMMED)
        by_direction: dict[Values, list[Term]] = {}
        for term in terms:
            by_direction.setdefault(_direction(term.values)[0], []).append(term)
        best: Found | None = None
        for term in terms:
            cost = self._cost(term, near)
            if best and cost + _PLAIN >= best.cost:
                break
            for factor in dict.fromkeys((*_FACTORS, *near, term.divisor)):
                rest = tuple(v - factor * t for v, t in zip(values, term.values, strict=True))
                limit = best.cost - cost - self._factor_cost(factor, term) if best else None
                if other := self._cheapest_line(rest, by_direction, near, limit):
                    total = cost + self._factor_cost(factor, term) + other.cost
                    best = Found(total, factor * term.expression() + other.expression)
        return best

    def _cheapest_line(
        self, values: Values, terms: dict[Values, list[Term]], near: tuple[int, ...], limit: float | None
    ) -> Found | None:
        direction, length = _direction(values)
        for term in terms.get(direction, ()):
            factor, rest = divmod(length, _direction(term.values)[1])
            if rest:
                continue
            offset = values[0] - factor * term.values[0]
            cost = self._cost(term, near) + self._factor_cost(factor, term) + self._offset_cost(offset, near)
            if limit is None or cost < limit:
                return Found(cost, factor * term.expression() + offset)
        return None

    # max(a + c, b + d) and min(a + c, b + d)

    def _extremum(self, values: Values, bases: Sequence[Expr], near: tuple[int, ...]) -> Found | None:
        if len(values) < 3:
            return None
        terms = self._cheapest_terms(bases, near, _MOST_COMPARED)
        terms += [
            Term(tuple(-v for v in t.values), t.cost + 1, partial(_negated, t.expression), t.divisor)
            for t in terms[:30]
        ]
        zero = Term((0,) * len(values), 0, lambda: Expr.const(0))
        best: Found | None = None
        for a, b in combinations([zero, *terms], 2):
            cost = self._cost(a, near) + self._cost(b, near) + 1
            if best and cost >= best.cost:
                continue
            if (made := _larger_or_smaller(values, a, b)) is not None:
                cost += sum(self._offset_cost(e.constant_term, near) for e in made.atoms()[0].operands)
                best = _cheaper(best, Found(cost, made))
        return best


def _negated(expression: Callable[[], Expr]) -> Expr:
    return -expression()


def _cheaper(a: Found | None, b: Found | None) -> Found | None:
    return min((found for found in (a, b) if found), key=lambda found: found.cost, default=None)


def _divided(base: Expr, values: Values, k: int) -> Iterator[Term]:
    """Quotients and remainders of a*base + o by k, those with a = 1, and o = 0 or rounding up, the cheapest."""
    yield Term(tuple(-v % k for v in values), _PLAIN + 0.3, lambda: -base % k, k, True)
    for a in range(1, min(k, _MOST_MULTIPLES + 1)):
        if gcd(a, k) > 1:
            continue
        for o in range(k) if k <= _MOST_OFFSETS else (0, 1, k - 2, k - 1):
            is_rest = o == a == k - 1  # what is left when a k-th is taken
            cost = _PLAIN + 0.5 * (a > 1 and not is_rest)
            more = 0 if o == 0 else 0.15 if o == k - 1 else 1
            quotient = partial(operator.floordiv, a * base + o, k)
            yield Term(tuple((a * v + o) // k for v in values), cost + more, quotient, k)
            if a == 1:
                more = 1 if o else 0
                remainder = partial(operator.mod, base + o, k)
                yield Term(tuple((v + o) % k for v in values), cost + more, remainder, k, True)


def _larger_or_smaller(values: Values, a: Term, b: Term) -> Expr | None:
    """One of the two and an offset is the larger (smaller) in some samples, the other in the others."""
    above = [v - x for v, x in zip(values, a.values, strict=True)]
    beside = [v - x for v, x in zip(values, b.values, strict=True)]
    for choose, make, bound in ((max, Expr.maximum, min), (min, Expr.minimum, max)):
        c, d = bound(above), bound(beside)
        if all(v == choose(x + c, y + d) for v, x, y in zip(values, a.values, b.values, strict=True)):
            made = make(a.expression() + c, b.expression() + d)
            return made if isinstance(made.single_atom, Max | Min) else None
    return None


def _direction(values: Values) -> tuple[Values, int]:
    """The differences from the first value without what they have in common, and that."""
    differences = [v - values[0] for v in values]
    common = reduce(gcd, differences)
    if common == 0:
        return (), 1
    first = next(d for d in differences if d)
    common = common if first > 0 else -common
    return tuple(d // common for d in differences), common


def _divisors_in(expression: Expr) -> set[int]:
    """The constant divisors of an expression's quotients and remainders."""
    atoms = [atom for atom in expression.atoms() if isinstance(atom, FloorDiv | Mod)]
    inner = [_divisors_in(operand) for atom in atoms for operand in atom.operands]
    return {k for atom in atoms if (k := atom.divisor.constant)}.union(*inner)


def _small_factors(number: int) -> list[int]:
    """What all values are multiples of is perhaps what they were rounded to."""
    return [k for k in (number, *_DIVISORS) if 1 < k <= _LARGEST_DIVISOR and number % k == 0]


__all__ = ["Found", "Search", "Values"]
