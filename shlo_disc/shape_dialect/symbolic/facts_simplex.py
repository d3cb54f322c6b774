# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exact linear programming on small sparse systems: the dictionary form of Dantzig's simplex method on integers.

Each dictionary row `d * basic = constant + sum of coefficient * nonbasic` keeps an integer denominator d > 0, so that
no rounding can make an unsound answer. Bland's rule takes over after some pivots, which excludes cycling.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from math import gcd
from typing import Any

_GREEDY_PIVOTS = 40
_MAX_PIVOTS = 160
_MAX_WORK = 100_000
"""Coefficients that may be changed before an answer."""

LinearForm = tuple[int, Mapping[Any, int]]
"""A constant and the coefficients of hashable columns."""


class Infeasible(Exception):
    """The rows have no common nonnegative solution."""


class GaveUp(Exception):
    """A limit, of pivots or of work, was reached before an answer."""


def minimise(objective: LinearForm, rows: Sequence[LinearForm]) -> Fraction | None:
    """The minimum of `constant + sum of coefficient * y` over rational y >= 0 with every row >= 0.

    None when it is unbounded below. Raises Infeasible without a solution and GaveUp at a limit.
    """
    return _Dictionary(objective, rows).solve()


class _Row:
    """`denominator * variable = constant + sum of coefficients * nonbasic variables`."""

    __slots__ = ("denominator", "constant", "coefficients")

    def __init__(self, denominator: int, constant: int, coefficients: dict[int, int]) -> None:
        self.denominator = denominator
        self.constant = constant
        self.coefficients = coefficients

    def eliminate(self, entering: int, source: _Row) -> int:
        """Replaces the entering variable by its row; returns how many coefficients that takes."""
        factor = self.coefficients.pop(entering, 0)
        if not factor:
            return 0
        scale = source.denominator
        coefficients = {j: c * scale for j, c in self.coefficients.items()}
        for j, c in source.coefficients.items():
            value = coefficients.get(j, 0) + factor * c
            if value:
                coefficients[j] = value
            else:
                coefficients.pop(j, None)
        self.coefficients = coefficients
        self.constant = self.constant * scale + factor * source.constant
        self.denominator *= scale
        self._reduce()
        return len(coefficients)

    def _reduce(self) -> None:
        common = gcd(self.denominator, self.constant)
        for c in self.coefficients.values():
            if common == 1:
                return
            common = gcd(common, c)
        if common > 1:
            self.denominator //= common
            self.constant //= common
            self.coefficients = {j: c // common for j, c in self.coefficients.items()}


class _Dictionary:
    def __init__(self, objective: LinearForm, rows: Sequence[LinearForm]) -> None:
        columns: dict[Hashable, int] = {}
        for _, form in (objective, *rows):
            for column in form:
                columns.setdefault(column, len(columns) + 1)
        self.objective = _Row(1, objective[0], {columns[c]: v for c, v in objective[1].items() if v})
        first_slack = len(columns) + 1
        self.rows = {
            first_slack + i: _Row(1, constant, {columns[c]: v for c, v in form.items() if v})
            for i, (constant, form) in enumerate(rows)
        }
        self.pivots = 0
        self.work = 0

    def solve(self) -> Fraction | None:
        if any(row.constant < 0 for row in self.rows.values()):
            self._find_feasible()
        if not self._minimise(self.objective):
            return None
        return Fraction(self.objective.constant, self.objective.denominator)

    def _find_feasible(self) -> None:
        """Phase one: an artificial variable 0 lifts all rows, then goes back to zero."""
        for row in self.rows.values():
            row.coefficients[0] = 1
        goal = _Row(1, 0, {0: 1})
        leaving = min(self.rows, key=lambda i: (self.rows[i].constant, i))
        self._pivot(leaving, 0, [goal])
        self._minimise(goal)
        if goal.constant > 0:
            raise Infeasible
        if 0 in self.rows:
            self._drive_out()
        for row in (self.objective, *self.rows.values()):
            row.coefficients.pop(0, None)

    def _drive_out(self) -> None:
        candidates = self.rows[0].coefficients
        if candidates:
            self._pivot(0, min(candidates), [])
        else:
            del self.rows[0]

    def _minimise(self, goal: _Row) -> bool:
        """Pivots until no coefficient of `goal` is negative; False when it falls without bound."""
        while True:
            falling = [j for j, c in goal.coefficients.items() if c < 0]
            if not falling:
                return True
            if self.pivots < _GREEDY_PIVOTS:
                entering = min(falling, key=lambda j: (goal.coefficients[j], j))
            else:
                entering = min(falling)
            leaving = self._leaving(entering)
            if leaving is None:
                return False
            self._pivot(leaving, entering, [goal])

    def _leaving(self, entering: int) -> int | None:
        best: int | None = None
        best_constant, best_slope = 0, 1
        for i, row in self.rows.items():
            slope = -row.coefficients.get(entering, 0)
            if slope <= 0:
                continue
            order = row.constant * best_slope - best_constant * slope
            if best is None or order < 0 or (order == 0 and i < best):
                best, best_constant, best_slope = i, row.constant, slope
        return best

    def _pivot(self, leaving: int, entering: int, goals: list[_Row]) -> None:
        self.pivots += 1
        if self.pivots > _MAX_PIVOTS or self.work > _MAX_WORK:
            raise GaveUp
        row = self.rows.pop(leaving)
        slope = row.coefficients.pop(entering)
        sign = -1 if slope > 0 else 1
        coefficients = {j: sign * c for j, c in row.coefficients.items()}
        coefficients[leaving] = -sign * row.denominator
        source = _Row(abs(slope), sign * row.constant, coefficients)
        for other in (self.objective, *self.rows.values(), *(g for g in goals if g is not self.objective)):
            self.work += other.eliminate(entering, source)
        self.rows[entering] = source
