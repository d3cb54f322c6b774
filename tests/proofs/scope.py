# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state of a proof: assumptions, obligations, folds, and sizes as integers of z3.

A scope either leaves the sizes open, for a proof, or gives every symbol a number, for a counterexample.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import z3

from shlo_disc.shape_dialect.symbolic.expr import Atom, Expr

Term = Any
"""A term of z3: an element, an index or a condition."""

Index = tuple[Term, ...]

MOST_UNROLLED = 4096
"""Elements of a fold over known bounds that is written out."""


def number(value: int) -> Term:
    """An integer."""
    return z3.IntVal(value)


def constant_of(term: Term) -> int | None:
    """The value of a term that is a number."""
    term = z3.simplify(term)
    return term.as_long() if z3.is_int_value(term) else None


def is_same(a: Term, b: Term) -> bool:
    """Tells whether two sizes are one polynomial."""
    return constant_of(z3.simplify(a - b, som=True)) == 0


def product(sizes: Sequence[Term]) -> Term:
    """The number of elements."""
    return z3.simplify(math.prod(sizes, start=number(1)), som=True)


def inside(index: Index, dims: Sequence[Term]) -> Term:
    """The condition that an index lies within sizes."""
    return z3.And([z3.And(i >= 0, i < size) for i, size in zip(index, dims, strict=True)])


def minimum(a: Term, b: Term) -> Term:
    """The smaller of two terms."""
    return z3.If(a <= b, a, b)


def maximum(a: Term, b: Term) -> Term:
    """The larger of two terms."""
    return z3.If(a >= b, a, b)


def quotient(a: Term, b: Term) -> Term:
    """`a` by `b`, rounded towards minus infinity, as Python does it."""
    return z3.If(b > 0, a / b, (-a) / (-b))


@dataclass(frozen=True)
class Fold:
    """A combination of elements: `body` for all values of `variables`, which count up to `bounds`.

    kind: the combining op, commutative and associative unless it begins with "ordered". more: terms that belong to it
    besides, as the element that starts it, or the position in a sorted line. stands: the element in terms of z3.
    """

    kind: str
    bounds: tuple[Term, ...]
    variables: tuple[Term, ...]
    body: tuple[Term, ...]
    more: tuple[Term, ...]
    path: Term
    stands: Term


