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
from shlo_disc.shape_dialect.dialect.host import Check
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
    """Values of a division: adjust says whether the remainder has the other sign than the divisor, "" for never."""

    dividend: str
    divisor: str
    remainder: str
    adjust: str


Monomial = tuple[tuple[Atom, int], ...]


class PlanWriter:
    """Writes `disc_plan`.

    minima: numbers that symbols are not below, or else a check fails. scaled: the largest coefficients, by sign, for
    which multiples of a monomial are checked; smaller multiples do not overflow where these do not.
    """

    def __init__(self, symbols: Sequence[str], minima: Mapping[str, int] = MappingProxyType({})):
        self.lines: list[str] = []
        self.values: dict[object, str] = {}
        self.minima = minima
        self.scaled: dict[tuple[Monomial, bool], int] = {}
        self.divisions: dict[tuple[Expr, Expr], _Division] = {}
        self.count = 0
        self.overflow = self._op("llvm.mlir.constant(false) : i1")
        for position, name in enumerate(symbols):
            address = self._op(f"llvm.getelementptr %symbols[{position}] : (!llvm.ptr) -> !llvm.ptr, i64")
            self.values[name] = self._op(f"llvm.load {address} : !llvm.ptr -> i64")

    def _op(self, text: str) -> str:
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def constant(self, number: int) -> str:
        """An i64 constant."""
        key = ("constant", number)
        if key not in self.values:
            self.values[key] = self._op(f"llvm.mlir.constant({number} : i64) : i64")
        return self.values[key]

    def _checked(self, operation: str, a: str, b: str) -> str:
        key = operation, a, b
        if key not in self.values:
            self.values[key] = self._newly_checked(operation, a, b)
        return self.values[key]

    def _newly_checked(self, operation: str, a: str, b: str) -> str:
        pair = self._op(f'"llvm.intr.{operation}.with.overflow"({a}, {b}) : (i64, i64) -> !llvm.struct<(i64, i1)>')
        flag = self._op(f"llvm.extractvalue {pair}[1] : !llvm.struct<(i64, i1)>")
        self.overflow = self._op(f"llvm.or {self.overflow}, {flag} : i1")
        return self._op(f"llvm.extractvalue {pair}[0] : !llvm.struct<(i64, i1)>")

    def value(self, e: Expr) -> str:
        """The value of an expression; sets the overflow flag on the way when it does not fit 64 bits."""
        if e not in self.values:
            self.values[e] = self._sum(e)
        return self.values[e]

    def _sum(self, e: Expr) -> str:
        if e.constant is not None:
            return self.constant(e.constant)
        first, *others = sorted(e.terms, key=lambda term: term[0] < 0)
        total = self._term(*first)
        for coefficient, monomial in others:
            is_subtracted = coefficient == -1 and bool(monomial)
            term = self._term(1 if is_subtracted else coefficient, monomial)
            total = self._checked("ssub" if is_subtracted else "sadd", total, term)
        return total

    def _term(self, coefficient: int, monomial: Monomial) -> str:
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
            return self._op(f"llvm.mul {result}, {self.constant(coefficient)} : i64")
        self.scaled[key] = abs(coefficient)
        return self._checked("smul", result, self.constant(coefficient))

    def atom(self, atom: Atom) -> str:
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

    def _extremum(self, name: str, operands: list[str]) -> str:
        result = operands[0]
        for operand in operands[1:]:
            result = self._op(f'"llvm.intr.{name}"({result}, {operand}) : (i64, i64) -> i64')
        return result

    def _rounded_down(self, atom: FloorDiv | Mod) -> str:
        """A quotient rounded down, or a remainder of the divisor's sign."""
        dividend, divisor, rest, adjust = self._division(*atom.operands)
        if not adjust:
            return rest if isinstance(atom, Mod) else self._op(f"llvm.sdiv {dividend}, {divisor} : i64")
        if isinstance(atom, Mod):
            raised = self._op(f"llvm.add {rest}, {divisor} : i64")
            return self._op(f"llvm.select {adjust}, {raised}, {rest} : i1, i64")
        quotient = self._op(f"llvm.sdiv {dividend}, {divisor} : i64")
        lower = self._op(f"llvm.sub {quotient}, {self.constant(1)} : i64")
        return self._op(f"llvm.select {adjust}, {lower}, {quotient} : i1, i64")

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
            has_none = self._op(f'llvm.icmp "eq" {given}, {zero} : i64')
            if a.constant in (None, _SMALLEST):
                is_smallest = self._op(f'llvm.icmp "eq" {dividend}, {self.constant(_SMALLEST)} : i64')
                is_minus_one = self._op(f'llvm.icmp "eq" {given}, {self.constant(-1)} : i64')
                is_large = self._op(f"llvm.and {is_smallest}, {is_minus_one} : i1")
                has_none = self._op(f"llvm.or {has_none}, {is_large} : i1")
            self.overflow = self._op(f"llvm.or {self.overflow}, {has_none} : i1")
            divisor = self._op(f"llvm.select {has_none}, {self.constant(1)}, {given} : i1, i64")
        rest = self._op(f"llvm.srem {dividend}, {divisor} : i64")
        if self._is_natural(a) and self._is_natural(b):
            return _Division(dividend, divisor, rest, "")
        inexact = self._op(f'llvm.icmp "ne" {rest}, {zero} : i64')
        signs = self._op(f"llvm.xor {rest}, {divisor} : i64")
        differ = self._op(f'llvm.icmp "slt" {signs}, {zero} : i64')
        return _Division(dividend, divisor, rest, self._op(f"llvm.and {inexact}, {differ} : i1"))

    _PREDICATE = {"==": "eq", "!=": "ne", ">=": "sge", ">": "sgt", "<=": "sle", "<": "slt"}

    def failed(self, relation: Relation) -> str:
        """1 when the relation does not hold."""
        a, b = self.value(relation.lhs), self.value(relation.rhs)
        holds = self._op(f'llvm.icmp "{self._PREDICATE[relation.operator]}" {a}, {b} : i64')
        true = self._op("llvm.mlir.constant(true) : i1")
        return self._op(f"llvm.xor {holds}, {true} : i1")

    def store(self, word: int, value: str) -> None:
        """words[word] = value."""
        address = self._op(f"llvm.getelementptr %words[{word}] : (!llvm.ptr) -> !llvm.ptr, i64")
        self.lines.append(f"  llvm.store {value}, {address} : i64, !llvm.ptr")


