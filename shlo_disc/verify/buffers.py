# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Walks a planned program in the order in which it runs, and follows what lies in every buffer.

It reads the plan as the lowering does, and nothing of how it was made: `disc.buffers` of each call, loop and branch. At
every moment each place holds some values, which are one and the same there. A read must find its value. A write ends
what other values lie in a place that is not proved to be apart from the one that is written. A loop is walked through
twice, so that an iteration meets what the one before has left; what branches leave is what all of them leave.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from shlo_disc.errors import CompilerError
from shlo_disc.mlir import func, ir
from shlo_disc.shape_dialect.dialect.buffers import BUFFERS, ArenaBuffer, Buffer, ResultBuffer, arenas_of, buffers_of
from shlo_disc.shape_dialect.dialect.types import Dims, bytes_of, dims_of, element_type_of
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation
from shlo_disc.verify.overwriting import Kernels, may_write_over

_SAMPLES = 256
"""Sizes at which an inequality is tried that is not proved."""

_RESHAPES = ("stablehlo.reshape", "stablehlo.dynamic_reshape")
_CHOICES = ("stablehlo.if", "stablehlo.case")


class BufferSlice(NamedTuple):
    """Bytes at `offset` of an arena, or a whole argument, result or constant, which `number` it has."""

    space: str
    number: int
    offset: Expr
    bytes: Expr


@dataclass
class _State:
    """What lies where: for each place, the values that are there, and what has ended a value elsewhere."""

    values: dict[BufferSlice, frozenset[ir.Value]] = field(default_factory=dict)
    ended_by: dict[ir.Value, ir.Operation] = field(default_factory=dict)

    def copy(self) -> _State:
        return _State(dict(self.values), dict(self.ended_by))

    def joined(self, other: _State) -> _State:
        """What both hold."""
        both = {place: values & other.values[place] for place, values in self.values.items() if place in other.values}
        return _State({p: v for p, v in both.items() if v}, {**other.ended_by, **self.ended_by})


def verify_buffers(module: ir.Module, facts: Facts, entry: ir.Block) -> None:
    """Check the memory plan of a planned module whose entry function has the block `entry`.

    Raises CompilerError where a value is read that is not there, or not any more, where a buffer does not fit its
    place, where two results of one kernel share memory, and where a result of the program is not written.
    """
    _Walk(module, facts, entry).run()