@dataclass
class Scope:
    """The state of a proof.

    sizes: a number for each symbol, for a counterexample. has_bits: integers are bit vectors, not unbounded integers.
    is_given: the program before a rewrite is evaluated, whose types and bounds are as StableHLO demands.
    """

    sizes: Mapping[str, int] | None = None
    has_bits: bool = False
    is_given: bool = True
    assumptions: list[Term] = field(default_factory=list)
    obligations: list[tuple[str, Term]] = field(default_factory=list)
    folds: list[Fold] = field(default_factory=list)
    symbols: dict[str, Term] = field(default_factory=dict)
    _path: list[Term] = field(default_factory=list)
    _enclosing: list[Term] = field(default_factory=list)
    _named: dict[Any, Term] = field(default_factory=dict)

    # ---- sizes -------------------------------------------------------------------------------------------------------

    def size(self, expr: Expr) -> Term:
        """A symbolic size."""
        total = number(0)
        for coefficient, monomial in expr.terms:
            total += coefficient * math.prod([self._atom(a) for a, power in monomial for _ in range(power)])
        return z3.simplify(total)

    def _atom(self, atom: Atom) -> Term:
        if atom.kind == "symbol":
            return self._symbol(str(atom))
        first, *rest = map(self.size, atom.operands)
        if atom.kind == "floordiv":
            return quotient(first, rest[0])
        if atom.kind == "mod":
            return first - rest[0] * quotient(first, rest[0])
        for other in rest:
            first = {"max": maximum, "min": minimum}[atom.kind](first, other)
        return first

    def _symbol(self, name: str) -> Term:
        if name not in self.symbols:
            self.symbols[name] = number(self.sizes[name]) if self.sizes is not None else z3.Int(name)
            self.assumptions.append(self.symbols[name] >= 0)
        return self.symbols[name]

    # ---- what is known and shown -------------------------------------------------------------------------------------

    @contextmanager
    def under(self, condition: Term) -> Iterator[None]:
        """Inside, elements are read only where a condition holds."""
        self._path.append(condition)
        yield
        self._path.pop()

    def assume(self, condition: Term) -> None:
        """Something that holds where the elements are read."""
        self.assumptions.append(z3.Implies(z3.And(self._path), condition))

    def require(self, text: str, condition: Term) -> None:
        """A condition on sizes that StableHLO has: assumed of the program before, shown of the one after."""
        condition = z3.simplify(condition, som=True)
        if z3.is_true(condition):
            return
        if self.is_given:
            self.assume(condition)
        else:
            self.show(text, condition)

    def require_same(self, text: str, a: Term, b: Term) -> None:
        """Two sizes that StableHLO wants to be equal."""
        if not is_same(a, b):
            self.require(text, a == b)

    def show(self, text: str, condition: Term) -> None:
        """Something that has to hold where the elements are read."""
        condition = z3.simplify(condition, som=True)
        if not z3.is_true(condition):
            self.obligations.append((text, z3.Implies(z3.And(self._path), condition)))

    # ---- folds -------------------------------------------------------------------------------------------------------

    def fold(
        self,
        kind: str,
        bounds: Sequence[Term],
        body: Callable[[Index], Sequence[Term]],
        more: Sequence[Term] = (),
        combine: Callable[[Term, Term], Term] | None = None,
    ) -> Term:
        """The combination of `body` over all indices below `bounds`.

        combine: what two elements become, `more` being the one that starts; a fold of one element, and for a
        counterexample any, is written out by it. None for what no op of two elements defines, as a sorted line.
        """
        known = [constant_of(b) for b in bounds]
        if combine is not None and all(n == 1 for n in known):
            (element,) = body(tuple(number(0) for _ in bounds))
            return z3.simplify(combine(more[0], element))
        if self.sizes is not None and None not in known:
            return self._unrolled(kind, [n for n in known if n is not None], body, combine, more)
        wide = [axis for axis, n in enumerate(known) if n != 1]
        depth = len(self._enclosing)
        variables = tuple(z3.Int(f"k{depth + i}") for i in range(len(wide)))
        index = [number(0)] * len(bounds)
        for axis, variable in zip(wide, variables, strict=True):
            index[axis] = variable
        within = tuple(bounds[axis] for axis in wide)
        self._enclosing += variables
        with self.under(inside(variables, within)):
            elements = tuple(z3.simplify(e, som=True) for e in body(tuple(index)))
        del self._enclosing[depth:]
        if kind == "add":
            within, variables, elements = self._flattened(within, variables, elements, more[0])
        return self._stand_in(kind, within, variables, elements, tuple(map(z3.simplify, more)))

    def _flattened(
        self, bounds: Index, variables: Index, body: tuple[Term, ...], start: Term
    ) -> tuple[Index, Index, tuple[Term, ...]]:
        """A sum of products with a sum as one sum: multiplication distributes over addition."""
        (term,) = body
        factors = term.children() if z3.is_mul(term) else [term]
        for inner in self.folds:
            here = [f for f in factors if f.eq(inner.stands)]
            if inner.kind == "add" and len(here) == 1 and _is_zero(start) and _is_zero(inner.more[0]):
                rest = [f for f in factors if not f.eq(inner.stands)]
                summed = z3.simplify(math.prod(rest, start=inner.body[0]), som=True)
                return (*bounds, *inner.bounds), (*variables, *inner.variables), (summed,)
        return bounds, variables, body

    def _unrolled(
        self,
        kind: str,
        counts: list[int],
        body: Callable[[Index], Sequence[Term]],
        combine: Callable[[Term, Term], Term] | None,
        more: Sequence[Term],
    ) -> Term:
        places = [tuple(map(number, index)) for index in itertools.product(*map(range, counts))]
        if len(places) > MOST_UNROLLED:
            raise ValueError("a fold of too many elements for a counterexample")
        if combine is None:
            terms = [*(element for index in places for element in body(index)), *more]
            sort = terms[0].sort()
            return z3.Function(f"{kind} of {len(places)}", *(t.sort() for t in terms), sort)(*terms)
        (total,) = more
        for index in places:
            (element,) = body(index)
            total = combine(total, element)
        return total

    def _stand_in(
        self, kind: str, bounds: Index, variables: Index, body: tuple[Term, ...], more: tuple[Term, ...]
    ) -> Term:
        key = (kind, *(str(t.sexpr()) for t in (*bounds, *body, *more)), tuple(map(str, variables)))
        if key not in self._named:
            sorts = [z3.IntSort()] * len(self._enclosing)
            sort = more[-1].sort() if kind.startswith("ordered") and not body else body[0].sort()
            function = z3.Function(f"fold{len(self._named)}", *sorts, sort)
            stands = function(*self._enclosing) if self._enclosing else function()
            self._named[key] = stands
            self.folds.append(Fold(kind, bounds, variables, body, more, z3.And(self._path), stands))
        return self._named[key]

    # ---- row-major order ---------------------------------------------------------------------------------------------

    def offset(self, index: Index, dims: Sequence[Term]) -> Term:
        """The row-major position of an index."""
        total = number(0)
        for i, size in zip(index, dims, strict=True):
            whole = _joined(total, i, size)
            total = z3.simplify(total * size + i, som=True) if whole is None else whole
        return total

    def digits(self, offset: Term, dims: Sequence[Term], where: Term) -> Index:
        """The index at a row-major position, which lies within `dims` where a condition holds.

        Quotients and remainders are functions of the position, one pair for each divisor, which have no other meaning
        than that there is one of each: z3 has no need to divide by symbols.
        """
        rest, found = z3.simplify(offset, som=True), []
        for size in reversed(dims[1:]):
            if self.sizes is not None:
                found.append(rest % size)
                rest = rest / size
                continue
            divided, remainder = _quotient_of(rest, size), _remainder_of(rest, size)
            self.assume(z3.Implies(where, z3.And(divided * size + remainder == rest, remainder >= 0, remainder < size)))
            found.append(remainder)
            rest = divided
        index = (rest, *reversed(found))
        self.assume(z3.Implies(where, z3.And(rest >= 0, rest < dims[0])))
        return index


def _is_zero(term: Term) -> bool:
    term = z3.simplify(term)
    return bool(z3.is_rational_value(term) or z3.is_int_value(term)) and term.as_long() == 0


def _key(size: Term) -> str:
    return str(z3.simplify(size, som=True).sexpr())


def _quotient_of(position: Term, size: Term) -> Term:
    return z3.Function(f"quotient by {_key(size)}", z3.IntSort(), z3.IntSort())(position)


def _remainder_of(position: Term, size: Term) -> Term:
    return z3.Function(f"remainder by {_key(size)}", z3.IntSort(), z3.IntSort())(position)


def _joined(quotient_: Term, remainder: Term, size: Term) -> Term | None:
    """The position that a quotient and a remainder are of."""
    if not z3.is_app(remainder) or remainder.decl().name() != f"remainder by {_key(size)}":
        return None
    position = remainder.arg(0)
    return position if quotient_.eq(_quotient_of(position, size)) else None
