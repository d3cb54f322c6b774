# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The host program: `disc_plan` (sizes, checks, offsets) and `disc_run` (fill the arguments, launch).

Both are straight-line code in the LLVM dialect. Everything that depends on sizes alone is computed by `disc_plan`, once
per new shape, into words that the runtime remembers; `disc_run` only loads them. All size arithmetic is checked for
overflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from shlo_disc.shape_dialect.expr import Atom, Expr, FloorDiv, Max, Min, Mod, Symbol
from shlo_disc.shape_dialect.facts import Relation


@dataclass(frozen=True)
class Check:
    """A condition on sizes and the text of its error: `kind` as in the artifact's header."""

    kind: str
    relation: Relation
    message: str
    operands: tuple[Expr, ...] = ()


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
        """How many words a plan has."""
        return len(self.fixed) + len(self.private)


class PlanWriter:
    """Writes `disc_plan`."""

    def __init__(self, symbols: Sequence[str]):
        self.lines: list[str] = []
        self.values: dict[object, str] = {}
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
        total: str | None = None
        for coefficient, monomial in e.terms:
            term = self._term(coefficient, monomial)
            total = term if total is None else self._checked("sadd", total, term)
        return total or self.constant(0)

    def _term(self, coefficient: int, monomial: tuple[tuple[Atom, int], ...]) -> str:
        factors = [self.atom(a) for a, power in monomial for _ in range(power)]
        if coefficient != 1 or not factors:
            factors.insert(0, self.constant(coefficient))
        result = factors[0]
        for factor in factors[1:]:
            result = self._checked("smul", result, factor)
        return result

    def atom(self, atom: Atom) -> str:
        """The value of an atom."""
        if isinstance(atom, Symbol):
            return self.values[atom.name]
        if atom not in self.values:
            operands = [self.value(o) for o in atom.operands]
            if isinstance(atom, Max | Min):
                self.values[atom] = self._extremum("smax" if isinstance(atom, Max) else "smin", operands)
            elif isinstance(atom, FloorDiv | Mod):
                quotient, remainder = self._floor_divide(*operands)
                self.values[atom] = quotient if isinstance(atom, FloorDiv) else remainder
        return self.values[atom]

    def _extremum(self, name: str, operands: list[str]) -> str:
        result = operands[0]
        for operand in operands[1:]:
            result = self._op(f'"llvm.intr.{name}"({result}, {operand}) : (i64, i64) -> i64')
        return result

    def _floor_divide(self, a: str, b: str) -> tuple[str, str]:
        """Quotient rounded down and remainder of the divisor's sign; division by zero counts as an overflow."""
        zero, one = self.constant(0), self.constant(1)
        is_zero = self._op(f'llvm.icmp "eq" {b}, {zero} : i64')
        self.overflow = self._op(f"llvm.or {self.overflow}, {is_zero} : i1")
        divisor = self._op(f"llvm.select {is_zero}, {one}, {b} : i1, i64")
        quotient = self._op(f"llvm.sdiv {a}, {divisor} : i64")
        product = self._op(f"llvm.mul {quotient}, {divisor} : i64")
        rest = self._op(f"llvm.sub {a}, {product} : i64")
        inexact = self._op(f'llvm.icmp "ne" {rest}, {zero} : i64')
        signs = self._op(f"llvm.xor {rest}, {divisor} : i64")
        differ = self._op(f'llvm.icmp "slt" {signs}, {zero} : i64')
        adjust = self._op(f"llvm.and {inexact}, {differ} : i1")
        lower = self._op(f"llvm.sub {quotient}, {one} : i64")
        raised = self._op(f"llvm.add {rest}, {divisor} : i64")
        return (
            self._op(f"llvm.select {adjust}, {lower}, {quotient} : i1, i64"),
            self._op(f"llvm.select {adjust}, {raised}, {rest} : i1, i64"),
        )

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


def write_plan(symbols: Sequence[str], checks: Sequence[Check], words: Words) -> str:
    """The text of `disc_plan`. The last check of the header is the overflow check."""
    writer = PlanWriter(symbols)
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
        "llvm.func @disc_plan(%symbols: !llvm.ptr, %words: !llvm.ptr) -> i64 {\n"
        f"{body}\n  llvm.return {code} : i64\n}}"
    )


@dataclass(frozen=True)
class Place:
    """Where a buffer is at run time: `space` is "buffer" with an index, or "arena" with an offset in bytes."""

    space: str
    index: int = 0
    offset: Expr = field(default_factory=lambda: Expr.const(0))


@dataclass(frozen=True)
class Launch:
    """One kernel launch: buffers, then sizes, over [0, total) in ranges of at least `grain`."""

    kernel: str
    buffers: tuple[Place, ...]
    sizes: tuple[Expr, ...]
    total: Expr
    grain: Expr


