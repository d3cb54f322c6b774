# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Removes operations that the facts decide: floordiv and mod with a known quotient, max and min with a known winner."""

from __future__ import annotations

from typing import Protocol

from shlo_disc.shape_dialect.symbolic.expr import ZERO, Atom, Expr, FloorDiv, Max, Mod, Symbol
from shlo_disc.shape_dialect.symbolic.monomials import Term, divide_monomials


class Oracle(Protocol):
    """The interface that the rewrites use; `Facts` provides it."""

    def canonical(self, e: Expr) -> Expr: ...

    def at_least(self, e: Expr, bound: int) -> bool: ...

    def range(self, e: Expr) -> tuple[int | None, int | None]: ...

    def residue(self, e: Expr, modulus: int) -> int | None: ...


def simplify(facts: Oracle, e: Expr, atoms: dict[Atom, Expr]) -> Expr:
    """An expression equal to `e` wherever the facts hold and `e` is defined, with fewer operations.

    atoms: what atoms were simplified to under these facts; new ones are added.
    """
    e = facts.canonical(e)
    if all(isinstance(atom, Symbol) for _, monomial in e.terms for atom, _ in monomial):
        return e  # there are no operations
    for _ in range(4):
        simpler = _multiply_back(facts, facts.canonical(e.map_atoms(lambda atom: _simplify_atom(facts, atom, atoms))))
        if simpler == e:
            break
        e = simpler
    return e


def _simplify_atom(facts: Oracle, atom: Atom, atoms: dict[Atom, Expr]) -> Expr:
    if isinstance(atom, Symbol):
        return Expr.of_atom(atom)
    if atom not in atoms:
        operands = [simplify(facts, operand, atoms) for operand in atom.operands]
        atoms[atom] = _operation(facts, atom, operands)
    return atoms[atom]


def _operation(facts: Oracle, atom: Atom, operands: list[Expr]) -> Expr:
    """The operation of an atom on other operands."""
    if isinstance(atom, FloorDiv):
        return _floordiv(facts, operands[0], operands[1])
    if isinstance(atom, Mod):
        return _mod(facts, operands[0], operands[1])
    return _extremum(facts, isinstance(atom, Max), operands)


def _extremum(facts: Oracle, largest: bool, operands: list[Expr]) -> Expr:
    kept: list[Expr] = []
    for i, operand in enumerate(operands):
        rivals = kept + operands[i + 1 :]
        if not any(facts.at_least(r - operand if largest else operand - r, 0) for r in rivals):
            kept.append(operand)
    return (Expr.maximum if largest else Expr.minimum)(*kept)


