# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The known facts in solved form: domains of symbols, rewrite rules, rows (`e >= 0`), congruences and disequalities.

Adding a fact tightens the domains it implies, by propagation to a fixpoint with a step limit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from shlo_disc.shape_dialect.symbolic import facts_congruence as congruence
from shlo_disc.shape_dialect.symbolic import facts_interval as interval
from shlo_disc.shape_dialect.symbolic.expr import Atom, Expr, FloorDiv, Max, Min, Mod, Symbol, content
from shlo_disc.shape_dialect.symbolic.facts_congruence import ANY, Congruence
from shlo_disc.shape_dialect.symbolic.facts_interval import Interval
from shlo_disc.shape_dialect.symbolic.facts_linear import tighten
from shlo_disc.shape_dialect.symbolic.facts_rewrite import Rewriter, orient
from shlo_disc.shape_dialect.symbolic.monomials import Term, divide_monomials

# A cycle such as x >= y + 1, y >= x - 3 with open ends could raise bounds for ever; a symbol moves this often per fact.
_MAX_MOVES = 12
# A cycle with products (a >= b*b, b >= 2*a) squares its bounds each time round; sizes beyond this help nobody.
_MAX_BOUND = 1 << 80


class Contradiction(Exception):
    """No assignment satisfies the facts."""


