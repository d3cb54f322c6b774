# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From PyTorch's symbolic integers, which are SymPy's expressions, to ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from types import MappingProxyType
from typing import Any, NamedTuple

import sympy
import torch
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter
from torch.utils._sympy import functions

from shlo_disc.shape_dialect.dialect.types import Dims
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv

ROUNDED = (functions.TruncToInt, functions.FloorToInt, functions.CeilToInt, functions.RoundToInt)
"""Functions that convert floats to integers."""


class NoSize(ValueError):
    """An expression of PyTorch's that is no expression over sizes."""


class Sizes:
    """The expressions that those of SymPy are: `named` has symbols and rounded floats that are read as others of ours.

    These are PyTorch's symbols by the user's names, and what the program computes.
    """

    def __init__(self, named: Mapping[Any, Expr] = MappingProxyType({})):
        self.named: dict[Any, Expr] = dict(named)

    def size_of(self, value: Any) -> Expr:
        """The expression of an int, a SymInt or an integer expression of SymPy. Raises NoSize."""
        if isinstance(value, Expr):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return Expr.const(value)
        if isinstance(value, torch.SymInt):
            return self._read(value.node.expr)
        if isinstance(value, sympy.Expr):
            return self._read(value)
        raise NoSize(f"{value} is no size")

    def sizes_of(self, values: Iterable[Any]) -> Dims:
        """The expressions of several sizes, as of a shape."""
        return tuple(map(self.size_of, values))

    def shown(self, e: Any) -> str:
        """An expression or relation of SymPy in the user's symbols, as Python writes it."""
        own = {symbol: name for symbol, name in self.named.items() if isinstance(symbol, sympy.Symbol)}
        names = {symbol: sympy.Symbol(name.is_symbol) for symbol, name in own.items() if name.is_symbol}
        return _written(e.xreplace(names)) if isinstance(e, sympy.Basic) else str(e)

    def said(self, e: Any) -> str:
        """A condition of SymPy in the user's symbols and in Python's words."""
        if isinstance(e, sympy.Not):
            return f"not ({self.said(e.args[0])})"
        if isinstance(e, sympy.And | sympy.Or):
            return (" and " if isinstance(e, sympy.And) else " or ").join(
                f"({self.said(part)})" if isinstance(part, sympy.And | sympy.Or) else self.said(part) for part in e.args
            )
        return self.shown(e)

    def _read(self, e: Any) -> Expr:
        if isinstance(e, sympy.Integer):
            return Expr.const(int(e))
        if isinstance(e, sympy.Symbol):
            found = self.named.get(e)
            return Expr.symbol(e.name) if found is None else found
        if isinstance(e, sympy.Pow) and isinstance(e.args[1], sympy.Integer) and int(e.args[1]) >= 0:
            return self._read(e.args[0]) ** int(e.args[1]) if int(e.args[1]) else Expr.const(1)
        if isinstance(e, ROUNDED):
            return self._rounded(e)
        if isinstance(e, sympy.Piecewise):
            return self._piecewise(*((pair.expr, pair.cond) for pair in e.args))
        for kind, build in _KINDS:
            if isinstance(e, kind):
                return build(*map(self._read, e.args))
        raise NoSize(f"{_written(e)} is no expression over sizes")

    def _rounded(self, e: Any) -> Expr:
        """A float that becomes an integer, as the expression that its rounding gives at all sizes, if there is one."""
        if e in self.named:
            return self.named[e]
        up = isinstance(e, functions.CeilToInt)
        found = None if isinstance(e, functions.RoundToInt) else self._fraction(e.args[0])
        if found is None or found.error not in (0, -1 if up else 1):
            raise NoSize(f"{_written(e)} is no expression over sizes")
        above, below = found.above, found.below
        if up:
            return ceildiv(above, Expr.const(below)) if below > 1 else above
        if isinstance(e, functions.TruncToInt) and not _is_natural(e.args[0]):
            negative = Expr.maximum(-above, 0)
            return Expr.maximum(above, 0) // below - negative // below
        return above // below

    def _fraction(self, e: Any) -> _Fraction | None:
        """A float over sizes as a fraction; None for one that is none, or of too large numbers."""
        if isinstance(e, sympy.Float | sympy.Rational):
            found = _constant(e)
            return None if found is None else _Fraction(Expr.const(found[0].numerator), found[0].denominator, found[1])
        if isinstance(e, functions.ToFloat):
            return _Fraction(self._read(e.args[0]), 1)
        if isinstance(e, functions.FloatTrueDiv | functions.IntTrueDiv):
            return self._quotient(*e.args)
        if isinstance(e, sympy.Add):
            return _sum([self._fraction(part) for part in e.args])
        factor, rest = e.as_coeff_Mul()
        return self._scaled(factor, rest) if factor != 1 else None

    def _scaled(self, factor: Any, rest: Any) -> _Fraction | None:
        """A constant times an expression. Of a factor that is rounded the other one has to be a natural number."""
        own, other = _constant(factor), self._fraction(rest)
        if own is None or other is None:
            return None
        if own[1] and not (isinstance(rest, functions.ToFloat) and _is_natural(rest)):
            return None
        is_shift = _is_power(abs(own[0].numerator)) and _is_power(own[0].denominator)
        if not is_shift and (other.error or not _is_power(other.below)):
            return None
        sign = 1 if own[0] >= 0 else -1
        return _Fraction(other.above * own[0].numerator, other.below * own[0].denominator, own[1] or other.error * sign)

    def _quotient(self, over: Any, under: Any) -> _Fraction | None:
        """An expression over a constant. Over one that is rounded it has to be a natural number."""
        own, other = (_constant(under) if under.is_number else None), self._fraction(_as_float(over))
        if own is None or other is None or own[0] == 0 or other.error or not _is_power(other.below):
            return None
        if own[1] and (own[0] < 0 or not _is_natural(over)):
            return None
        sign = 1 if own[0] > 0 else -1
        return _Fraction(other.above * own[0].denominator * sign, other.below * abs(own[0].numerator), -own[1])

    def _piecewise(self, *pairs: Any) -> Expr:
        """The value of the first of several conditions that holds; conditions are numbers here, 1 or 0."""
        found = Expr.const(0)
        for value, condition in reversed(pairs):
            holds = self._truth(condition)
            found = self._read(value) * holds + found * (1 - holds)
        return found

    def _truth(self, condition: Any) -> Expr:
        """A relation of integers as 1 where it holds, and as 0 elsewhere."""
        if condition in (sympy.true, sympy.false):
            return Expr.const(int(bool(condition)))
        if isinstance(condition, sympy.Not):
            return 1 - self._truth(condition.args[0])
        if isinstance(condition, sympy.And):
            return reduce(lambda a, b: a * b, map(self._truth, condition.args))
        if isinstance(condition, sympy.Or):
            return 1 - reduce(lambda a, b: a * b, (1 - self._truth(part) for part in condition.args))
        for kind, build in _RELATIONS:
            if isinstance(condition, kind):
                return build(*map(self._read, condition.args))
        raise NoSize(f"{_written(condition)} is no relation of sizes")


