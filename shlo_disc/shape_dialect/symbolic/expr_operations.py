# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Construction of floordiv, mod, max and min: the rewrites that hold for all integer values of the symbols."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from shlo_disc.shape_dialect.symbolic.expr import ZERO, Expr, ExprLike, FloorDiv, Max, Min, Mod, as_expr, content
from shlo_disc.shape_dialect.symbolic.monomials import Term


def floordiv(a: Expr, b: Expr) -> Expr:
    """`a // b` with the multiples of a constant divisor taken out."""
    k = b.constant
    if k is None:
        a, b, _ = _cancel_content(a, b)
        return floordiv(a, b) if b.constant is not None else Expr.of_atom(FloorDiv(a, b))
    if k == 0:
        return Expr.of_atom(FloorDiv(a, b))
    if k < 0:
        return floordiv(-a, Expr.const(-k))
    multiple, rest = _split_multiple(a, k)
    return multiple + _floordiv_reduced(rest, k)


def _floordiv_reduced(a: Expr, k: int) -> Expr:
    """floordiv of an expression without terms that are multiples of k, constant in [0, k)."""
    if k == 1:
        return a
    common = gcd(content(term for term in a.terms if term[1]), k)
    if common > 1:
        # floor((g*x + c) / (g*k)) == floor((x + floor(c/g)) / k), because floor(c/g) takes all that matters of c.
        reduced = Expr.from_terms((c // common, m) for c, m in a.terms)
        return floordiv(reduced, Expr.const(k // common))
    if _fits_residue(a, k):
        return ZERO
    inner = (a - a.constant_term).single_atom
    if isinstance(inner, FloorDiv) and (m := inner.divisor.constant) is not None and m > 0:
        # floor((floor(x/m) + c) / k) == floor((x + m*c) / (m*k)).
        return floordiv(inner.dividend + m * a.constant_term, Expr.const(m * k))
    return Expr.of_atom(FloorDiv(a, Expr.const(k)))


def mod(a: Expr, b: Expr) -> Expr:
    """`a % b` with the multiples of a constant divisor dropped."""
    k = b.constant
    if k is None:
        a, b, common = _cancel_content(a, b)
        rest = mod(a, b) if b.constant is not None else Expr.of_atom(Mod(a, b))
        return rest * common
    if k == 0:
        return Expr.of_atom(Mod(a, b))
    if k < 0:
        return -mod(-a, Expr.const(-k))
    return _mod_reduced(_unwrap_mods(a, k), k)


def _mod_reduced(a: Expr, k: int) -> Expr:
    # Coefficients keep their sign (mod(-b, 4) stays as users write it); the constant goes to [0, k).
    a = Expr.from_terms(((c % k if c > 0 or not m else -(-c % k)), m) for c, m in a.terms)
    common = gcd(content(term for term in a.terms if term[1]), k)
    if common > 1:
        # mod(g*x + g*c + d, g*k) == g*mod(x + c, k) + d for 0 <= d < g.
        offset = a.constant_term % common
        reduced = Expr.from_terms((c // common, m) for c, m in a.terms)
        return mod(reduced, Expr.const(k // common)) * common + offset
    if _fits_residue(a, k):
        return a
    return Expr.of_atom(Mod(a, Expr.const(k)))


def _cancel_content(a: Expr, b: Expr) -> tuple[Expr, Expr, int]:
    """Divides both by the greatest common divisor of their coefficients; that divisor comes third."""
    common = gcd(content(a.terms), content(b.terms))
    if common <= 1:
        return a, b, 1
    return (
        Expr(tuple((c // common, m) for c, m in a.terms)),
        Expr(tuple((c // common, m) for c, m in b.terms)),
        common,
    )


def _split_multiple(a: Expr, k: int) -> tuple[Expr, Expr]:
    """(q, r) with a == k*q + r: q takes the terms that are multiples of k, and of the constant all but its residue."""
    quotient: list[Term] = []
    rest: list[Term] = []
    for coefficient, monomial in a.terms:
        if coefficient % k == 0:
            quotient.append((coefficient // k, monomial))
        elif monomial:
            rest.append((coefficient, monomial))
        else:
            quotient.append((coefficient // k, monomial))
            rest.append((coefficient % k, monomial))
    return Expr.from_terms(quotient), Expr.from_terms(rest)


def _unwrap_mods(a: Expr, k: int) -> Expr:
    """Replaces c*mod(x, m) by c*x where k divides c*m, which keeps the residue modulo k."""
    for coefficient, monomial in a.terms:
        if len(monomial) == 1 and monomial[0][1] == 1 and isinstance(atom := monomial[0][0], Mod):
            m = atom.divisor.constant
            if m and coefficient * m % k == 0:
                return _unwrap_mods(a + coefficient * (atom.dividend - Expr.of_atom(atom)), k)
    return a


def _fits_residue(a: Expr, k: int) -> bool:
    """Tells whether 0 <= a < k for all values, seen from the ranges of `mod` by constants alone."""
    low = high = 0
    for coefficient, monomial in a.terms:
        bound = 1
        for atom, power in monomial:
            m = atom.divisor.constant if isinstance(atom, Mod) else None
            if m is None or m <= 0 or power != 1 or len(monomial) != 1:
                return False
            bound = m - 1
        if monomial:
            low += min(0, coefficient * bound)
            high += max(0, coefficient * bound)
        else:
            low += coefficient
            high += coefficient
    return low >= 0 and high < k


def extremum(kind: type[Max] | type[Min], operands: Iterable[ExprLike]) -> Expr:
    """The max or min of the operands: flat, sorted, without operands that another one beats by a constant."""
    flat: list[Expr] = []
    for operand in map(as_expr, operands):
        atom = operand.single_atom
        flat.extend(atom.operands if isinstance(atom, kind) else (operand,))
    if not flat:
        raise ValueError(f"{kind.kind} needs an operand")
    kept: list[Expr] = []
    for operand in flat:
        _keep_extreme(kind, kept, operand)
    dual = Min if kind is Max else Max
    kept = [e for e in kept if not (isinstance(a := e.single_atom, dual) and any(o in a.operands for o in kept))]
    if len(kept) == 1:
        return kept[0]
    return Expr.of_atom(kind(*sorted(kept, key=lambda e: e.key)))


def _keep_extreme(kind: type[Max] | type[Min], kept: list[Expr], operand: Expr) -> None:
    """Adds `operand` unless one at a constant distance is more extreme; of two such operands one remains."""
    for i, other in enumerate(kept):
        difference = (operand - other).constant
        if difference is not None:
            if (difference > 0) == (kind is Max):
                kept[i] = operand
            return
    kept.append(operand)