@dataclass(frozen=True)
class DotCall:
    """One call of the runtime's dot: the fields of DiscDot before the pointers, then lhs, rhs and result."""

    words: tuple[Expr, ...]
    buffers: tuple[Place, ...]


class RunWriter:
    """Writes `disc_run`."""

    def __init__(self, words: Words, capacity: int):
        self.words = words
        self.lines: list[str] = []
        self.count = 0
        self.known: dict[object, str] = {}
        size = self.constant(max(1, capacity))
        self.block = self._op(f"llvm.alloca {size} x i64 : (i64) -> !llvm.ptr")
        self.function = {name: self._function(i) for i, name in enumerate(("launch", "dot"))}

    def _op(self, text: str) -> str:
        self.count += 1
        name = f"%r{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def _once(self, key: object, text: str) -> str:
        if key not in self.known:
            self.known[key] = self._op(text)
        return self.known[key]

    def constant(self, number: int) -> str:
        """An i64 constant."""
        return self._once(("constant", number), f"llvm.mlir.constant({number} : i64) : i64")

    def _function(self, index: int) -> str:
        address = self._op(f"llvm.getelementptr %rt[{index}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr")
        return self._op(f"llvm.load {address} : !llvm.ptr -> !llvm.ptr")

    def size(self, e: Expr) -> str:
        """A constant, or the word that the plan computed."""
        if e.constant is not None:
            return self.constant(e.constant)
        if e not in self.known:
            place = self.words.place(e)
            address = self._op(f"llvm.getelementptr %words[{place}] : (!llvm.ptr) -> !llvm.ptr, i64")
            self.known[e] = self._op(f"llvm.load {address} : !llvm.ptr -> i64")
        return self.known[e]

    def pointer(self, place: Place) -> str:
        """The address of a buffer."""
        if place in self.known:
            return self.known[place]
        if place.space == "buffer":
            address = self._op(f"llvm.getelementptr %buffers[{place.index}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr")
            self.known[place] = self._op(f"llvm.load {address} : !llvm.ptr -> !llvm.ptr")
        else:
            offset = self.size(place.offset)
            self.known[place] = self._op(f"llvm.getelementptr %arena[{offset}] : (!llvm.ptr, i64) -> !llvm.ptr, i8")
        return self.known[place]

    def _put(self, word: int, value: str, type_: str) -> None:
        address = self._once(
            ("block", word), f"llvm.getelementptr {self.block}[{word}] : (!llvm.ptr) -> !llvm.ptr, i64"
        )
        self.lines.append(f"  llvm.store {value}, {address} : {type_}, !llvm.ptr")

    def launch(self, launch: Launch) -> None:
        """Fill the argument block and launch."""
        for word, place in enumerate(launch.buffers):
            self._put(word, self.pointer(place), "!llvm.ptr")
        for word, size in enumerate(launch.sizes, len(launch.buffers)):
            self._put(word, self.size(size), "i64")
        kernel = self._once(("kernel", launch.kernel), f"llvm.mlir.addressof @{launch.kernel}_entry : !llvm.ptr")
        total, grain = self.size(launch.total), self.size(launch.grain)
        self.lines.append(
            f"  llvm.call {self.function['launch']}(%rt, {kernel}, {self.block}, {total}, {grain}) "
            ": !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64) -> ()"
        )

    def dot(self, call: DotCall) -> None:
        """Fill a DiscDot and call the runtime's dot."""
        for word, size in enumerate(call.words):
            self._put(word, self.size(size), "i64")
        for word, place in enumerate(call.buffers, len(call.words)):
            self._put(word, self.pointer(place), "!llvm.ptr")
        self.lines.append(
            f"  llvm.call {self.function['dot']}(%rt, {self.block}) : !llvm.ptr, (!llvm.ptr, !llvm.ptr) -> ()"
        )

    def text(self) -> str:
        """The function."""
        body = "\n".join(self.lines)
        arguments = "%rt: !llvm.ptr, %buffers: !llvm.ptr, %words: !llvm.ptr, %arena: !llvm.ptr"
        return f"llvm.func @disc_run({arguments}) {{\n{body}\n  llvm.return\n}}"


def write_run(steps: Sequence[Launch | DotCall], words: Words) -> str:
    """The text of `disc_run`."""
    capacity = max(
        (len(s.buffers) + (len(s.sizes) if isinstance(s, Launch) else len(s.words)) for s in steps),
        default=0,
    )
    writer = RunWriter(words, capacity)
    for step in steps:
        if isinstance(step, Launch):
            writer.launch(step)
        else:
            writer.dot(step)
    return writer.text()
