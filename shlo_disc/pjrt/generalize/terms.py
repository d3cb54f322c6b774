# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Terms that expressions are made of: sizes, their quotients and remainders, the larger and the smaller one."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import partial, reduce
from math import gcd
from typing import NamedTuple

from shlo_disc.shape_dialect.symbolic.expr import Expr, Max, Min

Values = tuple[int, ...]

PLAIN = 1.0  # what a size that is known costs
_MOST_OFFSETS = 16  # a divisor for which all offsets are tried
_MOST_MULTIPLES = 3  # of a size that are divided


class Term(NamedTuple):
    """Something that varies over the samples. cost: without that of the divisor of a quotient or remainder."""

    values: Values
    cost: float
    expression: Callable[[], Expr]
    divisor: int = 1
    is_remainder: bool = False


def divided(base: Expr, values: Values, k: int) -> Iterator[Term]:
    """Quotients and remainders of a*base + o by k, those with a = 1, and o = 0 or rounding up, the cheapest."""
    yield Term(tuple(-v % k for v in values), PLAIN + 0.3, lambda: -base % k, k, True)
    for a in range(1, min(k, _MOST_MULTIPLES + 1)):
        if gcd(a, k) > 1:
            continue
        for o in range(k) if k <= _MOST_OFFSETS else (0, 1, k - 2, k - 1):
            is_rest = o == a == k - 1  # what is left when a k-th is taken
            cost = PLAIN + 0.5 * (a > 1 and not is_rest)
            more = 0 if o == 0 else 0.15 if o == k - 1 else 1
            quotient = partial(operator.floordiv, a * base + o, k)
            yield Term(tuple((a * v + o) // k for v in values), cost + more, quotient, k)
            if a == 1:
                more = 1 if o else 0
                remainder = partial(operator.mod, base + o, k)
                yield Term(tuple((v + o) % k for v in values), cost + more, remainder, k, True)


def negated(term: Term) -> Term:
    """A term with its sign changed."""
    return Term(tuple(-v for v in term.values), term.cost + 1, partial(_negated, term.expression), term.divisor)


def _negated(expression: Callable[[], Expr]) -> Expr:
    return -expression()


def larger_or_smaller(values: Values, a: Term, b: Term) -> Expr | None:
    """One of the two and an offset is the larger (smaller) in some samples, the other in the others."""
    above = [v - x for v, x in zip(values, a.values, strict=True)]
    beside = [v - x for v, x in zip(values, b.values, strict=True)]
    for choose, make, bound in ((max, Expr.maximum, min), (min, Expr.minimum, max)):
        c, d = bound(above), bound(beside)
        if all(v == choose(x + c, y + d) for v, x, y in zip(values, a.values, b.values, strict=True)):
            made = make(a.expression() + c, b.expression() + d)
            return made if isinstance(made.single_atom, Max | Min) else None
    return None


def direction(values: Values) -> tuple[Values, int]:
    """The differences from the first value without what they have in common, and that."""
    differences = [v - values[0] for v in values]
    common = reduce(gcd, differences)
    if common == 0:
        return (), 1
    first = next(d for d in differences if d)
    common = common if first > 0 else -common
    return tuple(d // common for d in differences), common


__all__ = ["PLAIN", "Term", "Values", "direction", "divided", "larger_or_smaller", "negated"]
