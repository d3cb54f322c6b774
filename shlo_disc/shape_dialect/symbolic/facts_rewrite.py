# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Known equalities as rewrite rules: solved symbols, and polynomials whose leading monomial is replaced by the rest.

The leading monomial is the largest in a weighted lexicographic order. The weight of an atom is its syntactic size, so
an operation is heavier than anything inside it; the order is preserved by multiplication, hence rewriting terminates.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from shlo_disc.shape_dialect.symbolic.expr import Atom, Expr, Symbol
from shlo_disc.shape_dialect.symbolic.monomials import Monomial, divide_monomials

_MAX_STEPS = 200


class Rule(NamedTuple):
    """`coefficient * lead == rest`, with a positive coefficient and every monomial of `rest` below `lead`."""

    lead: Monomial
    coefficient: int
    rest: Expr

    def polynomial(self) -> Expr:
        """The polynomial that is zero."""
        return Expr.from_terms([(self.coefficient, self.lead)]) - self.rest


def monomial_order(monomial: Monomial) -> tuple[Any, ...]:
    """Sort key of the rewriting order."""
    factors = sorted(monomial, key=lambda factor: factor[0].key, reverse=True)
    weight = sum(atom.size * power for atom, power in factors)
    return (weight, tuple(atom.key for atom, power in factors for _ in range(power)))


def orient(zero: Expr) -> Rule:
    """The rule for the non-constant polynomial `zero == 0`."""
    coefficient, lead = max((t for t in zero.terms if t[1]), key=lambda term: monomial_order(term[1]))
    head = Expr.from_terms([(coefficient, lead)])
    rest = head - zero
    return Rule(lead, coefficient, rest) if coefficient > 0 else Rule(lead, -coefficient, -rest)


class Rewriter:
    """The rules known so far. `solved` maps a symbol to an expression without solved symbols."""

    def __init__(self) -> None:
        self.solved: dict[str, Expr] = {}
        self.rules: dict[Monomial, Rule] = {}
        self._rules_of: dict[Atom, dict[Monomial, Rule]] = {}

    def copy(self) -> Rewriter:
        """An independent copy."""
        other = Rewriter()
        other.solved = dict(self.solved)
        other.rules = dict(self.rules)
        other._rules_of = {atom: dict(rules) for atom, rules in self._rules_of.items()}
        return other

    def solve(self, name: str, value: Expr) -> None:
        """Adds `name == value`, where `value` is canonical and free of `name`."""
        for other, image in self.solved.items():
            if name in image.symbols():
                self.solved[other] = self.canonical(image.substitute({name: value}))
        self.solved[name] = value

    def add(self, rule: Rule) -> None:
        """Adds a rule whose leading monomial no other rule has."""
        self.rules[rule.lead] = rule
        self._rules_of.setdefault(rule.lead[-1][0], {})[rule.lead] = rule

    def remove(self, lead: Monomial) -> Rule:
        """Removes and returns the rule for a leading monomial."""
        del self._rules_of[lead[-1][0]][lead]
        return self.rules.pop(lead)

    def take_rules_with(self, name: str) -> list[Rule]:
        """Removes and returns the polynomial rules that mention a symbol."""
        taken = [rule for rule in self.rules.values() if name in rule.polynomial().symbols()]
        for rule in taken:
            self.remove(rule.lead)
        return taken

    def canonical(self, e: Expr) -> Expr:
        """The normal form of `e` modulo the rules."""
        e = e.substitute(self.solved)
        return self._reduce(e) if self.rules else e

    def _reduce(self, e: Expr) -> Expr:
        e = e.map_atoms(self._reduce_operands)
        for _ in range(_MAX_STEPS):
            reduced = self._step(e)
            if reduced is e:
                break
            e = reduced.map_atoms(self._reduce_operands)
        return e

    def _reduce_operands(self, atom: Atom) -> Expr:
        if isinstance(atom, Symbol):
            return Expr.of_atom(atom)
        operands = tuple(self._reduce(operand) for operand in atom.operands)
        return Expr.of_atom(atom) if operands == atom.operands else atom.rebuild(operands)

    def _step(self, e: Expr) -> Expr:
        for coefficient, monomial in e.terms:
            for rule in self._rules_for(monomial):
                quotient = divide_monomials(monomial, rule.lead)
                if quotient is None or coefficient % rule.coefficient:
                    continue
                factor = Expr.from_terms([(coefficient // rule.coefficient, quotient)])
                return e - Expr.from_terms([(coefficient, monomial)]) + factor * rule.rest
        return e

    def _rules_for(self, monomial: Monomial) -> list[Rule]:
        return [rule for atom, _ in monomial for rule in self._rules_of.get(atom, {}).values()]
