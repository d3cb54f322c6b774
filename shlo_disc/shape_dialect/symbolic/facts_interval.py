# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Interval arithmetic on expressions. A bound is an int, or None where there is none."""

from __future__ import annotations

from collections.abc import Callable

from shlo_disc.shape_dialect.symbolic.expr import Atom, Expr, FloorDiv, Max, Mod, Symbol

Interval = tuple[int | None, int | None]
UNBOUNDED: Interval = (None, None)


def scale(a: Interval, factor: int) -> Interval:
    """The interval of `factor * x`."""
    if factor == 0:
        return (0, 0)
    low, high = (a[0], a[1]) if factor > 0 else (a[1], a[0])
    return (None if low is None else low * factor, None if high is None else high * factor)


def add(a: Interval, b: Interval) -> Interval:
    """The interval of `x + y`."""
    return (
        None if a[0] is None or b[0] is None else a[0] + b[0],
        None if a[1] is None or b[1] is None else a[1] + b[1],
    )


def meet(a: Interval, b: Interval) -> Interval:
    """The intersection; it may be empty (low above high)."""
    low = b[0] if a[0] is None else a[0] if b[0] is None else max(a[0], b[0])
    high = b[1] if a[1] is None else a[1] if b[1] is None else min(a[1], b[1])
    return (low, high)


def multiply(a: Interval, b: Interval) -> Interval:
    """The interval of `x * y`."""
    if a == (0, 0) or b == (0, 0):
        return (0, 0)
    corners = [_product(x, sx, y, sy) for x, sx in _ends(a) for y, sy in _ends(b)]
    low = None if any(c == "-" for c in corners) else min(c for c in corners if isinstance(c, int))
    high = None if any(c == "+" for c in corners) else max(c for c in corners if isinstance(c, int))
    return (low, high)


def power(a: Interval, exponent: int) -> Interval:
    """The interval of `x ** exponent`."""
    low, high = a
    lifted: Interval = (None if low is None else low**exponent, None if high is None else high**exponent)
    if exponent % 2:
        return lifted
    if low is not None and low >= 0:
        return lifted
    if high is not None and high <= 0:
        return (lifted[1], lifted[0])
    if lifted[0] is None or lifted[1] is None:
        return (0, None)
    return (0, max(lifted[0], lifted[1]))


def floordiv(a: Interval, b: Interval) -> Interval:
    """The interval of `x // y` over nonzero y."""
    parts = [_floordiv_positive(a, part) for part in [meet(b, (1, None))] if not is_empty(part)]
    mirrored = meet(scale(b, -1), (1, None))
    if not is_empty(mirrored):
        parts.append(_floordiv_positive(scale(a, -1), mirrored))
    return hull(parts) if parts else UNBOUNDED


def mod(a: Interval, b: Interval) -> Interval:
    """The interval of `x % y` over nonzero y."""
    parts = [_mod_positive(a, part) for part in [meet(b, (1, None))] if not is_empty(part)]
    mirrored = meet(scale(b, -1), (1, None))
    if not is_empty(mirrored):
        parts.append(scale(_mod_positive(scale(a, -1), mirrored), -1))
    return hull(parts) if parts else UNBOUNDED


def hull(parts: list[Interval]) -> Interval:
    """The smallest interval around all parts."""
    lows = [low for low, _ in parts if low is not None]
    highs = [high for _, high in parts if high is not None]
    return (
        min(lows) if len(lows) == len(parts) else None,
        max(highs) if len(highs) == len(parts) else None,
    )


def is_empty(a: Interval) -> bool:
    """Tells whether no integer is inside."""
    return a[0] is not None and a[1] is not None and a[0] > a[1]


def of_expr(e: Expr, of_atom_: Callable[[Atom], Interval]) -> Interval:
    """The interval of a polynomial from those of its atoms, term by term."""
    total: Interval = (0, 0)
    for coefficient, monomial in e.terms:
        product: Interval | None = None
        for atom, exponent in monomial:
            factor = of_atom_(atom)
            factor = power(factor, exponent) if exponent > 1 else factor
            product = factor if product is None else multiply(product, factor)
        total = add(total, scale((1, 1) if product is None else product, coefficient))
    return total


def of_atom(atom: Atom, of_symbol: Callable[[str], Interval], of_operand: Callable[[Expr], Interval]) -> Interval:
    """The interval of one atom."""
    if isinstance(atom, Symbol):
        return of_symbol(atom.name)
    parts = [of_operand(e) for e in atom.operands]
    if isinstance(atom, FloorDiv):
        return floordiv(parts[0], parts[1])
    if isinstance(atom, Mod):
        return mod(parts[0], parts[1])
    lows, highs = [low for low, _ in parts], [high for _, high in parts]
    if isinstance(atom, Max):
        return (_some(max, lows), _every(max, highs))
    return (_every(min, lows), _some(min, highs))


def _some(pick: Callable[[list[int]], int], bounds: list[int | None]) -> int | None:
    known = [bound for bound in bounds if bound is not None]
    return pick(known) if known else None


def _every(pick: Callable[[list[int]], int], bounds: list[int | None]) -> int | None:
    known = [bound for bound in bounds if bound is not None]
    return pick(known) if len(known) == len(bounds) else None


def _ends(a: Interval) -> tuple[tuple[int | None, int], tuple[int | None, int]]:
    """Both ends with the sign that an infinite end has."""
    return ((a[0], -1), (a[1], 1))


def _product(x: int | None, x_sign: int, y: int | None, y_sign: int) -> int | str:
    """A corner product; an infinite one is "+" or "-", and zero times infinity is 0, the limit along the edge."""
    if x is not None and y is not None:
        return x * y
    sx = x_sign if x is None else (x > 0) - (x < 0)
    sy = y_sign if y is None else (y > 0) - (y < 0)
    sign = sx * sy
    return 0 if sign == 0 else "+" if sign > 0 else "-"


def _floordiv_positive(a: Interval, b: Interval) -> Interval:
    """x // y for y >= 1: monotone in x; in y it shrinks towards 0 or -1."""
    least = b[0] or 1
    low, high = a
    if low is not None:
        low = low // least if low < 0 else 0 if b[1] is None else low // b[1]
    if high is not None:
        high = high // least if high >= 0 else -1 if b[1] is None else high // b[1]
    return (low, high)


def _mod_positive(a: Interval, b: Interval) -> Interval:
    """x % y for y >= 1: in [0, y - 1], not above a nonnegative x, and x itself where x < y always."""
    low, high = a
    if low is not None and high is not None and b[0] == b[1] and b[0] is not None and low // b[0] == high // b[0]:
        return (low % b[0], high % b[0])
    if low is not None and low >= 0 and high is not None and b[0] is not None and high < b[0]:
        return a
    top = None if b[1] is None else b[1] - 1
    if low is not None and low >= 0 and high is not None:
        top = high if top is None else min(top, high)
    return (0, top)
