# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Walks a planned program in the order in which it runs, and follows what lies in every buffer.

It reads the plan as the lowering does, and nothing of how it was made: `disc.buffers` of each call, loop and branch. At
every moment each place holds some values, which are one and the same there. A read must find its value. A write ends
what other values lie in a place that is not proved to be apart from the one that is written. What branches leave is
what all of them leave. A variant of a program has its own arena, and what is in it is in no other's.

A loop is walked through once, from what every iteration finds. That is what the first one finds without what the loop
itself overwrites: it makes no value anew that it has not made itself, so no further iteration finds less. Which places
a loop writes is collected once for each block, so that the work is linear in the ops at any depth of loops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.dialect.buffers import BUFFERS, ArenaBuffer, Buffer, ResultBuffer, arenas_of, buffers_of
from shlo_disc.shape_dialect.dialect.types import Dims, bytes_of, dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import RESHAPES
from shlo_disc.shape_dialect.ops.variants import variant_taken, variants_in
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation
from shlo_disc.shape_dialect.symbolic.facts_witness import value_at
from shlo_disc.shape_dialect.utils.regions import terminator_of
from shlo_disc.verify.buffer_state import BufferSlice, Start, State
from shlo_disc.verify.overwriting import Kernels, may_write_over

_SAMPLES = 256
"""Sizes at which an inequality is tried that is not proved."""

_ORDERING = 4
"""Sizes at which offsets are compared to put them in order."""

_CHOICES = ("stablehlo.if", "stablehlo.case")
_PIECE = "disc.piece"
_VIEWS = frozenset({*RESHAPES, _PIECE, "disc.shape"})


Writes = dict[BufferSlice, ir.Operation]
"""The slices that are written, each with the op that writes it first."""


def verify_buffers(module: ir.Module, facts: Facts, entry: ir.Block) -> None:
    """Check the memory plan of a planned module whose entry function has the block `entry`.

    Raises CompilerError where a value is read that is not there, or not any more, where a buffer does not fit its
    place, where two results of one kernel share memory, and where a result of the program is not written.
    """
    _Walk(module, facts, entry).run()


