# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Residue classes: what is known of a value is `value = residue (mod modulus)`; modulus 0 means exactly `residue`.

The abstract domain is that of arithmetical congruences (Granger 1989).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import gcd

from shlo_disc.shape_dialect.symbolic.expr import Atom, Expr, FloorDiv, Mod, Symbol

Congruence = tuple[int, int]
ANY: Congruence = (1, 0)


def normal(modulus: int, residue: int) -> Congruence:
    """The class with a nonnegative modulus and the residue in [0, modulus)."""
    modulus = abs(modulus)
    return (modulus, residue % modulus if modulus else residue)


def add(a: Congruence, b: Congruence) -> Congruence:
    """The class of sums."""
    return normal(gcd(a[0], b[0]), a[1] + b[1])


def multiply(a: Congruence, b: Congruence) -> Congruence:
    """The class of products."""
    return normal(gcd(gcd(a[0] * b[0], a[0] * b[1]), b[0] * a[1]), a[1] * b[1])


def join(a: Congruence, b: Congruence) -> Congruence:
    """The smallest class that holds both."""
    return normal(gcd(gcd(a[0], b[0]), a[1] - b[1]), a[1])


def meet(a: Congruence, b: Congruence) -> Congruence | None:
    """The intersection (Chinese remainder theorem), or None when it is empty."""
    if a[0] == 0 or b[0] == 0:
        exact, other = (a, b) if a[0] == 0 else (b, a)
        return exact if contains(other, exact[1]) else None
    common = gcd(a[0], b[0])
    if (b[1] - a[1]) % common:
        return None
    step = b[0] // common
    factor = (b[1] - a[1]) // common * pow(a[0] // common, -1, step) % step if step > 1 else 0
    return normal(a[0] * step, a[1] + a[0] * factor)


def contains(a: Congruence, value: int) -> bool:
    """Tells whether `value` is in the class."""
    return (value - a[1]) % a[0] == 0 if a[0] else value == a[1]


def solve(coefficient: int, target: Congruence) -> Congruence | None:
    """The class of x with `coefficient * x` in `target` for a nonzero coefficient, or None when there is none."""
    modulus, residue = target
    if modulus == 0:
        return (0, residue // coefficient) if residue % coefficient == 0 else None
    common = gcd(coefficient, modulus)
    if residue % common:
        return None
    reduced = modulus // common
    if reduced == 1:
        return ANY
    return normal(reduced, residue // common * pow(coefficient // common, -1, reduced))


def of_expr(e: Expr, of_symbol: Callable[[str], Congruence]) -> Congruence:
    """The class of a polynomial."""
    total: Congruence = (0, 0)
    for coefficient, monomial in e.terms:
        product: Congruence = (0, coefficient)
        for atom, power in monomial:
            factor = of_atom(atom, of_symbol)
            for _ in range(power):
                product = multiply(product, factor)
        total = add(total, product)
    return total


def of_atom(atom: Atom, of_symbol: Callable[[str], Congruence]) -> Congruence:
    """The class of one atom."""
    if isinstance(atom, Symbol):
        return of_symbol(atom.name)
    if isinstance(atom, (FloorDiv, Mod)):
        k = atom.divisor.constant
        if not k:
            return ANY
        modulus, residue = of_expr(atom.dividend, of_symbol)
        if isinstance(atom, FloorDiv):
            return normal(modulus // k, residue // k) if modulus % k == 0 else ANY
        return (0, residue % k) if modulus % k == 0 else normal(gcd(modulus, k), residue)
    return reduce(join, (of_expr(e, of_symbol) for e in atom.operands))
