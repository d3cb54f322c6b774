# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The residue of an expression modulo a constant, where it is the same for every admissible assignment."""

from __future__ import annotations

from itertools import product

from shlo_disc.shape_dialect.symbolic import facts_congruence as congruence
from shlo_disc.shape_dialect.symbolic.expr import Expr, Symbol
from shlo_disc.shape_dialect.symbolic.facts_rewrite import orient
from shlo_disc.shape_dialect.symbolic.facts_store import Store
from shlo_disc.shape_dialect.symbolic.monomials import divide_monomials

_MAX_POINTS = 1024


def residue_of(store: Store, e: Expr, modulus: int) -> int | None:
    """`e % modulus` for the canonical `e` and a positive modulus, or None when it is not known to be one value."""
    if modulus == 1:
        return 0
    e = Expr.from_terms((c % modulus, m) for c, m in _reduce(store, e, modulus).terms)
    known, residue = store.congruence_of(e)
    if known % modulus == 0:
        return residue % modulus
    return _by_enumeration(store, e, modulus)


def _reduce(store: Store, e: Expr, modulus: int) -> Expr:
    """Subtracts multiples of expressions that are known to be multiples of a constant."""
    for known, known_modulus in store.congruences:
        lead = orient(known).lead
        of_known = next(c for c, m in known.terms if m == lead)
        for coefficient, monomial in e.terms:
            quotient = divide_monomials(monomial, lead)
            if quotient is None:
                continue
            # The factor must cancel the leading term modulo `modulus`, and keep the whole a multiple of it.
            solution = congruence.solve(of_known, (modulus, coefficient % modulus))
            if solution is not None and solution[1] * known_modulus % modulus == 0:
                e = e - Expr.from_terms([(solution[1], quotient)]) * known
    return e


def _by_enumeration(store: Store, e: Expr, modulus: int) -> int | None:
    """Tries all residues of the atoms: finds that b*(b + 1) is even, which no rule for sums and products does."""
    atoms = e.atoms()
    if len(atoms) > 6 or len(e.terms) < 2 and not any(p > 1 for _, m in e.terms for _, p in m):
        return None
    classes = [congruence.of_atom(atom, store.class_of) for atom in atoms]
    choices = [sorted({(r + m * i) % modulus for i in range(modulus if m else 1)}) for m, r in classes]
    points = 1
    for choice in choices:
        points *= len(choice)
    if points > _MAX_POINTS:
        return None
    names = {atom: Symbol(f"x{i}") for i, atom in enumerate(atoms)}
    polynomial = e.map_atoms(lambda atom: Expr.of_atom(names[atom]))
    residues: set[int] = set()
    for values in product(*choices):
        residues.add(polynomial.evaluate({f"x{i}": v for i, v in enumerate(values)}) % modulus)
        if len(residues) > 1:
            return None
    return residues.pop()