class _Python(StrPrinter):
    """The text of an expression in Python's operators."""

    printmethod = ""  # PyTorch's functions have texts of their own

    def _print_FloorDiv(self, e: Any) -> str:
        return " // ".join(self.parenthesize(part, PRECEDENCE["Mul"]) for part in e.args)

    def _print_Mod(self, e: Any) -> str:
        return " % ".join(self.parenthesize(part, PRECEDENCE["Mul"]) for part in e.args)

    def _print_Max(self, e: Any) -> str:
        return f"max({', '.join(map(self._print, e.args))})"

    def _print_Min(self, e: Any) -> str:
        return f"min({', '.join(map(self._print, e.args))})"

    def _print_ToFloat(self, e: Any) -> str:
        return str(self._print(e.args[0]))

    def _print_Float(self, e: Any) -> str:
        return repr(float(e))

    def _print_IntTrueDiv(self, e: Any) -> str:
        return " / ".join(self.parenthesize(part, PRECEDENCE["Mul"], strict=bool(i)) for i, part in enumerate(e.args))

    def _print_FloatPow(self, e: Any) -> str:
        return "**".join(self.parenthesize(part, PRECEDENCE["Pow"]) for part in e.args)

    def _print_TruncToInt(self, e: Any) -> str:
        return f"int({self._print(e.args[0])})"

    def _print_FloorToInt(self, e: Any) -> str:
        return f"floor({self._print(e.args[0])})"

    def _print_CeilToInt(self, e: Any) -> str:
        return f"ceil({self._print(e.args[0])})"

    def _print_RoundToInt(self, e: Any) -> str:
        return f"round({self._print(e.args[0])})"

    _print_CleanDiv = _print_FloorDiv
    _print_PythonMod = _print_Mod
    _print_FloatTrueDiv = _print_IntTrueDiv


