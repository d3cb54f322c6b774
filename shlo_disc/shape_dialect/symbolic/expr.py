# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Symbolic sizes: polynomials with integer coefficients over symbols, floordiv, mod, max and min.

The semantics, the term order and the text are those of `jax.export` dimension expressions (module
`jax._src.export.shape_poly`): `floordiv` rounds towards minus infinity and `mod` takes the sign of the divisor, as in
Python. Only rewrites that hold for all integer values of the symbols happen here; a rewrite that needs to know
something about a symbol belongs to `facts`. A rewrite never makes a division fail that did not fail before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from math import gcd
from typing import Any, Union

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.symbolic.monomials import Monomial, Term, monomial_key, multiply_monomials

ExprLike = Union["Expr", int]


class Atom:
    """One factor of a monomial. Immutable; equal atoms have equal `key`, which also gives the printing order."""

    __slots__ = ("operands", "size", "key", "symbols", "_hash")

    kind = ""

    size: int

    def __init__(self, *operands: Expr) -> None:
        self.operands: tuple[Expr, ...] = operands
        # Nested binary max/min is what JAX has; counting n - 1 operators keeps its order for our flattened form.
        self.size = max(1, len(operands) - 1) + sum(e.size for e in operands)
        self.key: tuple[Any, ...] = (self.size, self.kind, tuple(e.key for e in operands))
        self.symbols: frozenset[str] = frozenset().union(*(e.symbols() for e in operands))
        self._hash = hash((self.kind, operands))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Atom)
            and self._hash == other._hash
            and self.kind == other.kind
            and self.operands == other.operands
        )

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(e.text(nested=True) for e in self.operands)})"

    __repr__ = __str__

    def evaluate(self, env: Mapping[str, int]) -> int:
        """The value of the atom; ZeroDivisionError on a division by zero, KeyError on a missing symbol."""
        raise NotImplementedError

    def rebuild(self, operands: tuple[Expr, ...]) -> Expr:
        """The same operation on other operands, simplified."""
        raise NotImplementedError


class Symbol(Atom):
    """A named size."""

    __slots__ = ("name",)

    kind = "symbol"

    def __init__(self, name: str) -> None:
        self.name = name
        self.operands = ()
        self.size = 1
        self.key = (1, name, ())
        self.symbols = frozenset((name,))
        self._hash = hash(name)

    __hash__ = Atom.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Symbol) and self.name == other.name)

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    def evaluate(self, env: Mapping[str, int]) -> int:
        return env[self.name]

    def rebuild(self, operands: tuple[Expr, ...]) -> Expr:
        return Expr.of_atom(self)


class _Division(Atom):
    """Common part of FloorDiv and Mod."""

    __slots__ = ()

    @property
    def dividend(self) -> Expr:
        return self.operands[0]

    @property
    def divisor(self) -> Expr:
        return self.operands[1]


class FloorDiv(_Division):
    """`dividend // divisor`, rounded towards minus infinity."""

    __slots__ = ()

    kind = "floordiv"

    def evaluate(self, env: Mapping[str, int]) -> int:
        return self.operands[0].evaluate(env) // self.operands[1].evaluate(env)

    def rebuild(self, operands: tuple[Expr, ...]) -> Expr:
        return operands[0] // operands[1]


class Mod(_Division):
    """`dividend % divisor`, with the sign of the divisor."""

    __slots__ = ()

    kind = "mod"

    def evaluate(self, env: Mapping[str, int]) -> int:
        return self.operands[0].evaluate(env) % self.operands[1].evaluate(env)

    def rebuild(self, operands: tuple[Expr, ...]) -> Expr:
        return operands[0] % operands[1]


class _Extremum(Atom):
    """Common part of Max and Min: two or more sorted operands. Prints as nested binary calls, the form JAX reads."""

    __slots__ = ()

    def __str__(self) -> str:
        text = self.operands[0].text(nested=True)
        for operand in self.operands[1:]:
            text = f"{self.kind}({text}, {operand.text(nested=True)})"
        return text

    __repr__ = __str__


class Max(_Extremum):
    """The largest of the operands."""

    __slots__ = ()

    kind = "max"

    def evaluate(self, env: Mapping[str, int]) -> int:
        return max(e.evaluate(env) for e in self.operands)

    def rebuild(self, operands: tuple[Expr, ...]) -> Expr:
        return Expr.maximum(*operands)


