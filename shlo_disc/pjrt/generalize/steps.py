# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expressions as the steps that the native table of programs computes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from shlo_disc.shape_dialect.symbolic.expr import Atom, Expr, FloorDiv, Max, Min, Mod, Symbol

_CONSTANT, _SYMBOL, _ADD, _MULTIPLY, _FLOOR_DIVIDE, _MODULO, _MINIMUM, _MAXIMUM = range(8)
_OPERATIONS: dict[type[Atom], int] = {FloorDiv: _FLOOR_DIVIDE, Mod: _MODULO, Min: _MINIMUM, Max: _MAXIMUM}

Step = tuple[int, int, int]


class Steps:
    """Each step is a number, a symbol, or an operation on two earlier steps; none is there twice."""

    def __init__(self, symbols: Sequence[str]):
        self.rows: list[Step] = []
        self._symbols = {name: i for i, name in enumerate(symbols)}
        self._places: dict[Step, int] = {}
        self._expressions: dict[Expr, int] = {}

    def of(self, expression: Expr) -> int:
        """The step that gives an expression."""
        if expression not in self._expressions:
            terms = [self._term(coefficient, monomial) for coefficient, monomial in expression.terms]
            self._expressions[expression] = reduce(lambda a, b: self._step(_ADD, a, b), terms or [self._constant(0)])
        return self._expressions[expression]

    def _term(self, coefficient: int, monomial: Sequence[tuple[Atom, int]]) -> int:
        factors = [self._atom(atom) for atom, power in monomial for _ in range(power)]
        if coefficient != 1 or not factors:
            factors.append(self._constant(coefficient))
        return reduce(lambda a, b: self._step(_MULTIPLY, a, b), factors)

    def _atom(self, atom: Atom) -> int:
        if isinstance(atom, Symbol):
            return self._step(_SYMBOL, self._symbols[atom.name], 0)
        kind = _OPERATIONS[type(atom)]
        return reduce(lambda a, b: self._step(kind, a, b), [self.of(e) for e in atom.operands])

    def _constant(self, value: int) -> int:
        return self._step(_CONSTANT, value, 0)

    def _step(self, kind: int, a: int, b: int) -> int:
        row = (kind, a, b)
        if row not in self._places:
            self._places[row] = len(self.rows)
            self.rows.append(row)
        return self._places[row]


__all__ = ["Step", "Steps"]
