# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fact engine: what is known about symbolic sizes, behind three questions: prove, range and divides.

Answers hold for every admissible assignment, that is one which satisfies all declarations and relations and for which
the asked expressions divide by no zero. The engine never guesses: what it cannot prove is `None`, `False` or an open
end.

Sizes that are read from data while the program runs are checked only then. What is known of them therefore never
answers a question about other sizes, for whose buffers it would come too late.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.compile_state import Listener, compiling_with, current_compile
from shlo_disc.shape_dialect.symbolic import facts_congruence as congruence
from shlo_disc.shape_dialect.symbolic import facts_interval as interval
from shlo_disc.shape_dialect.symbolic.expr import Atom, Expr, ExprLike, as_expr
from shlo_disc.shape_dialect.symbolic.facts_bounds import BoundSearch
from shlo_disc.shape_dialect.symbolic.facts_congruence import Congruence
from shlo_disc.shape_dialect.symbolic.facts_interval import Interval
from shlo_disc.shape_dialect.symbolic.facts_relation import Relation
from shlo_disc.shape_dialect.symbolic.facts_residue import residue_of
from shlo_disc.shape_dialect.symbolic.facts_simplify import divide, simplify
from shlo_disc.shape_dialect.symbolic.facts_store import Contradiction, Store
from shlo_disc.shape_dialect.symbolic.facts_witness import value_at
from shlo_disc.shape_dialect.symbolic.limits import Limits

__all__ = ["Declaration", "Facts", "Relation", "listening"]

_DEFAULT_ESTIMATE = 128


# A relation, or a declaration as (name, bounds, divisor, residue).
Fact = Relation | tuple[str, Interval, int, int]


@dataclass(frozen=True)
class Declaration:
    """The facts known about one symbol: inclusive bounds, its residue class and likely values."""

    name: str
    min: int | None
    max: int | None
    divisor: int
    residue: int
    hints: tuple[int, ...]