class Store:
    """The solved form. `order` numbers the declared symbols."""

    def __init__(self) -> None:
        self.order: dict[str, int] = {}
        self.rewriter = Rewriter()
        self.congruences: list[tuple[Expr, int]] = []
        self.nonzero: list[Expr] = []
        self._bounds: dict[str, Interval] = {}
        self._classes: dict[str, Congruence] = {}
        self._rows: dict[Expr, int] = {}
        self._rows_of: dict[str, dict[Expr, None]] = {}
        self._queue: deque[Expr] = deque()
        self._moves: dict[str, int] = {}

    def copy(self) -> Store:
        """An independent copy."""
        other = Store()
        other.order = dict(self.order)
        other.rewriter = self.rewriter.copy()
        other.congruences = list(self.congruences)
        other.nonzero = list(self.nonzero)
        other._bounds = dict(self._bounds)
        other._classes = dict(self._classes)
        other._rows = dict(self._rows)
        other._rows_of = {name: dict(rows) for name, rows in self._rows_of.items()}
        return other

    def domain(self, name: str) -> tuple[Interval, Congruence]:
        """Bounds and residue class of a symbol."""
        return self._bounds.get(name, interval.UNBOUNDED), self._classes.get(name, ANY)

    def bounds_of(self, name: str) -> Interval:
        """Bounds of a symbol."""
        return self._bounds.get(name, interval.UNBOUNDED)

    def class_of(self, name: str) -> Congruence:
        """Residue class of a symbol."""
        return self._classes.get(name, ANY)

    def interval_of_atom(self, atom: Atom) -> Interval:
        """Bounds of an atom by interval arithmetic."""
        if isinstance(atom, Symbol):
            return self.bounds_of(atom.name)
        return interval.of_atom(atom, self.bounds_of, self.interval_of)

    def interval_of(self, e: Expr) -> Interval:
        """Bounds of an expression by interval arithmetic."""
        return interval.of_expr(e, self.interval_of_atom)

    def congruence_of(self, e: Expr) -> Congruence:
        """Residue class of an expression."""
        return congruence.of_expr(e, self.class_of)

    def canonical(self, e: Expr) -> Expr:
        """The normal form modulo the known equalities."""
        return self.rewriter.canonical(e)

    def all_symbols(self, e: Expr) -> list[str]:
        """The symbols of `e` and of the expressions that its solved symbols stand for."""
        return sorted(e.symbols() | self.canonical(e).symbols())

    def is_nonzero(self, e: Expr) -> bool:
        """Tells whether a disequality says that the canonical `e` is not zero."""
        return any(e in (known, -known) for known in self.nonzero)

    def rows_with(self, name: str) -> Iterator[Expr]:
        """The expressions at least zero that mention a symbol."""
        for part in self._rows_of.get(name, ()):
            yield part + self._rows[part]

    def bound(self, name: str, bounds: Interval) -> None:
        """Intersects the bounds of a symbol."""
        if name in self.rewriter.solved:
            value = self.rewriter.solved[name]
            if bounds[0] is not None:
                self.add_row(value - bounds[0])
            if bounds[1] is not None:
                self.add_row(bounds[1] - value)
            return
        old = self.bounds_of(name)
        new = _round_inwards(interval.meet(old, bounds), self.class_of(name))
        if interval.is_empty(new):
            raise Contradiction
        if new == old:
            return
        self._bounds[name] = new
        self._touch(name)
        if new[0] is not None and new[0] == new[1]:
            self._eliminate(name, Expr.const(new[0]))

    def restrict(self, name: str, known: Congruence) -> None:
        """Intersects the residue class of a symbol."""
        if name in self.rewriter.solved:
            difference = self.rewriter.solved[name] - known[1]
            if known[0] == 0:
                self.add_zero(difference)
            else:
                self.add_congruence(difference, known[0])
            return
        old = self.class_of(name)
        new = congruence.meet(old, known)
        if new is None:
            raise Contradiction
        if new == old:
            return
        if new[0] == 0:
            self.bound(name, (new[1], new[1]))
            return
        self._classes[name] = new
        self._touch(name)
        self.bound(name, interval.UNBOUNDED)

    def add_row(self, e: Expr) -> None:
        """Adds `e >= 0` and what follows from it without the operations in it."""
        e = tighten(self.canonical(e))
        if e.constant is not None:
            if e.constant < 0:
                raise Contradiction
            return
        constant = e.constant_term
        part = e - constant
        if self._bound_symbol(part, constant) or self._rows.get(part, constant + 1) <= constant:
            return
        self._store_row(part, constant)
        opposite = self._rows.get(-part)
        if opposite is not None and opposite + constant <= 0:
            if opposite + constant < 0:
                raise Contradiction
            self.add_zero(e)
            return
        for weaker in _without_operations(e):
            self.add_row(weaker)

    def add_zero(self, e: Expr, sides: tuple[Expr, Expr] | None = None) -> None:
        """Adds `e == 0`; `sides` are the user's two sides, whose lone symbol is the one to replace."""
        e = self.canonical(e)
        if e.constant is not None:
            if e.constant:
                raise Contradiction
            return
        common = content(term for term in e.terms if term[1])
        if e.constant_term % common:
            raise Contradiction
        e = Expr(tuple((c // common, m) for c, m in e.terms))
        if not congruence.contains(self.congruence_of(e), 0):
            raise Contradiction
        if self._add_mod_zero(e):
            return
        if len(e.terms) == 1 and len(e.terms[0][1]) == 1 and e.terms[0][1][0][1] > 1:
            self.add_zero(Expr.of_atom(e.terms[0][1][0][0]))
            return
        name = self._solvable(e, sides)
        if name is not None:
            self._solve(e, name)
            return
        rule = orient(e)
        if rule.lead in self.rewriter.rules:
            old = self.rewriter.remove(rule.lead)
            if old.coefficient <= rule.coefficient:
                rule, old = old, rule
            self.rewriter.add(rule)
            self.add_zero(old.polynomial())
        else:
            self.rewriter.add(rule)
        self._store_rows_of_rule(rule.polynomial())

    def add_nonzero(self, e: Expr) -> None:
        """Adds `e != 0`."""
        e = self.canonical(e)
        if e.constant == 0:
            raise Contradiction
        if e.constant is None and not self.is_nonzero(e):
            self.nonzero.append(e)

    def add_congruence(self, e: Expr, modulus: int) -> None:
        """Adds that `modulus` divides `e`."""
        e = self.canonical(e)
        e = Expr.from_terms((c % modulus, m) for c, m in e.terms)
        if congruence.meet(self.congruence_of(e), congruence.normal(modulus, 0)) is None:
            raise Contradiction
        self._infer_classes(e, modulus)
        if self.congruence_of(e)[0] % modulus != 0 and e.constant is None:
            self.congruences.append((e, modulus))

    def propagate(self) -> None:
        """Tightens domains until nothing changes or the step limit is reached."""
        self._moves.clear()
        while True:
            while self._queue:
                part = self._queue.popleft()
                if part in self._rows:
                    self._tighten_from(part)
            if not self._use_nonzero():
                return

    def _touch(self, name: str) -> None:
        self._moves[name] = self._moves.get(name, 0) + 1
        if self._moves[name] <= _MAX_MOVES:
            self._queue.extend(self._rows_of.get(name, ()))

    def _store_row(self, part: Expr, constant: int) -> None:
        self._rows[part] = constant
        for name in part.symbols():
            self._rows_of.setdefault(name, {})[part] = None
        self._queue.append(part)

    def _store_rows_of_rule(self, zero: Expr) -> None:
        """A polynomial equality as two rows; they are stored raw because the rule rewrites them to nothing."""
        for e in (zero, -zero):
            constant = e.constant_term
            self._store_row(e - constant, constant)
            for weaker in _without_operations(e):
                self.add_row(weaker)
        for name in sorted(zero.symbols()):
            self._infer_class(zero, name)

    def _drop_rows_with(self, name: str) -> list[Expr]:
        dropped = list(self.rows_with(name))
        for part in list(self._rows_of.get(name, ())):
            del self._rows[part]
            for other in part.symbols():
                del self._rows_of[other][part]
        return dropped

    def _bound_symbol(self, part: Expr, constant: int) -> bool:
        """Uses `coefficient * symbol + constant >= 0` directly as a bound."""
        if len(part.terms) != 1:
            return False
        coefficient, monomial = part.terms[0]
        atom, power = monomial[0]
        if len(monomial) != 1 or power != 1 or not isinstance(atom, Symbol):
            return False
        limit = -(constant // abs(coefficient))
        self.bound(atom.name, (limit, None) if coefficient > 0 else (None, -limit))
        return True

    def _solvable(self, e: Expr, sides: tuple[Expr, Expr] | None) -> str | None:
        candidates = [name for name in _linear_symbols(e) if not self._occurs_elsewhere(e, name)]
        if not candidates:
            return None
        lone = [side.is_symbol for side in sides] if sides else []
        named = [name for name in lone if name in candidates]
        if len([name for name in lone if name]) == 1 and named:
            return named[0]
        return max(candidates, key=lambda name: (self.order.get(name, len(self.order)), name))

    def _occurs_elsewhere(self, e: Expr, name: str) -> bool:
        atom = Symbol(name)
        return any(m != ((atom, 1),) and any(name in a.symbols for a, _ in m) for _, m in e.terms)

    def _solve(self, e: Expr, name: str) -> None:
        coefficient = next(c for c, m in e.terms if m == ((Symbol(name), 1),))
        symbol = Expr.symbol(name)
        self._eliminate(name, symbol - e if coefficient == 1 else symbol + e)

    def _eliminate(self, name: str, value: Expr) -> None:
        """Replaces a symbol by an expression everywhere and hands its domain on to the expression."""
        bounds, known = self.domain(name)
        rules = self.rewriter.take_rules_with(name)
        rows = self._drop_rows_with(name)
        congruences = [fact for fact in self.congruences if name in fact[0].symbols()]
        self.congruences = [fact for fact in self.congruences if name not in fact[0].symbols()]
        nonzero, self.nonzero = self.nonzero, []
        self.rewriter.solve(name, value)
        for e in nonzero:
            self.add_nonzero(e)
        self.bound(name, bounds)
        if known != ANY:
            self.restrict(name, known)
        for rule in rules:
            self.add_zero(rule.polynomial())
        for row in rows:
            self.add_row(row)
        for e, modulus in congruences:
            self.add_congruence(e, modulus)

    def _add_mod_zero(self, e: Expr) -> bool:
        """Turns `mod(a, k) == r` into a congruence and into rules for both mod(a, k) and k*floordiv(a, k)."""
        coefficient, monomial = e.terms[0]
        atom = monomial[0][0]
        alone = len(monomial) == 1 and monomial[0][1] == 1 and all(not m for _, m in e.terms[1:])
        if not alone or not isinstance(atom, Mod):
            return False
        k = atom.divisor.constant
        residue = -e.constant_term * coefficient
        if k is None or k <= 0:
            if residue == 0:
                self._add_rule(Expr.of_atom(FloorDiv(*atom.operands)) * atom.divisor - atom.dividend)
            return False
        if not 0 <= residue < k:
            raise Contradiction
        self._add_rule(Expr.of_atom(atom) - residue)
        self._add_rule(Expr.of_atom(FloorDiv(*atom.operands)) * k - atom.dividend + residue)
        self.add_congruence(atom.dividend - residue, k)
        return True

    def _add_rule(self, zero: Expr) -> None:
        if zero.constant is not None:
            return
        rule = orient(zero)
        if rule.lead not in self.rewriter.rules:
            self.rewriter.add(rule)

    def _infer_classes(self, e: Expr, modulus: int) -> None:
        for name in _linear_symbols(e, any_coefficient=True):
            self._infer_class(e, name, modulus)

    def _infer_class(self, e: Expr, name: str, modulus: int = 0) -> None:
        """From `e == 0` (modulo `modulus`), linear in the symbol: the class of the rest gives that of the symbol."""
        if name in self.rewriter.solved:
            return
        coefficient = next((c for c, m in e.terms if m == ((Symbol(name), 1),)), 0)
        if not coefficient:
            return
        rest = e - coefficient * Expr.symbol(name)
        target = congruence.multiply((0, -1), congruence.add(self.congruence_of(rest), (modulus, 0)))
        solved = congruence.solve(coefficient, target)
        if solved is None:
            raise Contradiction
        self.restrict(name, solved)

    def _use_nonzero(self) -> bool:
        """Moves bounds away from excluded end points; whether there is new work."""
        for e in list(self.nonzero):
            low, high = self.interval_of(e)
            if low == 0:
                self.nonzero.remove(e)
                self.add_row(e - 1)
            elif high == 0:
                self.nonzero.remove(e)
                self.add_row(-e - 1)
        return bool(self._queue)

    def _tighten_from(self, part: Expr) -> None:
        e = part + self._rows[part]
        for name in sorted(part.symbols()):
            if name not in self.rewriter.solved and part in self._rows:
                limits = self._solve_for(e, name)
                if limits != interval.UNBOUNDED and all(x is None or abs(x) < _MAX_BOUND for x in limits):
                    self.bound(name, limits)

    def _solve_for(self, e: Expr, name: str) -> Interval:
        """Bounds of a symbol from `e >= 0` read as `x*p + q >= 0`."""
        atom = Symbol(name)
        product: list[Term] = []
        rest: list[Term] = []
        for coefficient, monomial in e.terms:
            quotient = divide_monomials(monomial, ((atom, 1),)) if monomial else None
            if quotient is None:
                rest.append((coefficient, monomial))
            else:
                product.append((coefficient, quotient))
        if not product:
            return interval.UNBOUNDED
        top = self.interval_of(Expr.from_terms(rest))[1]
        if top is None:
            return interval.UNBOUNDED
        low, high = self.interval_of(Expr.from_terms(product))
        if low is not None and low > 0:
            return (_least_factor(-top, low, high), None)
        if high is not None and high < 0:
            least = _least_factor(-top, -high, None if low is None else -low)
            return (None, -least)
        return interval.UNBOUNDED


def _least_factor(product: int, low: int, high: int | None) -> int:
    """The least x with `x * p >= product` for some p in [low, high], low >= 1."""
    if product <= 0:
        return -(-product // low)
    return 1 if high is None else -(-product // high)


def _round_inwards(bounds: Interval, known: Congruence) -> Interval:
    modulus, residue = known
    low, high = bounds
    if modulus > 1:
        low = None if low is None else low + (residue - low) % modulus
        high = None if high is None else high - (high - residue) % modulus
    return (low, high)


def _linear_symbols(e: Expr, any_coefficient: bool = False) -> list[str]:
    return [
        m[0][0].name
        for c, m in e.terms
        if len(m) == 1 and m[0][1] == 1 and isinstance(m[0][0], Symbol) and (any_coefficient or abs(c) == 1)
    ]


def _without_operations(e: Expr) -> Iterator[Expr]:
    """Consequences of `e >= 0` with one operation, standing alone in a term, replaced by what bounds it."""
    for coefficient, monomial in e.terms:
        if len(monomial) != 1 or monomial[0][1] != 1 or isinstance(monomial[0][0], Symbol):
            continue
        atom = monomial[0][0]
        rest = e - Expr(((coefficient, monomial),))
        if (isinstance(atom, Max) and coefficient < 0) or (isinstance(atom, Min) and coefficient > 0):
            for operand in atom.operands:
                yield rest + coefficient * operand
            return
        k = atom.operands[1].constant if isinstance(atom, (FloorDiv, Mod)) else None
        if k is None or k <= 0:
            continue
        if isinstance(atom, Mod):
            yield rest + max(0, coefficient) * (k - 1)
        else:
            dividend = atom.operands[0] if coefficient > 0 else atom.operands[0] - (k - 1)
            yield k * rest + coefficient * dividend
        return