class Min(_Extremum):
    """The smallest of the operands."""

    __slots__ = ()

    kind = "min"

    def evaluate(self, env: Mapping[str, int]) -> int:
        return min(e.evaluate(env) for e in self.operands)

    def rebuild(self, operands: tuple[Expr, ...]) -> Expr:
        return Expr.minimum(*operands)


def _operator(operation: Callable[[Expr, Expr], Expr]) -> Callable[[Expr, ExprLike], Expr]:
    """A binary operator of Expr that also takes an int."""

    def method(self: Expr, other: ExprLike) -> Expr:
        if isinstance(other, Expr):
            return operation(self, other)
        return operation(self, Expr.const(other)) if isinstance(other, int) else NotImplemented

    return method


class Expr:
    """An integer polynomial over atoms, in normal form. Immutable, hashable; equal iff the text is equal.

    `terms` is ordered as printed, the largest monomial first and the constant last; zero has no terms.
    """

    __slots__ = ("terms", "_hash", "_key", "_symbols", "_text")

    def __init__(self, terms: tuple[Term, ...]) -> None:
        """For terms already in normal form; use `const`, `symbol`, `parse`, `from_terms` and the operators."""
        self.terms = terms
        self._hash: int | None = None
        self._key: tuple[Any, ...] | None = None
        self._symbols: frozenset[str] | None = None
        self._text: str | None = None

    @staticmethod
    def const(value: int) -> Expr:
        """The constant `value`."""
        known = _SMALL.get(value)
        if known is None:
            known = Expr(((int(value), ()),))
            if -_MOST_SMALL <= value <= _MOST_SMALL:
                _SMALL[value] = known
        return known

    @staticmethod
    def symbol(name: str) -> Expr:
        """The symbol `name`, an identifier other than the four operation names. Raises ProgramError otherwise."""
        if not name.isidentifier() or name in ("floordiv", "mod", "max", "min", "_"):
            raise ProgramError(f"'{name}' is not a name for a symbolic dimension")
        return Expr.of_atom(Symbol(name))

    @staticmethod
    def of_atom(atom: Atom) -> Expr:
        """The expression that is just `atom`."""
        return Expr(((1, ((atom, 1),)),))

    @staticmethod
    def from_terms(terms: Iterable[Term]) -> Expr:
        """The sum of `coefficient * monomial`; repeated monomials are added up."""
        coefficients: dict[Monomial, int] = {}
        for coefficient, monomial in terms:
            coefficients[monomial] = coefficients.get(monomial, 0) + coefficient
        return _from_coefficients(coefficients)

    @staticmethod
    def parse(text: str) -> Expr:
        """Reads the text form of `jax.export` dimension expressions. Raises ProgramError with the position."""
        from shlo_disc.shape_dialect.symbolic.expr_parser import parse_expr

        return parse_expr(text)

    @staticmethod
    def maximum(*operands: ExprLike) -> Expr:
        """The largest operand; at least one is needed."""
        return _operations.extremum(Max, operands)

    @staticmethod
    def minimum(*operands: ExprLike) -> Expr:
        """The smallest operand; at least one is needed."""
        return _operations.extremum(Min, operands)

    @property
    def constant(self) -> int | None:
        """The value when there is no symbol left, else None."""
        if not self.terms:
            return 0
        coefficient, monomial = self.terms[0]
        return None if monomial else coefficient

    @property
    def constant_term(self) -> int:
        """The coefficient of the empty monomial."""
        return self.terms[-1][0] if self.terms and not self.terms[-1][1] else 0

    @property
    def single_atom(self) -> Atom | None:
        """The atom when the expression is one atom with coefficient and power 1, else None."""
        if len(self.terms) != 1:
            return None
        coefficient, monomial = self.terms[0]
        if coefficient != 1 or len(monomial) != 1 or monomial[0][1] != 1:
            return None
        return monomial[0][0]

    @property
    def is_symbol(self) -> str | None:
        """The name when the expression is one symbol, else None."""
        atom = self.single_atom
        return atom.name if isinstance(atom, Symbol) else None

    @property
    def key(self) -> tuple[Any, ...]:
        """Sort key: a total order on expressions, the one JAX uses inside operations."""
        if self._key is None:
            keys = [(monomial_key(monomial), coefficient) for coefficient, monomial in self.terms]
            keys = keys or [(monomial_key(()), 0)]
            self._key = (sum(1 + abs(coefficient) * key[0] for key, coefficient in keys), tuple(keys))
        return self._key

    @property
    def size(self) -> int:
        """JAX's measure of syntactic size."""
        return int(self.key[0])

    def symbols(self) -> frozenset[str]:
        """Names of all symbols, those inside operations included."""
        if self._symbols is None:
            atoms = (atom.symbols for _, monomial in self.terms for atom, _ in monomial)
            self._symbols = frozenset().union(*atoms)
        return self._symbols

    def atoms(self) -> tuple[Atom, ...]:
        """The distinct atoms of the polynomial in order of appearance, not those nested inside operations."""
        return tuple(dict.fromkeys(atom for _, monomial in self.terms for atom, _ in monomial))

    def evaluate(self, env: Mapping[str, int]) -> int:
        """The exact value. Raises ZeroDivisionError on a division by zero and KeyError on a missing symbol."""
        total = 0
        for coefficient, monomial in self.terms:
            value = coefficient
            for atom, power in monomial:
                factor = atom.evaluate(env)
                value *= factor if power == 1 else factor**power
            total += value
        return total

    def substitute(self, env: Mapping[str, ExprLike]) -> Expr:
        """Replaces symbols, all at once, and brings the result into normal form."""
        if self.symbols().isdisjoint(env):
            return self
        return self.map_atoms(lambda atom: _substitute_atom(atom, env))

    def map_atoms(self, replace: Callable[[Atom], Expr]) -> Expr:
        """Rebuilds the polynomial with `replace(atom) -> Expr` in place of each of its atoms."""
        images: dict[Atom, Expr] = {atom: replace(atom) for atom in self.atoms()}
        if all(image.single_atom is atom for atom, image in images.items()):
            return self
        total: dict[Monomial, int] = {}
        for coefficient, monomial in self.terms:
            product = Expr.const(coefficient)
            for atom, power in monomial:
                product = product * images[atom] ** power
            _accumulate(total, product, 1)
        return _from_coefficients(total)

    def __neg__(self) -> Expr:
        return Expr(tuple((-coefficient, monomial) for coefficient, monomial in self.terms))

    __add__ = __radd__ = _operator(lambda a, b: _combine(a, b, 1))
    __sub__ = _operator(lambda a, b: _combine(a, b, -1))
    __rsub__ = _operator(lambda a, b: _combine(b, a, -1))
    __mul__ = __rmul__ = _operator(lambda a, b: _multiply(a, b))
    __floordiv__ = _operator(lambda a, b: _operations.floordiv(a, b))
    __rfloordiv__ = _operator(lambda a, b: _operations.floordiv(b, a))
    __mod__ = _operator(lambda a, b: _operations.mod(a, b))
    __rmod__ = _operator(lambda a, b: _operations.mod(b, a))

    def __pow__(self, power: int) -> Expr:
        if power < 0:
            raise ValueError(f"negative power {power} of a symbolic dimension")
        if power == 1:
            return self
        atom = self.single_atom
        if atom is not None and power:
            return Expr(((1, ((atom, power),)),))
        return reduce(lambda left, right: left * right, [self] * power, ONE)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, Expr):
            return hash(self) == hash(other) and self.terms == other.terms
        return isinstance(other, int) and self.constant == other

    def __hash__(self) -> int:
        if self._hash is None:
            constant = self.constant
            self._hash = hash(self.terms) if constant is None else hash(constant)
        return self._hash

    def __bool__(self) -> bool:
        raise TypeError("a symbolic dimension has no truth value; compare it or ask Facts.prove")

    def text(self, nested: bool = False) -> str:
        """The text form; `nested` writes negative constants as JAX does inside an operation (`- 2`)."""
        constant = self.constant
        if constant is not None and (constant >= 0 or not nested):
            return str(constant)
        text = " ".join(_term_text(coefficient, monomial) for coefficient, monomial in self.terms)
        return text.removeprefix("+ ")

    def __str__(self) -> str:
        if self._text is None:
            self._text = self.text()
        return self._text

    def __repr__(self) -> str:
        return f"Expr({self.text()})"


