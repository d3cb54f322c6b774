# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Costs of the parts of an expression, which say how unlikely programs are to compute them."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from math import log2

from .terms import Term


class Costs:
    """Costs of terms, of their factors and of what is added to them.

    near: constants of the op at hand, which cost least.
    """

    def __init__(self, constants: AbstractSet[int]):
        """constants: what the program has as strides and sizes."""
        self.constants = constants
        self.divisors_found: set[int] = set()
        """Divisors of other numbers of the program, as far as nothing simpler gives those."""

    def term(self, term: Term, near: tuple[int, ...]) -> float:
        """A term with that of its divisor."""
        if term.divisor == 1:
            return term.cost
        if term.divisor in near:
            return term.cost + 1.0
        if term.divisor in self.divisors_found:
            return term.cost + 1.7
        least = 1.5 + 0.7 * log2(term.divisor)
        return term.cost + (min(least, 1.8 + 0.1 * log2(term.divisor)) if term.divisor in self.constants else least)

    def factor(self, factor: int, term: Term) -> float:
        """A factor of a term."""
        if factor == 1:
            return 0
        if factor == term.divisor and not term.is_remainder:
            return 0.3
        if factor == -1:
            return 0.7 if term.is_remainder else 1.5
        usual = 1.2 if abs(factor) in self.constants else 1.5 + log2(abs(factor))
        return usual + (factor < 0)

    def offset(self, offset: int, near: tuple[int, ...]) -> float:
        """The cost of a number added to a term."""
        if abs(offset) <= 2:
            return (0, 0.5, 1.0)[abs(offset)]
        is_stepped = 0.5 if self.divisors_found else 0
        if abs(offset) in near or abs(offset) in self.constants:
            return 1.6 + is_stepped
        return 1 + log2(abs(offset) + 1) + is_stepped


__all__ = ["Costs"]
