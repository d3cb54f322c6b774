# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bounds of expressions whose limited symbols are counts: each is at least 0 and at most an expression of others.

Memory for what such a size measures is planned before the size is known, so its bytes need a bound in the symbols that
are known by then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shlo_disc.shape_dialect.symbolic.expr import Atom, Expr, FloorDiv, Max, Min, Mod, Symbol

ZERO = Expr.const(0)


class NoLimit(ValueError):
    """An expression has no bound that is known before its symbols are."""


class Limits:
    """The limits of symbols. at_least: tells whether an expression without limited symbols is proved to be so large."""

    def __init__(self, limits: Mapping[str, Expr], at_least: Callable[[Expr, int], bool]):
        self.limits = limits
        self.at_least = at_least

    def largest(self, e: Expr) -> Expr:
        """An upper bound of an expression, without limited symbols. Raises NoLimit."""
        return self._bound(e, upper=True)

    def magnitude(self, e: Expr) -> Expr:
        """An upper bound of the absolute value of an expression and of all sums and products that it is made of."""
        total = ZERO
        for coefficient, monomial in e.terms:
            term = Expr.const(abs(coefficient))
            for atom, power in monomial:
                term = term * self._magnitude_of(atom) ** power
            total = total + term
        return total

    def _is_free(self, symbols: frozenset[str]) -> bool:
        return symbols.isdisjoint(self.limits)

    def _bound(self, e: Expr, upper: bool) -> Expr:
        if self._is_free(e.symbols()):
            return e
        total = ZERO
        for coefficient, monomial in e.terms:
            factors = [(self._of_atom(atom, upper == (coefficient > 0)), power) for atom, power in monomial]
            is_limited = not all(self._is_free(atom.symbols) for atom, _ in monomial)
            if is_limited and (len(factors) > 1 or factors[0][1] > 1):
                self._check_natural(monomial, factors)
            term = Expr.const(coefficient)
            for factor, power in factors:
                term = term * factor**power
            total = total + term
        return total

    def _check_natural(self, monomial: tuple[tuple[Atom, int], ...], factors: list[tuple[Expr, int]]) -> None:
        """A product grows with its factors where none of them is negative."""
        for (atom, _), (factor, _) in zip(monomial, factors, strict=True):
            least = factor if self._is_free(atom.symbols) else self._of_atom(atom, upper=False)
            if not self.at_least(least, 0):
                raise NoLimit(f"{atom} may be negative")

    def _of_atom(self, atom: Atom, upper: bool) -> Expr:
        if self._is_free(atom.symbols):
            return Expr.of_atom(atom)
        if isinstance(atom, Symbol):
            return self.largest(self.limits[atom.name]) if upper else ZERO
        if isinstance(atom, Max | Min):
            extremum = Expr.maximum if isinstance(atom, Max) else Expr.minimum
            return extremum(*(self._bound(operand, upper) for operand in atom.operands))
        dividend, divisor = atom.operands
        if not self._is_free(divisor.symbols()) or not self.at_least(divisor, 1):
            raise NoLimit(f"{divisor} may be 0, by which {dividend} is divided")
        if isinstance(atom, Mod):
            return divisor - 1 if upper else ZERO
        return self._bound(dividend, upper) // divisor

    def _magnitude_of(self, atom: Atom) -> Expr:
        match atom:
            case Symbol() if atom.name in self.limits:
                return self.largest(self.limits[atom.name])
            case Symbol():
                symbol = Expr.of_atom(atom)
                return symbol if self.at_least(symbol, 0) else Expr.maximum(symbol, -symbol)
            case FloorDiv():
                return self.magnitude(atom.operands[0])
            case Mod():
                return self.magnitude(atom.operands[1])
        return Expr.maximum(*map(self.magnitude, atom.operands))


__all__ = ["Limits", "NoLimit"]