class _Walk:
    def __init__(self, module: ir.Module, facts: Facts, entry: ir.Block):
        self.facts = facts
        self.entry = entry
        self.kernels: Kernels = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
        self.arenas = arenas_of(module.operation)
        self.places: dict[ir.Value, BufferSlice] = {}
        self.state = _State()
        self.slices = [_Slices(self._buffers_of(n), size, facts) for n, size in enumerate(self.arenas)]

    def run(self) -> None:
        zero = Expr.const(0)
        for number, argument in enumerate(self.entry.arguments):
            self._start_with(argument, BufferSlice("argument", number, zero, self._bytes(argument)))
        self._block(self.entry)
        *_, last = self.entry.operations
        for number, value in enumerate(last.operands):
            place = self.places[_buffer(value)]
            if (place.space, place.number) != ("result", number):
                self._fail(last.operation, f"result {number} of the program lies in {_text(place)}")
            if self.facts.prove(Relation.eq(place.bytes, self._bytes(value))) is not True:
                self._fail(last.operation, f"result {number} of the program is not written whole")

    def _start_with(self, value: ir.Value, place: BufferSlice) -> None:
        self.places[value] = place
        self.state.values[place] = frozenset([value])

    # ---- blocks ---------------------------------------------------------------------------------------------------

    def _block(self, block: ir.Block) -> None:
        for op in block.operations:
            self._op(op.operation)

    def _op(self, op: ir.Operation) -> None:
        if op.name == "stablehlo.constant":
            if _is_buffer(op):
                self._start_with(
                    op.results[0], BufferSlice("constant", id(op), Expr.const(0), self._bytes(op.results[0]))
                )
        elif op.name == "stablehlo.while":
            self._loop(op)
        elif op.name in _CHOICES:
            self._choice(op)
        elif op.name not in _RESHAPES and op.name != "disc.shape":
            self._reads(op, op.operands)
            if op.results:
                self._call(op)

    def _reads(self, op: ir.Operation, operands: Iterable[ir.Value]) -> None:
        for value in operands:
            source = _buffer(value)
            if not isinstance(source.owner, ir.Block) and source.owner.operation.name == "disc.shape":
                continue
            place = self.places.get(source)
            if place is None:
                self._fail(op, f"it reads {_name(source)}, which has no buffer")
            elif not self._holds(place, source):
                ended = self.state.ended_by.get(source)
                by = f"overwritten by {_title(ended)}" if ended is not None else "not written"
                self._fail(op, f"it reads {_name(source)} in {_text(place)}, where that is {by}")

    def _call(self, op: ir.Operation) -> None:
        self._place_results(op)
        results = [self.places[r] for r in op.results]
        for number, place in enumerate(results):
            for other in results[:number]:
                if not self._are_apart(place, other):
                    self._fail(op, f"two of its results lie in {_text(place)} and {_text(other)}")
            self._check_operands(op, number, place)
        for value, place in zip(op.results, results, strict=True):
            self._write(op, place, [value])

    def _check_operands(self, op: ir.Operation, number: int, place: BufferSlice) -> None:
        """A result may share memory with an operand only where the kernel reads of it what it then overwrites."""
        for position, operand in enumerate(op.operands):
            source = _buffer(operand)
            there = self.places.get(source)
            if there is None or self._are_apart(there, place):
                continue
            once = sum(_buffer(v) == source for v in op.operands) == 1
            if there[:3] == place[:3] and once and may_write_over(op, position, number, self.kernels):
                continue
            self._fail(op, f"result {number} in {_text(place)} overwrites {_name(source)}, which it reads")

    # ---- loops and branches -----------------------------------------------------------------------------------------

    def _loop(self, op: ir.Operation) -> None:
        condition, body = (region.blocks[0] for region in op.regions)
        self._place_results(op)
        carried = [self.places[r] for r in op.results]
        for block in (condition, body):
            self.places.update(zip(block.arguments, carried, strict=True))
        self._copies(op, op.operands, carried)
        after: _State | None = None
        for _ in range(2):
            self._enter([*_values_in(condition), *_values_in(body)])
            self._hold(carried, condition.arguments, body.arguments)
            self._block(condition)
            after = self.state.copy() if after is None else after.joined(self.state)
            self._block(body)
            *_, last = body.operations
            self._copies(last.operation, last.operands, carried)
        self._enter([*_values_in(condition), *_values_in(body)])
        self._hold(carried, condition.arguments, body.arguments)
        self._block(condition)
        self.state = after.joined(self.state) if after is not None else self.state
        for result, argument, place in zip(op.results, condition.arguments, carried, strict=True):
            if not self._holds(place, argument):
                self._fail(op, f"what it carries in {_text(place)} is overwritten when it ends")
            self._add(place, result)

    def _choice(self, op: ir.Operation) -> None:
        self._reads(op, op.operands)
        self._place_results(op)
        places = [self.places[r] for r in op.results]
        before, after = self.state, None
        for region in op.regions:
            self.state = before.copy()
            self._block(region.blocks[0])
            *_, last = region.blocks[0].operations
            self._copies(last.operation, last.operands, places)
            for place, result in zip(places, op.results, strict=True):
                self._add(place, result)
            after = self.state if after is None else after.joined(self.state)
        self.state = before if after is None else after
        for place, result in zip(places, op.results, strict=True):
            if not self._holds(place, result):
                self._fail(op, f"its result in {_text(place)} is not written by all branches")

    def _copies(self, op: ir.Operation, sources: Sequence[ir.Value], places: Sequence[BufferSlice]) -> None:
        """One copy after the other, of what is not yet where it has to be; all of it is there in the end."""
        for number, (value, place) in enumerate(zip(sources, places, strict=True)):
            self._reads(op, [value])
            source = _buffer(value)
            if self.places[source][:3] != place[:3]:
                self._write(op, place, [])
            rest = [v for v, p in zip(sources[:number], places, strict=False) if not self._are_apart(place, p)]
            if rest and self.places[source][:3] != place[:3]:
                self._fail(op, f"two values go to {_text(place)}")

    def _enter(self, values: Sequence[ir.Value]) -> None:
        """Forget what an earlier iteration has left: the values of a block are not made yet when it begins."""
        gone = set(values)
        self.state.values = {place: held - gone for place, held in self.state.values.items()}

    def _hold(self, carried: Sequence[BufferSlice], *arguments: Sequence[ir.Value]) -> None:
        for values in arguments:
            for place, value in zip(carried, values, strict=True):
                self._add(place, value)

    # ---- places -----------------------------------------------------------------------------------------------------

    def _place_results(self, op: ir.Operation) -> None:
        if any(result in self.places for result in op.results):
            return
        if BUFFERS not in op.attributes:
            self._fail(op, "it has no buffers")
        for result, buffer in zip(op.results, buffers_of(op), strict=True):
            self.places[result] = self._place(op, result, buffer)

    def _place(self, op: ir.Operation, result: ir.Value, buffer: Buffer) -> BufferSlice:
        size = self._bytes(result)
        if isinstance(buffer, ResultBuffer):
            return BufferSlice("result", buffer.index, Expr.const(0), size)
        place = BufferSlice("arena", buffer.segment, buffer.offset, size)
        if place.number >= len(self.arenas) or not self.slices[place.number].fits(place):
            self._fail(op, f"its result of {size} bytes is not proved to fit at {_text(place)}")
        return place

    def _write(self, op: ir.Operation, place: BufferSlice, values: Iterable[ir.Value]) -> None:
        for other, held in list(self.state.values.items()):
            if not self._are_apart(place, other):
                self.state.ended_by.update(dict.fromkeys(held, op))
                del self.state.values[other]
        self.state.values[place] = frozenset(values)

    def _add(self, place: BufferSlice, value: ir.Value) -> None:
        self.state.values[place] = self.state.values.get(place, frozenset()) | {value}

    def _holds(self, place: BufferSlice, value: ir.Value) -> bool:
        """Whether a value lies in a place; one without elements is anywhere."""
        return place.bytes.constant == 0 or value in self.state.values.get(place, ())

    def _are_apart(self, a: BufferSlice, b: BufferSlice) -> bool:
        if a[:2] != b[:2] or a.bytes.constant == 0 or b.bytes.constant == 0:
            return True
        return a.space == "arena" and self.slices[a.number].are_apart(a, b)

    def _buffers_of(self, segment: int) -> dict[Expr, set[Expr]]:
        """The offsets of buffers in an arena, and how many bytes lie at each."""
        found: dict[Expr, set[Expr]] = {}
        for op in _all_ops(self.entry):
            entries = buffers_of(op) if BUFFERS in op.attributes else []
            for result, entry in zip(op.results, entries, strict=False):
                if isinstance(entry, ArenaBuffer) and entry.segment == segment:
                    found.setdefault(entry.offset, set()).add(self._bytes(result))
        return found

    @staticmethod
    def _bytes(value: ir.Value) -> Expr:
        return _count(dims_of(value)) * bytes_of(element_type_of(value))

    def _fail(self, op: ir.Operation, text: str) -> None:
        raise CompilerError(f"plan: the buffers of {_title(op)} are wrong: {text}")


