# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Monomials: products of powers of atoms, with factors in the order in which JAX prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shlo_disc.shape_dialect.symbolic.expr import Atom

Monomial = tuple[tuple["Atom", int], ...]
Term = tuple[int, Monomial]


def monomial_key(monomial: Monomial) -> tuple[Any, ...]:
    """Sort key of JAX's syntactic order: the size first, then the factors, largest first."""
    if not monomial:
        return (0, ())
    if len(monomial) == 1:  # most are
        ((atom, power),) = monomial
        return (1 + power * atom.key[0], ((atom.key, power),))
    factors = sorted(((atom.key, power) for atom, power in monomial), reverse=True)
    return (sum(1 + power * key[0] for key, power in factors), tuple(factors))


def multiply_monomials(left: Monomial, right: Monomial) -> Monomial:
    """The product, with factors in printing order."""
    if not left:
        return right
    if not right:
        return left
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda factor: factor[0].key))


def divide_monomials(dividend: Monomial, divisor: Monomial) -> Monomial | None:
    """The monomial `q` with `q * divisor == dividend` as polynomials, or None."""
    powers = dict(dividend)
    for atom, power in divisor:
        left = powers.get(atom, 0) - power
        if left < 0:
            return None
        powers[atom] = left
    return tuple((atom, power) for atom, power in powers.items() if power)
