# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements as terms of z3: floats are reals, integers are integers or bit vectors, booleans are booleans.

What z3 has no arithmetic for is an uninterpreted function of its operands, as rounding to a narrower type is.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import z3

from tests.proofs.scope import Scope, Term, maximum, minimum

WIDE_FLOATS = ("f32", "f64")
"""Floats that products and sums are not rounded to: identities hold over the reals."""


def infinity(sign: float) -> Term:
    """One of the two infinities, between which all elements lie."""
    return z3.Real("inf" if sign > 0 else "-inf")


def is_float(element: str) -> bool:
    """Tells whether an element type is one of floats."""
    return element.startswith(("f", "bf"))


def width(element: str) -> int:
    """The bits of an integer type, or of a float."""
    digits = "".join(c if c.isdigit() else " " for c in element).split()
    return int(digits[0])


def is_signed(element: str) -> bool:
    """Tells whether an integer type has negative values."""
    return not element.startswith("ui")


def sort_of(element: str, scope: Scope) -> Any:
    """The sort of the elements of a type."""
    if element == "i1":
        return z3.BoolSort()
    if is_float(element):
        return z3.RealSort()
    return z3.BitVecSort(width(element)) if scope.has_bits else z3.IntSort()


def literal(value: Any, element: str, scope: Scope) -> Term:
    """A number of an element type."""
    if element == "i1":
        return z3.BoolVal(bool(value))
    if not is_float(element):
        return z3.BitVecVal(int(value), width(element)) if scope.has_bits else z3.IntVal(int(value))
    if math.isinf(value):
        return infinity(value)
    exact = Fraction(float(value))
    return z3.RealVal(exact.numerator) / exact.denominator


def limits(value: Term, element: str, scope: Scope) -> Term:
    """The range that any element of a type lies in."""
    if element == "i1" or scope.has_bits and not is_float(element):
        return z3.BoolVal(True)
    if is_float(element):
        return z3.And(value >= infinity(-1), value <= infinity(1))
    bits = width(element)
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if is_signed(element) else (0, 1 << bits)
    return z3.And(low <= value, value < high)


def opaque(name: str, sort: Any, *operands: Term) -> Term:
    """An uninterpreted function of operands."""
    return z3.Function(f"{name}/{sort}", *(t.sort() for t in operands), sort)(*operands)


def rounded(value: Term, element: str, scope: Scope) -> Term:
    """A number, exact so far, as an element of a type."""
    if element in WIDE_FLOATS or element == "i1" or not is_float(element) and (scope.has_bits or width(element) >= 32):
        return value
    return opaque(f"round to {element}", sort_of(element, scope), value)


def converted(value: Term, source: str, target: str, scope: Scope) -> Term:
    """The element that `convert` makes."""
    if source == target:
        return value
    sort = sort_of(target, scope)
    if source == "i1":
        one, zero = literal(1, target, scope), literal(0, target, scope)
        return z3.If(value, one, zero)
    if target == "i1":
        return value != (0 if is_float(source) or not scope.has_bits else z3.BitVecVal(0, width(source)))
    if is_float(source) and is_float(target):
        return value if width(target) > width(source) and target in WIDE_FLOATS else rounded_to(value, target, scope)
    if is_float(target) and not scope.has_bits:
        return rounded(z3.ToReal(value), target, scope)
    if is_float(source) or is_float(target):
        return opaque(f"convert {source} to {target}", sort, value)
    return _converted_integer(value, source, target, scope)


def rounded_to(value: Term, element: str, scope: Scope) -> Term:
    """A float rounded to a narrower one, f32 included."""
    return opaque(f"round to {element}", sort_of(element, scope), value)


def _converted_integer(value: Term, source: str, target: str, scope: Scope) -> Term:
    more = width(target) - width(source)
    if scope.has_bits:
        if more > 0:
            return z3.SignExt(more, value) if is_signed(source) else z3.ZeroExt(more, value)
        return z3.Extract(width(target) - 1, 0, value) if more < 0 else value
    widens = more > 0 and (is_signed(target) or not is_signed(source))
    return value if widens else rounded_to(value, target, scope)


def binary(name: str, a: Term, b: Term, element: str) -> Term | None:
    """An op of two elements that z3 has arithmetic for."""
    if element == "i1":
        known: dict[str, Any] = {"and": z3.And, "or": z3.Or, "xor": z3.Xor, "minimum": z3.And, "maximum": z3.Or}
        return known[name](a, b) if name in known else None
    bits = z3.is_bv(a)
    if bits and name in ("maximum", "minimum"):
        less = a <= b if is_signed(element) else z3.ULE(a, b)
        return z3.If(less, b, a) if name == "maximum" else z3.If(less, a, b)
    table: dict[str, Any] = {
        "add": lambda: a + b, "subtract": lambda: a - b, "multiply": lambda: a * b,
        "maximum": lambda: maximum(a, b), "minimum": lambda: minimum(a, b),
    }  # fmt: skip
    if is_float(element):
        table["divide"] = lambda: divided(a, b)
    if bits:
        table |= {"and": lambda: a & b, "or": lambda: a | b, "xor": lambda: a ^ b}
        table |= {"shift_left": lambda: a << b, "shift_right_logical": lambda: z3.LShR(a, b)}
    return table[name]() if name in table else None


def divided(a: Term, b: Term) -> Term:
    """A quotient of reals: `a` times the reciprocal of `b`, of which no more is known, not even where `b` is not 0."""
    return a / b if z3.is_rational_value(z3.simplify(b)) else a * opaque("reciprocal", z3.RealSort(), b)


def compared(direction: str, a: Term, b: Term, element: str) -> Term:
    """A comparison of two elements."""
    if direction in ("EQ", "NE"):
        return a == b if direction == "EQ" else a != b
    if element == "i1":
        a, b = z3.If(a, 1, 0), z3.If(b, 1, 0)
    if z3.is_bv(a) and not is_signed(element):
        return {"LT": z3.ULT, "LE": z3.ULE, "GT": z3.UGT, "GE": z3.UGE}[direction](a, b)
    return {"LT": a < b, "LE": a <= b, "GT": a > b, "GE": a >= b}[direction]


def elementwise(name: str, operands: list[Term], element: str, result: str, more: str, scope: Scope) -> Term:
    """An elementwise op on elements of one type; `more` is the text of its attributes."""
    if name == "select":
        return z3.If(*operands)
    if name == "negate" and element != "i1":
        return -operands[0]
    if name == "not":
        return z3.Not(operands[0]) if element == "i1" else ~operands[0]
    if len(operands) == 2:
        known = binary(name, operands[0], operands[1], element)
        if known is not None:
            return known
    return opaque(f"{name} {more} {element}", sort_of(result, scope), *operands)