def _written(e: Any) -> str:
    if isinstance(e, sympy.core.relational.Relational):
        is_zero = isinstance(e, sympy.Le) and isinstance(e.lhs, sympy.Mod | functions.Mod | functions.PythonMod)
        operator = "==" if is_zero and e.rhs == 0 else e.rel_op  # no remainder is negative
        return f"{_written(e.lhs)} {operator} {_written(e.rhs)}"
    return str(_Python().doprint(e))


class _Fraction(NamedTuple):
    """above / below, of which a float is the nearest, or with error 1 or -1 one that may lie above or below that.

    While above * below stays under 2^52, rounding never takes the float past an integer that the fraction is not at.
    """

    above: Expr
    below: int
    error: int = 0


_SMALL = 1 << 12
"""Numerators and denominators of constants are below it."""


def _constant(e: Any) -> tuple[Fraction, int] | None:
    """The fraction of small numbers that a constant is the nearest float to, and on which side of it that lies."""
    exact = Fraction(float(e))
    near = exact.limit_denominator(_SMALL)
    if float(near) != float(e) or max(abs(near.numerator), near.denominator) > _SMALL:
        return None
    return near, (exact > near) - (exact < near)


def _as_float(e: Any) -> Any:
    return functions.ToFloat(e) if e.is_integer and not e.is_number else e


def _sum(parts: Sequence[_Fraction | None]) -> _Fraction | None:
    """A sum of exact floats."""
    found = [p for p in parts if p is not None and p.error == 0 and _is_power(p.below)]
    if len(found) < len(parts):
        return None
    below = max(p.below for p in found)
    return _Fraction(reduce(lambda a, b: a + b, (p.above * (below // p.below) for p in found)), below)


def _is_power(n: int) -> bool:
    """Tells whether a positive number is a power of two: floats over it are exact."""
    return n & (n - 1) == 0


def _is_natural(e: Any) -> bool:
    """Tells whether an expression is not negative, as no number in it is and nothing is subtracted."""
    return not any(part.is_number and part.is_negative for part in sympy.preorder_traversal(e))


def _modular_indexing(base: Expr, divisor: Expr, modulus: Expr) -> Expr:
    return base // divisor % modulus


def _is_positive(e: Expr) -> Expr:
    return Expr.maximum(0, Expr.minimum(1, e))


_RELATIONS: tuple[tuple[Any, Callable[[Expr, Expr], Expr]], ...] = (
    (sympy.Gt, lambda a, b: _is_positive(a - b)),
    (sympy.Ge, lambda a, b: _is_positive(a - b + 1)),
    (sympy.Lt, lambda a, b: _is_positive(b - a)),
    (sympy.Le, lambda a, b: _is_positive(b - a + 1)),
    (sympy.Eq, lambda a, b: _is_positive(a - b + 1) * _is_positive(b - a + 1)),
    (sympy.Ne, lambda a, b: 1 - _is_positive(a - b + 1) * _is_positive(b - a + 1)),
)

_KINDS: tuple[tuple[Any, Callable[..., Expr]], ...] = (
    (sympy.Add, lambda *parts: reduce(lambda a, b: a + b, parts)),
    (sympy.Mul, lambda *parts: reduce(lambda a, b: a * b, parts)),
    (functions.CeilDiv, ceildiv),
    (functions.FloorDiv, lambda a, b: a // b),  # CleanDiv is one
    (functions.PythonMod, lambda a, b: a % b),
    (functions.Mod, lambda a, b: a % b),
    (sympy.Mod, lambda a, b: a % b),
    (functions.ModularIndexing, _modular_indexing),
    (functions.Max, Expr.maximum),
    (functions.Min, Expr.minimum),
    (sympy.Max, Expr.maximum),
    (sympy.Min, Expr.minimum),
)