class _Walk:
    def __init__(self, module: ir.Module, facts: Facts, entry: ir.Block):
        self.module = module
        self.facts = facts
        self.entry = entry
        self.kernels = Kernels(module)
        self.arenas = arenas_of(module.operation)
        self.places: dict[ir.Value, BufferSlice] = {}
        self.variants = variants_in(module)
        self.elsewhere: dict[Start, dict[BufferSlice, None]] = {}
        self.state = State(self._meeting)
        self.buffers = {op: buffers_of(op) for op in _all_ops(entry) if BUFFERS in op.attributes}
        sizes = self._buffer_sizes()
        self.slices = [_Slices(n, sizes.get(n, {}), size, facts) for n, size in enumerate(self.arenas)]
        self.written_again: dict[ir.Operation, Writes] = {}

    def run(self) -> None:
        zero = Expr.const(0)
        if self.variants is not None:
            self._check_variant(self.variants, variant_taken(self.module))
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

    def _elsewhere(self, place: BufferSlice) -> BufferSlice:
        """A slice that is in no arena, which meets those that begin where it does."""
        self.elsewhere.setdefault(place.start, {})[place] = None
        return place

    def _start_with(self, value: ir.Value, place: BufferSlice) -> None:
        self.places[value] = self._elsewhere(place)
        self.state.add(place, value)

    def _meeting(self, place: BufferSlice) -> Iterable[BufferSlice]:
        """The slices that are not proved to be apart from one. Arguments, results and constants are apart."""
        if place.space == "arena":
            return self.slices[place.number].meeting[place]
        return tuple(self.elsewhere.setdefault(place.start, {place: None}))

    # ---- blocks ---------------------------------------------------------------------------------------------------

    def _block(self, block: ir.Block) -> None:
        for op in block.operations:
            self._op(op.operation)

    def _op(self, op: ir.Operation) -> None:
        if op.name == "stablehlo.constant":
            if _is_buffer(op):
                (result,) = op.results
                self._start_with(result, BufferSlice("constant", len(self.places), Expr.const(0), self._bytes(result)))
        elif op.name == "stablehlo.while":
            self._loop(op)
        elif op.name in _CHOICES:
            self._choice(op)
        elif op.name not in _VIEWS:
            self._reads(op, op.operands)
            if op.results:
                self._call(op)

    def _reads(self, op: ir.Operation, operands: Iterable[ir.Value]) -> None:
        for source in (source for value in operands for source in _read_for(value)):
            if not isinstance(source.owner, ir.Block) and source.owner.operation.name == "disc.shape":
                continue
            place = self.places.get(source)
            if place is None:
                self._fail(op, f"it reads {_name(source)}, which has no buffer")
            elif not self.state.holds(place, source):
                ended = self.state.ended_by.get(source)
                by = f"overwritten by {_title(ended)}" if ended is not None else "not written"
                self._fail(op, f"it reads {_name(source)} in {_text(place)}, where that is {by}")

    def _call(self, op: ir.Operation) -> None:
        self._place_results(op)
        results = [self.places[r] for r in op.results]
        taken: set[BufferSlice] = set()
        sources = [_read_for(operand) for operand in op.operands]
        read = {place for place in map(self.places.get, chain(*sources)) if place is not None and not place.is_empty}
        for number, place in enumerate(results):
            if place.is_empty:
                continue
            if not taken.isdisjoint(self._meeting(place)):
                self._fail(op, f"two of its results lie in {_text(place)}")
            taken.add(place)
            if not read.isdisjoint(self._meeting(place)):
                self._check_operands(op, number, place, sources)
        for value, place in zip(op.results, results, strict=True):
            self.state.write(place, [value], op)

    def _check_operands(self, op: ir.Operation, number: int, place: BufferSlice, sources: list[list[ir.Value]]) -> None:
        """A result may share memory with an operand only where the kernel reads of it what it then overwrites."""
        every = list(chain(*sources))
        for position, read in enumerate(sources):
            for source in read:
                there = self.places.get(source)
                if there is None or there.is_empty or there not in self._meeting(place):
                    continue
                is_whole = _buffer(op.operands[position]) == source and every.count(source) == 1
                if is_whole and there.start == place.start and may_write_over(op, position, number, self.kernels):
                    continue
                self._fail(op, f"result {number} in {_text(place)} overwrites {_name(source)}, which it reads")

    # ---- loops and branches -----------------------------------------------------------------------------------------

    def _loop(self, op: ir.Operation) -> None:
        condition, body = (region.blocks[0] for region in op.regions)
        self._place_loop(op)
        carried = [self.places[r] for r in op.results]
        self._copies(op, op.operands, carried)
        for place, writer in self._writes_of_iteration(op).items():
            self.state.end(place, writer)
        for block in (condition, body):
            for place, argument in zip(carried, block.arguments, strict=True):
                self.state.add(place, argument)
        self._block(condition)
        last_condition = self.state.mark()
        self._block(body)
        last = terminator_of(body).operation
        self._copies(last, last.operands, carried)
        self.state.undo(last_condition)
        for result, argument, place in zip(op.results, condition.arguments, carried, strict=True):
            if not self.state.holds(place, argument):
                self._fail(op, f"what it carries in {_text(place)} is overwritten when it ends")
            self.state.add(place, result)

    def _choice(self, op: ir.Operation) -> None:
        self._reads(op, op.operands)
        self._place_results(op)
        places = [self.places[r] for r in op.results]
        changes = []
        for number, region in enumerate(op.regions):
            before = self.state.mark()
            self._block(region.blocks[0])
            if self.variants is not None and op == self.variants:
                self._check_arenas(region.blocks[0], number + 1)
            last = terminator_of(region.blocks[0]).operation
            self._copies(last, last.operands, places)
            for place, result in zip(places, op.results, strict=True):
                self.state.add(place, result)
            changes.append(self.state.undo(before))
        self.state.join(changes)
        for place, result in zip(places, op.results, strict=True):
            if not self.state.holds(place, result):
                self._fail(op, f"its result in {_text(place)} is not written by all branches")

    def _check_variant(self, op: ir.Operation, number: Expr) -> None:
        """The number of the variant that a call takes is that of a branch, at all sizes that are tried."""
        for least in (number, len(op.regions) - 1 - number):
            if not all(value >= 0 for value in self.facts.sampled_values(least, _SAMPLES)):
                self._fail(op, f"no branch has the number {number}")

    def _check_arenas(self, block: ir.Block, arena: int) -> None:
        """A variant lies in its own arena, or in what all share."""
        for op in _all_ops(block):
            for place in (self.places[r] for r in op.results if r in self.places):
                if place.space == "arena" and place.number not in (0, arena):
                    self._fail(op, f"it lies in {_text(place)}, which is another variant's")

    def _copies(self, op: ir.Operation, sources: Sequence[ir.Value], places: Sequence[BufferSlice]) -> None:
        """One copy after the other, of what is not yet where it has to be; all of it is there in the end."""
        filled: set[BufferSlice] = set()
        for value, place in zip(sources, places, strict=True):
            self._reads(op, [value])
            if self.places[_buffer(value)].start != place.start:
                self.state.write(place, [], op)
                if not place.is_empty and not filled.isdisjoint(self._meeting(place)):
                    self._fail(op, f"two values go to {_text(place)}")
            if not place.is_empty:
                filled.add(place)

    # ---- what a loop overwrites -------------------------------------------------------------------------------------

    def _writes_of_iteration(self, loop: ir.Operation) -> Writes:
        """The writes of the condition, the body and the copies after it; collected once."""
        if loop not in self.written_again:
            condition, body = (region.blocks[0] for region in loop.regions)
            writes = self._writes_of_block(condition)
            self._note(writes, self._writes_of_block(body))
            self._note(writes, self._writes_of_copies(terminator_of(body).operation, loop.results))
            self.written_again[loop] = writes
        return self.written_again[loop]

    def _writes_of_block(self, block: ir.Block) -> Writes:
        """The writes of a block within a loop; its values get their places."""
        writes: Writes = {}
        for view in block.operations:
            op = view.operation
            if op.name == "stablehlo.while":
                self._place_loop(op)
                self._note(writes, self._writes_of_copies(op, op.results))
                self._note(writes, self._writes_of_iteration(op))
            elif op.name in _CHOICES:
                self._place_results(op)
                for region in op.regions:
                    self._note(writes, self._writes_of_block(region.blocks[0]))
                    self._note(writes, self._writes_of_copies(terminator_of(region.blocks[0]).operation, op.results))
            elif op in self.buffers:
                self._place_results(op)
                self._note(writes, {self.places[r]: op for r in op.results if not self.places[r].is_empty})
        return writes

    def _writes_of_copies(self, op: ir.Operation, targets: Iterable[ir.Value]) -> Writes:
        """The writes of `_copies` of the operands of `op`, to the places of `targets`."""
        writes: Writes = {}
        for value, target in zip(op.operands, targets, strict=True):
            source, place = self.places.get(_buffer(value)), self.places[target]
            if not place.is_empty and (source is None or source.start != place.start):
                writes.setdefault(place, op)
        return writes

    @staticmethod
    def _note(writes: Writes, more: Writes) -> None:
        for place, op in more.items():
            writes.setdefault(place, op)

    # ---- places -----------------------------------------------------------------------------------------------------

    def _place_loop(self, op: ir.Operation) -> None:
        """Give the results of a loop their places, and its arguments the same."""
        self._place_results(op)
        carried = [self.places[r] for r in op.results]
        for region in op.regions:
            self.places.update(zip(region.blocks[0].arguments, carried, strict=True))

    def _place_results(self, op: ir.Operation) -> None:
        if any(result in self.places for result in op.results):
            return
        if op not in self.buffers:
            self._fail(op, "it has no buffers")
        for result, buffer in zip(op.results, self.buffers[op], strict=True):
            self.places[result] = self._place(op, result, buffer)

    def _place(self, op: ir.Operation, result: ir.Value, buffer: Buffer) -> BufferSlice:
        size = self._bytes(result)
        if isinstance(buffer, ResultBuffer):
            return self._elsewhere(BufferSlice("result", buffer.index, Expr.const(0), size))
        place = BufferSlice("arena", buffer.segment, buffer.offset, size)
        if place.number >= len(self.arenas) or not self.slices[place.number].fits(place):
            self._fail(op, f"its result of {size} bytes is not proved to fit at {_text(place)}")
        return place

    def _buffer_sizes(self) -> dict[int, dict[Expr, set[Expr]]]:
        """The offsets of buffers in each arena, and how many bytes lie at each."""
        found: dict[int, dict[Expr, set[Expr]]] = {}
        for op, entries in self.buffers.items():
            for result, entry in zip(op.results, entries, strict=False):
                if isinstance(entry, ArenaBuffer):
                    found.setdefault(entry.segment, {}).setdefault(entry.offset, set()).add(self._bytes(result))
        return found

    @staticmethod
    def _bytes(value: ir.Value) -> Expr:
        return _count(dims_of(value)) * bytes_of(element_type_of(value))

    def _fail(self, op: ir.Operation, text: str) -> None:
        raise CompilerError(f"plan: the buffers of {_title(op)} are wrong: {text}")