class _Slices:
    """The slices of an arena, from each offset to the next: proofs about n of them, where pairs would need n * n.

    Offsets are put in the order that they have at likely sizes, and each is then proved to be no larger than the next:
    by itself, or because a buffer lies between them, which has no negative size.
    """

    def __init__(self, buffers: dict[Expr, set[Expr]], size: Expr, facts: Facts):
        self.facts = facts
        starts = sorted(buffers, key=facts.estimate)
        self.next = dict(zip(starts, [*starts[1:], size], strict=False))
        self.order = {offset: number for number, offset in enumerate(starts)}
        self._known: dict[Expr, bool] = {}
        self.is_sorted = self._proves(starts[0]) if starts else True
        for before, after in self.next.items():
            fitting = (self._proves(after - before - bytes_) for bytes_ in (*buffers[before], Expr.const(0)))
            self.is_sorted = self.is_sorted and any(fitting)

    def fits(self, place: BufferSlice) -> bool:
        """Whether a buffer ends before the next slice begins, or the arena ends."""
        return self.is_sorted and self._proves(self.next[place.offset] - place.offset - place.bytes)

    def are_apart(self, a: BufferSlice, b: BufferSlice) -> bool:
        """Whether two buffers of the arena share no byte."""
        if a.offset == b.offset:
            return False
        return self.fits(a if self.order[a.offset] < self.order[b.offset] else b)

    def _proves(self, expression: Expr) -> bool:
        if expression not in self._known:
            constant = _without_floors(expression).constant
            proved = constant is not None and constant >= 0
            proved = proved or self.facts.prove(Relation.ge(expression, 0)) is True
            self._known[expression] = proved or self._holds_everywhere(expression)
        return self._known[expression]

    def _holds_everywhere(self, expression: Expr) -> bool:
        """Whether an expression that is not proved is 0 or more at sizes of all kinds: one that fails is a fault."""
        return all(value >= 0 for value in self.facts.sampled_values(expression, _SAMPLES))


