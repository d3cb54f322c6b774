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
        return self._stand_in(kind, within, variables, elements, tuple(map(z3.simplify, more)))

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
        known = _undone(index, dims)
        if known is not None:
            return known
        total = number(0)
        for i, size in zip(index, dims, strict=True):
            total = total * size + i
        return z3.simplify(total, som=True)

    def digits(self, offset: Term, dims: Sequence[Term], where: Term) -> Index:
        """The index at a row-major position, which lies within `dims` where a condition holds.

        By the uniqueness of mixed radix representation, which functions of the position stand for.
        """
        if len(dims) == 1:
            return (offset,)
        if all(constant_of(d) is not None for d in dims):
            found: list[Term] = []
            for size in reversed(dims):
                found.append(offset % size)
                offset = offset / size
            return tuple(reversed(found))
        name = "x".join(z3.simplify(d, som=True).sexpr() for d in dims)
        index = tuple(z3.Function(f"digit{i} of {name}", z3.IntSort(), z3.IntSort())(offset) for i in range(len(dims)))
        total = number(0)
        for i, size in zip(index, dims, strict=True):
            total = total * size + i
        self.assume(z3.Implies(where, z3.And(total == offset, inside(index, dims))))
        return index


def _undone(index: Index, dims: Sequence[Term]) -> Term | None:
    """The position whose digits an index consists of."""
    name = "x".join(z3.simplify(d, som=True).sexpr() for d in dims)
    positions = set()
    for i, term in enumerate(index):
        if not z3.is_app(term) or term.decl().name() != f"digit{i} of {name}":
            return None
        positions.add(term.arg(0))
    return positions.pop() if len(positions) == 1 else None
