# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The planning half of the host program: `disc_plan` computes sizes, checks and offsets.

Straight-line code in the LLVM dialect. All size arithmetic is checked for overflow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from shlo_disc.lowering.host.segments import function_name
from shlo_disc.lowering.host_llvm.builder import Function, LlvmDialect
from shlo_disc.shape_dialect.dialect.host import Check
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Atom, Expr, FloorDiv, Max, Min, Mod, Symbol
from shlo_disc.shape_dialect.symbolic.facts import Relation


@dataclass
class Words:
    """The plan's words: each expression has one place."""

    fixed: list[Expr]
    private: dict[Expr, int] = field(default_factory=dict)

    def place(self, size: Expr) -> int:
        """The word that holds `size`."""
        if size not in self.private:
            self.private[size] = len(self.fixed) + len(self.private)
        return self.private[size]

    @property
    def count(self) -> int:
        """The number of slots of a plan."""
        return len(self.fixed) + len(self.private)


_SMALLEST = -(2**63)


class _Division(NamedTuple):
    """Values of a division: adjust says whether the remainder has the other sign than the divisor, None for never."""

    dividend: ir.Value
    divisor: ir.Value
    remainder: ir.Value
    adjust: ir.Value | None


Monomial = tuple[tuple[Atom, int], ...]


class SizeWriter:
    """Writes the computation of sizes into a function that stores them to `words`.

    minima: numbers that symbols are not below, or else a check fails. scaled: the largest coefficients, by sign, for
    which multiples of a monomial are checked; smaller multiples do not overflow where these do not.
    """

    def __init__(self, function: Function, words: ir.Value, minima: Mapping[str, int] = MappingProxyType({})):
        self.dialect = function.body.dialect
        self.function = function
        self.body = function.body
        self.words = words
        self.values: dict[object, ir.Value] = {}
        self.minima = minima
        self.scaled: dict[tuple[Monomial, bool], int] = {}
        self.divisions: dict[tuple[Expr, Expr], _Division] = {}
        self.overflow = self.body.flag(False)

    def load(self, key: object, table: ir.Value, position: int) -> None:
        """Have a symbol, or an expression, the value at a position of a table."""
        self.values[key] = self.body.load(self.body.gep(table, position, self.dialect.i64), self.dialect.i64)

    def constant(self, number: int) -> ir.Value:
        """An i64 constant."""
        key = ("constant", number)
        if key not in self.values:
            self.values[key] = self.body.constant(number)
        return self.values[key]

    def _checked(self, operation: str, a: ir.Value, b: ir.Value) -> ir.Value:
        key = operation, a, b
        if key not in self.values:
            self.values[key] = self._newly_checked(operation, a, b)
        return self.values[key]

    def _newly_checked(self, operation: str, a: ir.Value, b: ir.Value) -> ir.Value:
        pair = self.body.checked(operation, a, b)
        flag = self.body.extract(pair, 1, self.dialect.i1)
        self.overflow = self.body.arithmetic("or", self.overflow, flag)
        return self.body.extract(pair, 0, self.dialect.i64)

    def value(self, e: Expr) -> ir.Value:
        """The value of an expression; sets the overflow flag on the way when it does not fit 64 bits."""
        if e not in self.values:
            self.values[e] = self._sum(e)
        return self.values[e]

    def _sum(self, e: Expr) -> ir.Value:
        if e.constant is not None:
            return self.constant(e.constant)
        first, *others = sorted(e.terms, key=lambda term: term[0] < 0)
        total = self._term(*first)
        for coefficient, monomial in others:
            is_subtracted = coefficient == -1 and bool(monomial)
            term = self._term(1 if is_subtracted else coefficient, monomial)
            total = self._checked("ssub" if is_subtracted else "sadd", total, term)
        return total

    def _term(self, coefficient: int, monomial: Monomial) -> ir.Value:
        factors = [self.atom(a) for a, power in monomial for _ in range(power)]
        if not factors:
            return self.constant(coefficient)
        result = factors[0]
        for factor in factors[1:]:
            result = self._checked("smul", result, factor)
        if coefficient == 1:
            return result
        key = monomial, coefficient < 0
        if abs(coefficient) <= self.scaled.get(key, 0):
            return self.body.arithmetic("mul", result, self.constant(coefficient))
        self.scaled[key] = abs(coefficient)
        return self._checked("smul", result, self.constant(coefficient))

    def atom(self, atom: Atom) -> ir.Value:
        """The value of an atom."""
        if isinstance(atom, Symbol):
            return self.values[atom.name]
        if atom not in self.values:
            if isinstance(atom, Max | Min):
                operands = [self.value(o) for o in atom.operands]
                self.values[atom] = self._extremum("smax" if isinstance(atom, Max) else "smin", operands)
            elif isinstance(atom, FloorDiv | Mod):
                self.values[atom] = self._rounded_down(atom)
        return self.values[atom]

    def _extremum(self, name: str, operands: list[ir.Value]) -> ir.Value:
        result = operands[0]
        for operand in operands[1:]:
            result = self.body.arithmetic(f"intr.{name}", result, operand)
        return result

    def _rounded_down(self, atom: FloorDiv | Mod) -> ir.Value:
        """A quotient rounded down, or a remainder of the divisor's sign."""
        dividend, divisor, rest, adjust = self._division(*atom.operands)
        if adjust is None:
            return rest if isinstance(atom, Mod) else self.body.arithmetic("sdiv", dividend, divisor)
        if isinstance(atom, Mod):
            raised = self.body.arithmetic("add", rest, divisor)
            return self.body.select(adjust, raised, rest)
        quotient = self.body.arithmetic("sdiv", dividend, divisor)
        lower = self.body.arithmetic("sub", quotient, self.constant(1))
        return self.body.select(adjust, lower, quotient)

    def _is_natural(self, e: Expr) -> bool:
        """Tells whether an expression is not negative unless a check fails."""
        atoms = {atom for _, monomial in e.terms for atom, _ in monomial}
        return all(c >= 0 for c, _ in e.terms) and all(map(self._is_natural_atom, atoms))

    def _is_natural_atom(self, atom: Atom) -> bool:
        match atom:
            case Symbol():
                return self.minima.get(atom.name, -1) >= 0
            case Max():
                return any(map(self._is_natural, atom.operands))
            case Mod():
                return self._is_natural(atom.operands[1])
        return all(map(self._is_natural, atom.operands))

    def _division(self, a: Expr, b: Expr) -> _Division:
        """The division of `a` by `b`. Overflow if it has no quotient: by zero, and of the smallest number by -1."""
        if (a, b) not in self.divisions:
            self.divisions[a, b] = self._divide(a, b)
        return self.divisions[a, b]

    def _divide(self, a: Expr, b: Expr) -> _Division:
        zero = self.constant(0)
        dividend = self.value(a)
        divisor = given = self.value(b)
        if b.constant is None or b.constant in (0, -1):
            has_none = self.body.compare("eq", given, zero)
            if a.constant in (None, _SMALLEST):
                is_smallest = self.body.compare("eq", dividend, self.constant(_SMALLEST))
                is_minus_one = self.body.compare("eq", given, self.constant(-1))
                is_large = self.body.arithmetic("and", is_smallest, is_minus_one)
                has_none = self.body.arithmetic("or", has_none, is_large)
            self.overflow = self.body.arithmetic("or", self.overflow, has_none)
            divisor = self.body.select(has_none, self.constant(1), given)
        rest = self.body.arithmetic("srem", dividend, divisor)
        if self._is_natural(a) and self._is_natural(b):
            return _Division(dividend, divisor, rest, None)
        inexact = self.body.compare("ne", rest, zero)
        signs = self.body.arithmetic("xor", rest, divisor)
        differ = self.body.compare("slt", signs, zero)
        return _Division(dividend, divisor, rest, self.body.arithmetic("and", inexact, differ))

    _PREDICATE = {"==": "eq", "!=": "ne", ">=": "sge", ">": "sgt", "<=": "sle", "<": "slt"}

    def failed(self, relation: Relation) -> ir.Value:
        """1 when the relation does not hold."""
        a, b = self.value(relation.lhs), self.value(relation.rhs)
        holds = self.body.compare(self._PREDICATE[relation.operator], a, b)
        true = self.body.flag(True)
        return self.body.arithmetic("xor", holds, true)

    def store(self, word: int, value: ir.Value) -> None:
        """words[word] = value."""
        self.body.store(value, self.body.gep(self.words, word, self.dialect.i64))