ZERO = Expr(())
ONE = Expr(((1, ()),))
_SMALL, _MOST_SMALL = {0: ZERO, 1: ONE}, 4096
"""Constants that were made before; most are asked for again and again."""


def as_expr(value: ExprLike) -> Expr:
    """`value` itself, or the constant."""
    return value if isinstance(value, Expr) else Expr.const(value)


def ceildiv(a: ExprLike, b: ExprLike) -> Expr:
    """`a / b` rounded towards plus infinity: `floordiv(a + b - 1, b)` for a positive constant `b`."""
    a, b = as_expr(a), as_expr(b)
    divisor = b.constant
    if divisor is not None and divisor > 0:
        return (a + (divisor - 1)) // divisor
    return -((-a) // b)


def round_up(e: ExprLike, k: int) -> Expr:
    """The least multiple of the positive integer `k` that is at least `e`."""
    if k <= 0:
        raise ValueError(f"cannot round up to a multiple of {k}")
    return ceildiv(e, k) * k


def content(terms: Iterable[Term]) -> int:
    """The greatest common divisor of the coefficients; 0 without terms."""
    return reduce(gcd, (coefficient for coefficient, _ in terms), 0)


def _term_text(coefficient: int, monomial: Monomial) -> str:
    sign, magnitude = ("-", -coefficient) if coefficient < 0 else ("+", coefficient)
    if not monomial:
        return f"{sign} {magnitude}"
    product = "*".join(str(atom) if power == 1 else f"{atom}^{power}" for atom, power in monomial)
    return f"{sign} {product}" if magnitude == 1 else f"{sign} {magnitude}*{product}"


def _accumulate(total: dict[Monomial, int], e: Expr, factor: int) -> None:
    for coefficient, monomial in e.terms:
        total[monomial] = total.get(monomial, 0) + factor * coefficient


def _from_coefficients(coefficients: Mapping[Monomial, int]) -> Expr:
    terms = [(coefficient, monomial) for monomial, coefficient in coefficients.items() if coefficient]
    if len(terms) > 1:
        terms.sort(key=lambda term: monomial_key(term[1]), reverse=True)
    return Expr(tuple(terms)) if terms else ZERO


def _combine(left: Expr, right: Expr, factor: int) -> Expr:
    if not right.terms:
        return left
    if len(right.terms) == 1 and not right.terms[0][1]:
        return _plus(left, factor * right.terms[0][0])
    total = {monomial: coefficient for coefficient, monomial in left.terms}
    _accumulate(total, right, factor)
    return _from_coefficients(total)


def _plus(e: Expr, number: int) -> Expr:
    """The sum with a constant, which is the last term."""
    terms = e.terms
    if terms and not terms[-1][1]:
        number += terms[-1][0]
        terms = terms[:-1]
    if not terms:
        return Expr.const(number)
    return Expr((*terms, (number, ()))) if number else Expr(terms)


def _multiply(left: Expr, right: Expr) -> Expr:
    factor = right.constant
    if factor is None and left.constant is not None:
        left, factor = right, left.constant
    if factor is not None:
        if factor == 1:
            return left
        return Expr(tuple((c * factor, m) for c, m in left.terms)) if factor else ZERO
    total: dict[Monomial, int] = {}
    for c1, m1 in left.terms:
        for c2, m2 in right.terms:
            product = multiply_monomials(m1, m2)
            total[product] = total.get(product, 0) + c1 * c2
    return _from_coefficients(total)


def _substitute_atom(atom: Atom, env: Mapping[str, ExprLike]) -> Expr:
    if isinstance(atom, Symbol):
        return as_expr(env[atom.name]) if atom.name in env else Expr.of_atom(atom)
    if atom.symbols.isdisjoint(env):
        return Expr.of_atom(atom)
    return atom.rebuild(tuple(operand.substitute(env) for operand in atom.operands))


# The rules need the classes above, and the operators above need the rules.
from shlo_disc.shape_dialect.symbolic import expr_operations as _operations  # noqa: E402