class Facts:
    """Declarations of symbols and relations between them. A symbol that was not declared is any integer."""

    def __init__(self) -> None:
        self._store = Store()
        self._hints: dict[str, tuple[int, ...]] = {}
        self._history: list[Fact] = []
        self._search = BoundSearch(self._store)
        self._proofs: dict[tuple[str, Expr], bool | None] = {}
        self._simplified: dict[Expr, Expr] = {}
        self._atoms: dict[Atom, Expr] = {}
        self._residues: dict[tuple[Expr, int], int | None] = {}
        self._data: set[str] = set()
        self._parts: dict[frozenset[str], Facts] = {}
        self.limits = Limits({}, self.at_least)

    def declare(
        self,
        name: str,
        min: int | None = 0,
        max: int | None = None,
        divisor: int = 1,
        hints: Sequence[int] = (),
        data: bool = False,
        residue: int = 0,
    ) -> None:
        """Declares a symbol, or tightens its declaration. Raises ProgramError when no value is left.

        divisor, residue: the symbol's value is the residue modulo the divisor. data: it is read from data while the
        program runs.
        """
        Expr.symbol(name)
        if divisor < 1:
            raise ProgramError(f"the divisor of '{name}' must be positive, got {divisor}")
        declaration = (name, (min, max), divisor, residue)
        if data:
            self._data.add(name)
            self._parts.clear()
        self._tell(declaration, f"{name} in [{min}, {max}], {residue} modulo {divisor}", {name})
        self._hints[name] = tuple(hints) or self._hints.get(name, ())

    def limit(self, name: str, most: Expr) -> None:
        """States that a symbol, read from data in a loop or branch, is a count of at most `most`, known before.

        Raises ProgramError when the limit depends on the symbol.
        """
        outer = self.limits.largest(most)
        if name in outer.symbols():
            raise ProgramError(f"the limit of '{name}' depends on it")
        self.declare(name, data=True)
        self.limits = Limits({**self.limits.limits, name: most}, self.at_least)
        for bound in dict.fromkeys((most, outer)):
            self.add(Relation.le(Expr.symbol(name), bound))

    @property
    def symbols(self) -> dict[str, Declaration]:
        """The declared symbols in order, with what the relations have added to their declarations."""
        return {name: self._declaration(name) for name in self._store.order}

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The relations in the order they were added."""
        return tuple(fact for fact in self._history if isinstance(fact, Relation))

    @property
    def data_symbols(self) -> list[str]:
        """The symbols that are read from data, in the order of declaration."""
        return [name for name in self._store.order if name in self._data]

    def add(self, relation: Relation) -> None:
        """Adds a relation that holds. Raises ProgramError when it contradicts what is known."""
        self._tell(relation, str(relation), relation.symbols())

    def prove(self, relation: Relation) -> bool | None:
        """True: holds for every admissible assignment. False: for none. None: not known."""
        part = self._about(relation.symbols())
        if part is not self:
            return part.prove(relation)
        operator, e = relation.normal()
        e = self.canonical(e)
        key = (operator, e)
        if key not in self._proofs:
            self._proofs[key] = self._prove(operator, e)
        listener = current_compile().listener
        if listener is not None:
            listener.ask(relation, self._proofs[key])
        return self._proofs[key]

    def range(self, expr: ExprLike) -> Interval:
        """Inclusive bounds of the value; None where there is no known bound."""
        part = self._about(as_expr(expr).symbols())
        if part is not self:
            return part.range(expr)
        e = self.canonical(as_expr(expr))
        upper = self._lower_bound(-e)
        return (self._lower_bound(e), None if upper is None else -upper)

    def divides(self, k: ExprLike, expr: ExprLike) -> bool:
        """Tells whether the value is proved to be a multiple of `k` (an expression is tried as a polynomial factor)."""
        part = self._about(as_expr(expr).symbols() | as_expr(k).symbols())
        if part is not self:
            return part.divides(k, expr)
        k, e = as_expr(k), self.canonical(as_expr(expr))
        if k.constant is not None:
            if k.constant == 0:
                return self._prove_zero(e) is True
            return self.residue(e, abs(k.constant)) == 0
        return self.prove(Relation.eq(e % self.simplify(k), 0)) is True or not divide(e, self.canonical(k))[1].terms

    def residue(self, e: Expr, modulus: int) -> int | None:
        """The value modulo a positive integer where it is always the same, else None."""
        part = self._about(e.symbols())
        if part is not self:
            return part.residue(e, modulus)
        e = self.canonical(e)
        key = (e, modulus)
        if key not in self._residues:
            self._residues[key] = self._find_residue(e, modulus)
        return self._residues[key]

    def at_least(self, e: Expr, bound: int) -> bool:
        """Tells whether `e >= bound` is proved."""
        part = self._about(e.symbols())
        if part is not self:
            return part.at_least(e, bound)
        return self._search.at_least(self.canonical(e), bound)

    def are_seen_to_differ(self, a: Expr, b: Expr) -> bool:
        """Tells whether two sizes differ at one of some admissible values of the symbols. False proves nothing."""
        part = self._about(a.symbols() | b.symbols())
        if part is not self:
            return part.are_seen_to_differ(a, b)
        e = self.canonical(a - b)
        return any(least is not None and least < 0 for least in map(self._search.least_sample, (e, -e)))

    def equal(self, a: ExprLike, b: ExprLike) -> bool:
        """Tells whether two sizes are proved to be equal, however they are written."""
        return a == b or self.prove(Relation.eq(a, b)) is True

    def samples(self, names: Iterable[str], count: int) -> Iterator[dict[str, int]]:
        """Admissible values of symbols, up to `count`, the same ones in every process; none where none are found.

        Divisors may still be zero there: `value_at` leaves out where an expression is not defined.
        """
        wanted = sorted(names)
        part = self._about(wanted)
        values = {name: part._store.canonical(Expr.symbol(name)) for name in wanted}
        free = frozenset().union(*(value.symbols() for value in values.values()))
        for point in part._search.samples(free, count):
            sizes = {name: value_at(value, point) for name, value in values.items()}
            if None not in sizes.values():
                yield {name: size for name, size in sizes.items() if size is not None}

    def sampled_values(self, expr: ExprLike, count: int) -> Iterator[int]:
        """The values of an expression at up to `count` admissible values of its symbols at which it is defined."""
        e = as_expr(expr)
        for sizes in self.samples(e.symbols(), count):
            value = value_at(e, sizes)
            if value is not None:
                yield value

    def canonical(self, expr: ExprLike) -> Expr:
        """The normal form modulo the known equalities; equal results prove equal values."""
        e = as_expr(expr)
        return self._about(e.symbols())._store.canonical(e)

    def simplify(self, expr: ExprLike) -> Expr:
        """An equal expression with the operations removed that the facts decide."""
        e = as_expr(expr)
        part = self._about(e.symbols())
        if part is not self:
            return part.simplify(e)
        if e not in self._simplified:
            simpler = simplify(self, e, self._atoms)
            self._simplified[e] = self._simplified[simpler] = simpler
        return self._simplified[e]

    def hints(self, expr: ExprLike) -> tuple[int, ...]:
        """Likely values: one for each hint of the symbols, taken in step; empty when no symbol has a hint."""
        e = as_expr(expr)
        count = max((len(self._hints.get(name, ())) for name in e.symbols()), default=0)
        values = (self._value_at(e, i) for i in range(count))
        return tuple(dict.fromkeys(value for value in values if value is not None))

    def estimate(self, expr: ExprLike) -> int:
        """One likely value, from hints or ranges, for cost models."""
        e = as_expr(expr)
        value = self._value_at(e, 0)
        low, high = interval.of_expr(self.canonical(e), self._store.interval_of_atom)
        value = _DEFAULT_ESTIMATE if value is None else value
        value = value if low is None else max(low, value)
        return value if high is None else min(high, value)

    def copy(self) -> Facts:
        """An independent copy."""
        other = Facts()
        other._store = self._store.copy()
        other._search = BoundSearch(other._store)
        other._hints = dict(self._hints)
        other._history = list(self._history)
        other._data = set(self._data)
        other.limits = Limits(self.limits.limits, other.at_least)
        return other

    def _about(self, names: Iterable[str]) -> Facts:
        """The facts that a question about these symbols may use: no others on symbols that are read from data."""
        if not self._data:
            return self
        asked = frozenset(self._data.intersection(names))
        if len(asked) == len(self._data):
            return self
        if asked not in self._parts:
            part = Facts()
            for fact in self._history:
                if self._data.isdisjoint(_symbols_of(fact) - asked):
                    part._take_in(fact)
                    part._history.append(fact)
            part._hints = self._hints
            self._parts[asked] = part
        return self._parts[asked]

    def _tell(self, fact: Fact, text: str, symbols: Iterable[str]) -> None:
        """Takes in a fact; when it contradicts the others, they stay as they were and ProgramError is raised."""
        self._forget()
        try:
            self._take_in(fact)
        except Contradiction:
            self._store = Store()
            self._search = BoundSearch(self._store)
            for known in self._history:
                self._take_in(known)
            raise self._unsatisfiable(text, symbols) from None
        self._history.append(fact)
        for asked, part in self._parts.items():
            if self._data.isdisjoint(_symbols_of(fact) - asked):
                part._tell(fact, text, symbols)

    def _take_in(self, fact: Fact) -> None:
        if isinstance(fact, Relation):
            self._take_in_relation(fact)
            return
        name, bounds, divisor, residue = fact
        self._store.order.setdefault(name, len(self._store.order))
        self._store.bound(name, bounds)
        self._store.restrict(name, congruence.normal(divisor, residue))
        self._store.propagate()

    def _take_in_relation(self, relation: Relation) -> None:
        operator, e = relation.normal()
        if operator == "==":
            self._store.add_zero(e, (relation.lhs, relation.rhs))
        elif operator == ">=":
            self._store.add_row(e)
        else:
            self._store.add_nonzero(e)
        self._store.propagate()
        self._search.forget()
        self._sharpen_nonzero(relation.symbols())
        if self._search.contradicts(self.canonical(e)):
            raise Contradiction

    def _sharpen_nonzero(self, symbols: frozenset[str]) -> None:
        """A value that is not zero and at least zero is at least one."""
        for e in [e for e in self._store.nonzero if not symbols.isdisjoint(self._store.all_symbols(e))]:
            row = e if self._search.at_least(e, 0) else -e if self._search.at_least(-e, 0) else None
            if row is not None:
                self._store.add_row(row - 1)
                self._store.propagate()
                self._search.forget()

    def _forget(self) -> None:
        self._search.forget()
        self._proofs.clear()
        self._simplified.clear()
        self._atoms.clear()
        self._residues.clear()

    def _declaration(self, name: str) -> Declaration:
        value = self._store.canonical(Expr.symbol(name))
        low, high = self._store.interval_of(value)
        modulus, residue = self._store.congruence_of(value)
        if modulus == 0:
            modulus, residue = 1, 0
        return Declaration(name, low, high, modulus, residue, self._hints.get(name, ()))

    def _unsatisfiable(self, text: str, symbols: Iterable[str]) -> ProgramError:
        related = _related(self.relations, symbols)
        known = "".join(f"\n  {relation}" for relation in related)
        bounds = "".join(f"\n  {self._describe(n)}" for n in sorted(set(symbols)) if n in self._store.order)
        return ProgramError(f"unsatisfiable: {text}\ntogether with{known}{bounds}")

    def _describe(self, name: str) -> str:
        (low, high), (modulus, residue) = self._store.domain(name)
        rule = f", {name} mod {modulus} == {residue}" if modulus > 1 else ""
        return f"{name} in [{'-inf' if low is None else low}, {'inf' if high is None else high}]{rule}"

    def _lower_bound(self, e: Expr) -> int | None:
        bound = self._search.lower_bound(e)
        return bound if bound is None else _next_in_class(bound, self._store.congruence_of(e))

    def _prove(self, operator: str, e: Expr) -> bool | None:
        if operator == ">=":
            if self._search.at_least(e, 0):
                return True
            return False if self._search.at_least(-e, 1) else None
        equal = self._prove_zero(e)
        if operator == "==" or equal is None:
            return equal
        return not equal

    def _prove_zero(self, e: Expr) -> bool | None:
        if e.constant is not None:
            return e.constant == 0
        if self._store.is_nonzero(e) or not congruence.contains(self._store.congruence_of(e), 0):
            return False
        if self._search.at_least(e, 1) or self._search.at_least(-e, 1):
            return False
        if self._search.at_least(e, 0) and self._search.at_least(-e, 0):
            return True
        simpler = self.simplify(e)
        if simpler.constant is not None:
            return simpler.constant == 0
        return False if self._never_zero(e) else None

    def _never_zero(self, e: Expr) -> bool:
        """Tells whether a small modulus or the list of all values shows that `e` is not zero."""
        values = self._search.values(e)
        return (values is not None and 0 not in values) or any(
            self.residue(e, k) not in (None, 0) for k in (2, 3, 4, 8)
        )

    def _find_residue(self, e: Expr, modulus: int) -> int | None:
        residue = residue_of(self._store, e, modulus)
        if residue is None and (values := self._search.values(e)):
            residues = {value % modulus for value in values}
            residue = residues.pop() if len(residues) == 1 else None
        return residue

    def _value_at(self, e: Expr, index: int) -> int | None:
        env = {name: self._symbol_estimate(name, index) for name in self._store.all_symbols(e)}
        solved = self._store.rewriter.solved
        for name in sorted(set(solved) & set(env)):
            try:
                env[name] = solved[name].evaluate(env)
            except (ZeroDivisionError, KeyError):
                continue
        try:
            return e.evaluate(env)
        except ZeroDivisionError:
            return None

    def _symbol_estimate(self, name: str, index: int) -> int:
        (low, high), (modulus, residue) = self._store.domain(name)
        hints = self._hints.get(name, ())
        value = hints[min(index, len(hints) - 1)] if hints else _DEFAULT_ESTIMATE
        if not hints:
            value -= (value - residue) % max(1, modulus)
        value = value if high is None else min(high, value)
        return value if low is None else max(low, value)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Inside, `listener` hears what is asked to be proved in this thread, and the answers."""
    with compiling_with(replace(current_compile(), listener=listener)):
        yield


def _symbols_of(fact: Fact) -> frozenset[str]:
    return fact.symbols() if isinstance(fact, Relation) else frozenset((fact[0],))


def _next_in_class(bound: int, known: Congruence) -> int:
    modulus, residue = known
    return max(bound, residue) if modulus == 0 else bound + (residue - bound) % modulus


def _related(relations: Iterable[Relation], symbols: Iterable[str]) -> list[Relation]:
    """The relations connected to the symbols through shared symbols, nearest first, at most twenty."""
    reached = set(symbols)
    found: list[Relation] = []
    pending = list(relations)
    while len(found) < 20:
        near = [r for r in pending if not reached.isdisjoint(r.symbols())]
        if not near:
            break
        found.extend(near)
        pending = [r for r in pending if reached.isdisjoint(r.symbols())]
        reached.update(*(r.symbols() for r in near))
    return found[:20]