def _minima(checks: Sequence[Check]) -> dict[str, int]:
    """The least numbers that checks leave to symbols."""
    found: dict[str, int] = {}
    for relation in (check.relation for check in checks):
        symbol, least = relation.lhs.single_atom, relation.rhs.constant
        if relation.operator == ">=" and isinstance(symbol, Symbol) and least is not None:
            found[symbol.name] = max(least, found.get(symbol.name, least))
    return found


def write_plan(symbols: Sequence[str], checks: Sequence[Check], words: Words, segment: int = 0) -> str:
    """The text of `disc_plan`. The last check of the header is the overflow check."""
    writer = PlanWriter(symbols, _minima(checks))
    zero = writer.constant(0)
    code = zero
    for number, check in enumerate(checks):
        failed = writer.failed(check.relation)
        first = writer._op(f'llvm.icmp "eq" {code}, {zero} : i64')
        both = writer._op(f"llvm.and {first}, {failed} : i1")
        code = writer._op(f"llvm.select {both}, {writer.constant(number + 1)}, {code} : i1, i64")
    for position, size in [*enumerate(words.fixed), *((p, e) for e, p in words.private.items())]:
        writer.store(position, writer.value(size))
    first = writer._op(f'llvm.icmp "eq" {code}, {zero} : i64')
    both = writer._op(f"llvm.and {first}, {writer.overflow} : i1")
    code = writer._op(f"llvm.select {both}, {writer.constant(len(checks) + 1)}, {code} : i1, i64")
    body = "\n".join(writer.lines)
    return (
        f"llvm.func @{function_name('disc_plan', segment)}(%symbols: !llvm.ptr, %words: !llvm.ptr) -> i64 {{\n"
        f"{body}\n  llvm.return {code} : i64\n}}"
    )