def _minima(checks: Sequence[Check]) -> dict[str, int]:
    """The least numbers that checks leave to symbols."""
    found: dict[str, int] = {}
    for relation in (check.relation for check in checks):
        symbol, least = relation.lhs.single_atom, relation.rhs.constant
        if relation.operator == ">=" and isinstance(symbol, Symbol) and least is not None:
            found[symbol.name] = max(least, found.get(symbol.name, least))
    return found


def write_plan(
    dialect: LlvmDialect, symbols: Sequence[str], checks: Sequence[Check], words: Words, segment: int = 0
) -> ir.Operation:
    """The function `disc_plan`. The last check of the header is the overflow check."""
    pointers = [dialect.pointer, dialect.pointer]
    function = dialect.function(function_name("disc_plan", segment), pointers, dialect.i64)
    table, plan = function.arguments
    writer = SizeWriter(function, plan, _minima(checks))
    for position, name in enumerate(symbols):
        writer.load(name, table, position)
    body = writer.body
    zero = writer.constant(0)
    code = zero
    for number, check in enumerate(checks):
        failed = writer.failed(check.relation)
        both = body.arithmetic("and", body.compare("eq", code, zero), failed)
        code = body.select(both, writer.constant(number + 1), code)
    for position, size in [*enumerate(words.fixed), *((p, e) for e, p in words.private.items())]:
        writer.store(position, writer.value(size))
    both = body.arithmetic("and", body.compare("eq", code, zero), writer.overflow)
    body.return_(body.select(both, writer.constant(len(checks) + 1), code))
    return writer.function.op