def _without_floors(expression: Expr) -> Expr:
    """No more than `expression`: sizes that are rounded up are at least what they were, whatever that is."""
    total = Expr.const(0)
    for coefficient, monomial in expression.terms:
        term = Expr.const(coefficient)
        for atom, power in monomial:
            for _ in range(power):
                term = term * Expr.of_atom(atom)
        if coefficient > 0 and len(monomial) == 1 and monomial[0][1] == 1 and monomial[0][0].kind == "floordiv":
            dividend, divisor = monomial[0][0].operands
            by = divisor.constant
            if by is not None and by > 0 and coefficient % by == 0:
                term = (dividend - by + 1) * (coefficient // by)
        total = total + term
    return total


def _all_ops(block: ir.Block) -> Iterator[ir.Operation]:
    for op in block.operations:
        yield op.operation
        if op.operation.name == "stablehlo.while" or op.operation.name in _CHOICES:
            for region in op.regions:
                yield from _all_ops(region.blocks[0])


def _count(dims: Dims) -> Expr:
    total = Expr.const(1)
    for dim in dims:
        total = total * dim
    return total


def _buffer(value: ir.Value) -> ir.Value:
    """The value whose buffer a reshape is a view of."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in _RESHAPES:
        value = value.owner.operands[0]
    return value


def _values_in(block: ir.Block) -> Iterator[ir.Value]:
    yield from block.arguments
    for op in block.operations:
        if op.operation.name != "stablehlo.constant":
            yield from op.results
        if op.operation.name == "stablehlo.while" or op.operation.name in _CHOICES:
            for region in op.regions:
                yield from _values_in(region.blocks[0])


def _is_buffer(op: ir.Operation) -> bool:
    return isinstance(op.results[0].type, ir.RankedTensorType)


def _name(value: ir.Value) -> str:
    return value.get_name()


def _title(op: ir.Operation) -> str:
    callee = f" @{ir.FlatSymbolRefAttr(op.attributes['callee']).value}" if op.name == "func.call" else ""
    return f"{op.name}{callee}"


def _text(place: BufferSlice) -> str:
    if place.space == "arena":
        return f"arena {place.number} at {place.offset}" if place.number else f"the arena at {place.offset}"
    return f"{place.space} {place.number}"


__all__ = ["BufferSlice", "verify_buffers"]