def divide(dividend: Expr, divisor: Expr) -> tuple[Expr, Expr]:
    """(q, r) with dividend == q * divisor + r as polynomials; r keeps what the leading term does not divide."""
    if not divisor.terms:
        return ZERO, dividend
    lead_coefficient, lead = divisor.terms[0]
    quotient: list[Term] = []
    rest = dividend
    # Each step removes one term of the dividend; a divisor whose other terms are divisible too could go on for long.
    for _ in range(2 * len(dividend.terms) + 4):
        for coefficient, monomial in rest.terms:
            factor = divide_monomials(monomial, lead)
            if factor is not None and coefficient % lead_coefficient == 0:
                term = (coefficient // lead_coefficient, factor)
                quotient.append(term)
                rest = rest - Expr.from_terms([term]) * divisor
                break
        else:
            break
    return Expr.from_terms(quotient), rest


def _nonzero(facts: Oracle, e: Expr) -> bool:
    return facts.at_least(e, 1) or facts.at_least(-e, 1)


def _floordiv(facts: Oracle, a: Expr, b: Expr) -> Expr:
    if b.constant is not None:
        return _floordiv_constant(facts, a, b.constant) if b.constant > 0 else a // b
    if not _nonzero(facts, b):
        return a // b
    quotient, rest = divide(a, b)
    shift = _residue_shift(facts, rest, b)
    return quotient + rest // b if shift is None else quotient - shift


def _mod(facts: Oracle, a: Expr, b: Expr) -> Expr:
    if b.constant is not None:
        return _mod_constant(facts, a, b.constant) if b.constant > 0 else a % b
    if not _nonzero(facts, b):
        return a % b
    _, rest = divide(a, b)
    shift = _residue_shift(facts, rest, b)
    if shift is not None:
        return rest + shift * b
    if rest.constant is not None and rest.constant < 0 and facts.at_least(b, 1):
        return b - 1 - (-rest.constant - 1) % b
    return rest % b


def _residue_shift(facts: Oracle, e: Expr, divisor: Expr) -> int | None:
    """0 or 1: how often the divisor must be added to `e` to get to [0, divisor); None when neither is proved."""
    if not e.terms:
        return 0
    if e.constant is not None:
        shift = int(e.constant < 0)
        return shift if facts.at_least(divisor - e if shift == 0 else divisor + e, 1 - shift) else None
    for shift in (0, 1):
        shifted = e + shift * divisor
        if facts.at_least(shifted, 0) and facts.at_least(divisor - shifted, 1):
            return shift
    return None


def _split_by_residue(facts: Oracle, a: Expr, k: int) -> tuple[Expr, Expr]:
    """(multiple, rest): the terms of `a` proved to be multiples of k, each less its residue, and what is left."""
    multiple: list[Term] = []
    rest: list[Term] = []
    for term in a.terms:
        residue = facts.residue(Expr((term,)), k)
        if residue is None:
            rest.append(term)
        else:
            multiple.extend((term, (-residue, ())))
            rest.append((residue, ()))
    return Expr.from_terms(multiple), Expr.from_terms(rest)


def _known_quotient(facts: Oracle, e: Expr, k: int) -> int | None:
    low, high = facts.range(e)
    if low is not None and high is not None and low // k == high // k:
        return low // k
    return None


def _floordiv_constant(facts: Oracle, a: Expr, k: int) -> Expr:
    multiple, rest = _split_by_residue(facts, a, k)
    residue = facts.residue(rest, k)
    if residue is not None:
        multiple, rest = multiple + rest - residue, Expr.const(residue)
    quotient = _known_quotient(facts, rest, k)
    if quotient is not None:
        return multiple // k + quotient
    quotient = _known_quotient(facts, a, k)
    return Expr.const(quotient) if quotient is not None else multiple // k + rest // k


def _mod_constant(facts: Oracle, a: Expr, k: int) -> Expr:
    residue = facts.residue(a, k)
    if residue is not None:
        return Expr.const(residue)
    _, rest = _split_by_residue(facts, a, k)
    quotient = _known_quotient(facts, rest, k)
    if quotient is not None:
        return rest - quotient * k
    quotient = _known_quotient(facts, a, k)
    return a - quotient * k if quotient is not None else rest % k


def _multiply_back(facts: Oracle, e: Expr) -> Expr:
    """c*k*floordiv(a, k) becomes c*a where k divides a, and c*k*floordiv(a, k) + c*mod(a, k) becomes c*a."""
    for coefficient, monomial in e.terms:
        for atom, _ in monomial:
            if not isinstance(atom, FloorDiv):
                continue
            factor = Expr.from_terms([(coefficient, divide_monomials(monomial, ((atom, 1),)) or ())])
            factor, left = divide(factor, atom.divisor)
            if left.terms or not factor.terms:
                continue
            remainder = atom.dividend % atom.divisor
            simplified = _mod(facts, atom.dividend, atom.divisor)
            if not simplified.terms or _cancels(e, remainder * factor):
                replacement = factor * (atom.dividend - (simplified if not simplified.terms else remainder))
                return _multiply_back(facts, e - Expr.from_terms([(coefficient, monomial)]) + replacement)
    return e


def _cancels(e: Expr, part: Expr) -> bool:
    """Tells whether every term of `part` is a term of `e`, so that subtracting it leaves fewer terms."""
    return bool(part.terms) and set(part.terms) <= set(e.terms)