class _Slices:
    """The slices of an arena: which are inside of it, and which are not proved to be apart, `meeting` for each.

    They are put in the order in which they begin at admissible sizes. Where that order is proved for all sizes, a slice
    that ends before another one begins is apart from all that follow.
    """

    def __init__(self, number: int, buffers: dict[Expr, set[Expr]], size: Expr, facts: Facts):
        self.facts = facts
        self.size = size
        self._known: dict[Expr, bool] = {}
        starts = _in_order(buffers, facts)
        slices = [BufferSlice("arena", number, start, bytes_) for start in starts for bytes_ in buffers[start]]
        self.meeting: dict[BufferSlice, list[BufferSlice]] = {each: [each] for each in slices}
        is_last = [False] * len(slices)  # whether the order is proved from a slice on
        for k in reversed(range(len(slices))):
            behind = slices[k + 1 :]
            is_last[k] = not behind or (is_last[k + 1] and self._proves(behind[0].offset - slices[k].offset))
        self._behind: dict[BufferSlice, BufferSlice] = {}
        for k, one in enumerate(slices):
            self._compare(one, slices[k + 1 :], is_last[k + 1 :])
        self._ends_inside: dict[BufferSlice, bool] = {}
        for one in reversed(slices):
            self._ends_inside[one] = self._ends_in_time(one)

    def _compare(self, one: BufferSlice, others: Sequence[BufferSlice], is_ordered: Sequence[bool]) -> None:
        for other, ordered in zip(others, is_ordered, strict=True):
            if other.offset != one.offset and self._proves(other.offset - one.offset - one.bytes):
                self._behind.setdefault(one, other)
                if ordered:
                    return
            elif not self._proves(one.offset - other.offset - other.bytes):
                self.meeting[one].append(other)
                self.meeting[other].append(one)

    def fits(self, place: BufferSlice) -> bool:
        """Tells whether a buffer begins and ends inside of the arena."""
        return self._proves(place.offset) and self._ends_inside[place]

    def _ends_in_time(self, one: BufferSlice) -> bool:
        """Tells whether a slice ends inside of the arena: one that ends before such a slice begins does, as well."""
        behind = self._behind.get(one)
        if behind is not None and self._ends_inside[behind]:
            return True
        return self._proves(self.size - one.offset - one.bytes)

    def _proves(self, expression: Expr) -> bool:
        if expression not in self._known:
            constant = _without_floors(expression).constant
            proved = constant is not None and constant >= 0
            proved = proved or self.facts.prove(Relation.ge(expression, 0)) is True
            self._known[expression] = proved or self._holds_everywhere(expression)
        return self._known[expression]

    def _holds_everywhere(self, expression: Expr) -> bool:
        """Tells whether an unproved expression is 0 or more at sizes of all kinds: one that fails is a fault."""
        return all(value >= 0 for value in self.facts.sampled_values(expression, _SAMPLES))


def _in_order(offsets: Collection[Expr], facts: Facts) -> list[Expr]:
    """Offsets by their values at sizes that all relations admit, and by likely ones where those leave it open."""
    names = frozenset[str]().union(*(offset.symbols() for offset in offsets))
    points = list(facts.samples(names, _ORDERING))
    values = {offset: [value_at(offset, point) for point in points] for offset in offsets}
    if any(None in found for found in values.values()):
        return sorted(offsets, key=facts.estimate)
    return sorted(offsets, key=lambda offset: (values[offset], facts.estimate(offset)))


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
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in RESHAPES:
        value = value.owner.operands[0]
    return value


def _read_for(value: ir.Value) -> list[ir.Value]:
    """The values that lie in buffers and that a value is read from: the array that it is a piece of, and scalars."""
    value = _buffer(value)
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != _PIECE:
        return [value]
    return [source for operand in value.owner.operands for source in _read_for(operand)]


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
