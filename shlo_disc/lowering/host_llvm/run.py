# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The running half of a host program in the LLVM dialect: `disc_run` fills blocks of arguments, and calls.

Everything that depends on sizes alone was computed by `disc_plan`, once per new shape, into words that the runtime
remembers; `disc_run` only loads them. A program that reads sizes from data has such a pair for each of its segments;
what a segment reads, it puts into the table of symbols that the next plan starts from.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.host.segments import function_name
from shlo_disc.lowering.host_llvm.blocks import Buffer, Entry, Runtime, Symbol, Word
from shlo_disc.lowering.host_llvm.buffers import BufferSlice, BufferTable
from shlo_disc.lowering.host_llvm.builder import Builder, LlvmDialect
from shlo_disc.lowering.host_llvm.nested_sizes import NestedSizes
from shlo_disc.lowering.host_llvm.plan import Words
from shlo_disc.lowering.launches import is_command
from shlo_disc.runtime import abi
from shlo_disc.shape_dialect.dialect.host import CALL, Bind, Size, call_of
from shlo_disc.shape_dialect.dialect.parts import Part
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import ZERO, Expr
from shlo_disc.shape_dialect.symbolic.limits import Limits

PART_OPS = 256
"""After so many ops and blocks, commands go into the next part, a function of its own: LLVM's register allocator takes
time that grows with the square of the uses that a value has in a block."""

IMAGE_WORDS = 12
"""So many numbers in a block are copied from a constant rather than stored one by one, which takes LLVM long."""


@dataclass(frozen=True)
class Choice:
    """Parts of which a call runs those of one branch: the number of the branch, the cases of all but the first, which
    is the default, and the parts of each."""

    number: Expr
    cases: tuple[int, ...]
    branches: tuple[list[int | Choice], ...]


@dataclass(frozen=True)
class Scope:
    """The data that the functions of a program share: its buffers, its symbols in their order, and the limits of those
    that are read inside of loops and branches."""

    dialect: LlvmDialect
    buffers: BufferTable
    symbols: Sequence[str]
    limits: Limits


class Layout:
    """The entries of a block, and the words of it that are addresses of operands, each with the operand's number."""

    def __init__(self, entries: Sequence[Entry]):
        self.entries = entries
        self.addresses = [
            (word, entry.number)
            for word, entry in enumerate(entries)
            if isinstance(entry, Buffer) and entry.number >= 0
        ]


Content = ir.Value | int
"""The value of a word of a block; a number stands for the address of that word of the block, -1 for null."""


@dataclass
class Block:
    """A block that straight-line code fills, with its present values."""

    address: ir.Value
    values: list[Content]


def _is_moving(buffer: ir.Value, nested: NestedSizes) -> bool:
    """Tells whether data says where a buffer begins, anew at each use."""
    owner = buffer.owner
    if isinstance(owner, ir.Block) or owner.name != "disc_host.part":
        return False
    call: Part = call_of(owner)
    return bool(call.starts) or nested.has(call.offset) or _is_moving(owner.operands[0], nested)


class RunWriter:
    """Writes `disc_run` of a segment, whose first command has the number `command`; a target has its commands.

    Sizes, addresses and, inside of loops and branches, whole argument blocks are the same whenever they are needed:
    they are computed `once`, before the outermost loop or branch that uses them. `current` builds all else; the two are
    one in straight-line code.
    """

    def __init__(self, scope: Scope, words: Words, segment: int, command: int):
        self.scope = scope
        self.dialect = scope.dialect
        self.words = words
        self.segment = segment
        self.command = command
        self.layouts: dict[Hashable, Layout] = {}
        self.parts: list[ir.Operation] = []
        self.calls: list[int | Choice] = []
        self.values: dict[ir.Value, ir.Value] = {}
        self.images: dict[tuple[int, ...], str] = {}
        self.nested = NestedSizes(scope.limits, words, segment)
        self.reserved: list[ir.Operation] = []
        self.writers: dict[str, Callable[[ir.Operation], None]] = {
            "disc_host.bind": self.bind,
            "memref.load": self.load,
            "arith.cmpi": self.compare,
            "scf.while": self.loop,
            "scf.if": self.branch,
            "scf.index_switch": self.switch,
            **self.commands(),
        }
        self._begin_part()

    def _begin_part(self) -> None:
        """Have what follows written as a function of its own, which computes anew what it needs.

        Only conditions are known to later ops besides, and a command never stands between one and what it is for.
        """
        self.function = self.dialect.function(function_name("disc_run", self.segment), [self.dialect.pointer] * 4)
        self.runtime, self.buffers, self.plan, self.arena = self.function.arguments
        self.once = self.current = self.function.body
        self.known: dict[object, ir.Value] = {}
        self.numbers: dict[ir.Value, int] = {}
        self.blocks: dict[Layout, Block] = {}

    def _once(self, key: object, build: Callable[[], ir.Value]) -> ir.Value:
        if key not in self.known:
            self.known[key] = build()
        return self.known[key]

    def constant(self, number: int, bits: int = 64) -> ir.Value:
        """An integer constant."""
        value = self._once(("constant", number, bits), lambda: self.once.constant(number, bits))
        self.numbers[value] = number
        return value

    def runtime_function(self, name: str) -> ir.Value:
        """The address of a function of the runtime."""
        return self._once(("function", name), lambda: self._entry_of(self.runtime, abi.RUNTIME_CALLS[name]))

    def _entry_of(self, table: ir.Value, index: int) -> ir.Value:
        """An address in a table of addresses."""
        return self.once.load(self.once.gep(table, index, self.dialect.pointer), self.dialect.pointer)

    def size(self, e: Expr) -> ir.Value:
        """A constant, or the word that the plan computed, or what has been read since."""
        if e.constant is not None:
            return self.constant(e.constant)
        if self.nested.has(e):
            return self.current.load(self._nested_word(self.nested.place(e)), self.dialect.i64)
        return self._once(e, lambda: self._planned(self.words.place(e)))

    def _planned(self, place: int) -> ir.Value:
        return self.once.load(self.once.gep(self.plan, place, self.dialect.i64), self.dialect.i64)

    def _nested_word(self, place: int) -> ir.Value:
        """The address of a word for the sizes that a loop or branch reads."""
        return self.current.gep(self._once("nested words", self._reserve_nested_words), place, self.dialect.i64)

    def _reserve_nested_words(self) -> ir.Value:
        words, reserved = self.function.slot(0), self.function.last_slot
        if reserved is not None:
            self.reserved.append(reserved)  # as many words as there are in the end
        return words

    def pointer(self, buffer: ir.Value) -> ir.Value:
        """The address of a buffer, or of a part of one, which is found at each use where data says where it begins."""
        owner = buffer.owner
        if not isinstance(owner, ir.Block) and owner.name == "disc_host.part":
            return self._part(owner.operation)
        place = self.scope.buffers.place(buffer)
        if not place.is_arena:
            return self.entry(place.index)
        return self._once(place, lambda: self._in_arena(place))

    def _part(self, op: ir.Operation) -> ir.Value:
        call: Part = call_of(op)
        source, *starts = op.operands
        address = self.pointer(source)
        if self.nested.has(call.offset):
            address = self.current.gep(address, self.size(call.offset), self.dialect.i8)
        elif call.offset != ZERO:
            key = ("part", address, call.offset)
            address = self._once(key, lambda: self.once.gep(address, self.size(call.offset), self.dialect.i8))
        for operand, start in zip(starts, call.starts, strict=True):
            type_ = ir.IntegerType.get_signless(start.bits)
            at = self.read(self.current.gep(self.pointer(operand), start.element, type_), type_)
            at = at if start.bits == 64 else self.current.extended(at, is_unsigned=False)
            for predicate, limit in (("slt", self.size(start.most)), ("sgt", self.constant(0))):
                at = self.current.select(self.current.compare(predicate, at, limit), at, limit)
            distance = self.current.arithmetic("mul", at, self.size(start.step))
            address = self.current.gep(address, distance, self.dialect.i8)
        return address

    def _in_arena(self, place: BufferSlice) -> ir.Value:
        own = place.index == self.segment
        arena = self.arena if own else self.entry(self.scope.buffers.symbols + 1 + place.index)
        return self.once.gep(arena, self.size(place.offset), self.dialect.i8)

    def entry(self, index: int) -> ir.Value:
        """An entry of the table of buffers."""
        return self._once(BufferSlice(index), lambda: self._entry_of(self.buffers, index))

    # ---- argument blocks --------------------------------------------------------------------------------------------

    def filled(self, entries: Callable[[], Sequence[Entry]], op: ir.Operation, *more: Hashable) -> ir.Value:
        """The address of a block of words, some of which are the addresses of operands of `op`.

        Ops of one name with equal attributes of `call`, and equal `more`, have equal `entries`. Straight-line code has
        one block for them, in which it changes the addresses that differ from those of the last op: the runtime writes
        to no block, and is done with it when a call returns. A loop or branch has blocks that are filled before it, but
        for the sizes that it reads itself.
        """
        key = (op.name, op.attributes[CALL], *more)
        if key not in self.layouts:
            self.layouts[key] = Layout(entries())
        layout = self.layouts[key]
        if self.current is not self.once:
            return self._filled_before(layout, op)
        block = self.blocks.get(layout)
        if block is None:
            values = self._values(layout, op)
            block = self.blocks[layout] = Block(self._new_block(values), values)
            return self._address(block.address, 0)
        for word, number in layout.addresses:
            value = self.pointer(op.operands[number])
            if block.values[word] != value:
                block.values[word] = value
                self._store(block.address, word, value)
        return self._address(block.address, 0)

    def _filled_before(self, layout: Layout, op: ir.Operation) -> ir.Value:
        moving = [(word, number) for word, number in layout.addresses if _is_moving(op.operands[number], self.nested)]
        values = self._values(layout, op)
        read = [(word, e) for word, e in enumerate(layout.entries) if isinstance(e, Expr) and self.nested.has(e)]
        block = self._once(("filled", *values, *read, *moving), lambda: self._new_block(values))
        found = [(word, self.size(size)) for word, size in read]
        found += [(word, self.pointer(op.operands[number])) for word, number in moving]
        for word, value in found:
            self.current.store(value, self.current.gep(block, word, self.dialect.i64))
        return self._address(block, 0)

    def _new_block(self, values: Sequence[Content]) -> ir.Value:
        block = self.function.slot(len(values))
        self._fill(block, values)
        return block

    def _values(self, layout: Layout, op: ir.Operation) -> list[Content]:
        return [entry.number if isinstance(entry, Word) else self._value(entry, op) for entry in layout.entries]

    def _value(self, entry: Entry, op: ir.Operation) -> ir.Value:
        """The value of a word."""
        if isinstance(entry, Buffer):
            buffer = op.operands[entry.number] if entry.number >= 0 else None
            is_later = buffer is not None and self.current is not self.once and _is_moving(buffer, self.nested)
            return self.null() if buffer is None or is_later else self.pointer(buffer)
        if isinstance(entry, Symbol):
            return self.symbol(entry.name) if entry.name else self.null()
        if isinstance(entry, Runtime):
            return self.runtime
        if isinstance(entry, Word):
            raise CompilerError("host: a word is told another's address")
        if isinstance(entry, int):
            return self.constant(entry)
        return self.constant(0) if self.nested.has(entry) else self.size(entry)

    def _fill(self, block: ir.Value, contents: Sequence[Content]) -> None:
        """Store the words; those that are numbers in one copy of a constant image, where they are many."""
        values = [self.null() if content == -1 else content for content in contents]
        numbers = [None if isinstance(value, int) else self.numbers.get(value) for value in values]
        has_image = sum(n is not None for n in numbers) >= IMAGE_WORDS
        if has_image:
            self._copy_image(block, tuple(n or 0 for n in numbers))
        for word, (value, number) in enumerate(zip(values, numbers, strict=True)):
            if has_image and number is not None:
                continue
            self._store(block, word, self._address(block, value) if isinstance(value, int) else value)

    def _store(self, block: ir.Value, word: int, value: ir.Value) -> None:
        self.once.store(value, self._address(block, word))

    def _copy_image(self, block: ir.Value, words: tuple[int, ...]) -> None:
        name = self.images.setdefault(words, f"block_{self.segment}_{len(self.images)}")
        source, size = self.symbol(name), self.constant(8 * len(words))
        self.once.memcpy(self._address(block, 0), source, size)

    def _address(self, block: ir.Value, word: int) -> ir.Value:
        return self._once((block, word), lambda: self.once.gep(block, word, self.dialect.i64))

    def symbol(self, name: str) -> ir.Value:
        """The address of a function or constant of the module."""
        return self._once(("symbol", name), lambda: self.once.address_of(name))

    def null(self) -> ir.Value:
        """No address."""
        value = self._once("null", self.once.null)
        self.numbers[value] = 0
        return value

    # ---- ops --------------------------------------------------------------------------------------------------------

    def write(self, ops: Iterable[ir.Operation]) -> None:
        """All of `ops`, in order. Ops that only name buffers and sizes are looked at where they are used."""
        for op in ops:
            if self.once.count > PART_OPS and self.current is self.once and is_command(op):
                self._end_part()
                self._begin_part()
            write = self.writers.get(op.name)
            if write is not None:
                write(op)
                self.command += is_command(op)

    def _end_part(self) -> None:
        """End what is written so far. It is not inlined and, without branches, not optimised, as `disc_run` is not."""
        function = self.function
        function.body.return_()
        function.op.attributes["sym_name"] = ir.StringAttr.get(self._part_name(len(self.parts)))
        has_branches = len(function.op.regions[0].blocks) > 1
        function.pass_through("noinline", *(() if has_branches else ("optnone",)))
        self.calls.append(len(self.parts))
        self.parts.append(function.op)

    def _part_name(self, number: int) -> str:
        return f"{function_name('disc_run', self.segment)}_part_{number}"

    def commands(self) -> dict[str, Callable[[ir.Operation], None]]:
        """The target's writers of ops that have an effect."""
        raise NotImplementedError

    def runtime_call(self, function: str, *operands: ir.Value) -> None:
        """Call a function of the runtime."""
        callee = self.runtime_function(function)
        self.current.call(callee, self.runtime, *operands, self.constant(self.command))

    # ---- what depends on data ---------------------------------------------------------------------------------------

    def read(self, address: ir.Value, type_: ir.Type) -> ir.Value:
        """The integer of a type at an address of a buffer, after the commands before it."""
        raise NotImplementedError

    def bind(self, op: ir.Operation) -> None:
        """Symbols from data."""
        call: Bind = call_of(op)
        element = ir.IntegerType(call.element)
        type_ = ir.IntegerType.get_signless(element.width)
        source, is_nested = self.pointer(op.operands[0]), self.current is not self.once
        for number, name in enumerate(call.symbols):
            value = self.read(self.current.gep(source, number, type_), type_)
            if element.width < 64:
                value = self.current.extended(value, element.is_unsigned)
            self.current.store(value, self._word_of(name))
        if is_nested:
            self.current.call(self.nested.bind(call.symbols), self.plan, self._nested_word(0))

    def _word_of(self, name: str) -> ir.Value:
        """The address that a symbol is stored to when it has been read."""
        if self.current is not self.once:
            return self._nested_word(self.nested.place(Expr.symbol(name)))
        position = self.scope.symbols.index(name)
        return self.current.gep(self.entry(self.scope.buffers.symbols), position, self.dialect.i64)

    def load(self, op: ir.Operation) -> None:
        """The one element of a buffer, of which the op has a view."""
        address = self.pointer(op.operands[0].owner.operands[0])
        self.values[op.results[0]] = self.read(address, op.results[0].type)

    # ---- loops and branches -----------------------------------------------------------------------------------------

    def compare(self, op: ir.Operation) -> None:
        """Tells whether a byte is not 0."""
        byte = self.values[op.operands[0]]
        self.values[op.results[0]] = self.current.compare("ne", byte, self.constant(0, 8))

    @contextmanager
    def _nested(self, terminator: ir.Operation, behind: ir.Block) -> Iterator[None]:
        """Put what ops need once before `terminator`, until those of the block `behind`."""
        outermost = self.current is self.once
        if outermost:
            self.once.point = ir.InsertionPoint(terminator)
            self.current = Builder(self.dialect, self.once.point)
        yield
        if outermost:
            self.once.count += self.current.count
            self.current = self.once
        self.current.enter(behind)

    def loop(self, op: ir.Operation) -> None:
        """`scf.while`."""
        before, body = (region.blocks[0] for region in op.regions)
        condition, trip, behind = self.current.blocks(3)
        with self._nested(self.current.br(condition), behind):
            self.current.enter(condition)
            self.write(inner.operation for inner in before.operations)
            goes_on = self.values[before.operations[len(before.operations) - 1].operands[0]]
            self.current.cond_br(goes_on, trip, behind)
            self.current.enter(trip)
            self.begin_trip()
            self.write(inner.operation for inner in body.operations)
            self.current.br(condition)

    def begin_trip(self) -> None:
        """Write what each trip of a loop begins with."""

    def branch(self, op: ir.Operation) -> None:
        """`scf.if`."""
        yes, no, behind = self.current.blocks(3)
        terminator = self.current.cond_br(self.values[op.operands[0]], yes, no)
        self._branches(op, terminator, [yes, no], behind)

    def switch(self, op: ir.Operation) -> None:
        """`scf.index_switch`, whose default is its first region."""
        cast = op.operands[0].owner
        if cast.operation.name == "disc_host.size":
            self.variants(op)
            return
        *blocks, behind = self.current.blocks(len(op.regions) + 1)
        cases = dict(zip(ir.DenseI64ArrayAttr(op.attributes["cases"]), blocks[1:], strict=True))
        terminator = self.current.switch(self.values[cast.operands[0]], blocks[0], cases)
        self._branches(op, terminator, blocks, behind)

    def variants(self, op: ir.Operation) -> None:
        """`scf.index_switch` by a size: the code of each branch is in parts of its own."""
        if self.current is not self.once:
            raise CompilerError("host: a loop or branch chooses a variant")
        self._end_part()
        before, branches = self.calls, []
        for region in op.regions:
            self.calls = []
            self._begin_part()
            self.write(inner.operation for inner in region.blocks[0].operations)
            self._end_part()
            branches.append(self.calls)
        size: Size = call_of(op.operands[0].owner)
        cases = tuple(ir.DenseI64ArrayAttr(op.attributes["cases"]))
        self.calls = [*before, Choice(size.value, cases, tuple(branches))]
        self._begin_part()

    def _branches(
        self, op: ir.Operation, terminator: ir.Operation, blocks: Sequence[ir.Block], behind: ir.Block
    ) -> None:
        with self._nested(terminator, behind):
            for region, block in zip(op.regions, blocks, strict=True):
                self.current.enter(block)
                self.write(inner.operation for inner in region.blocks[0].operations)
                self.current.br(behind)

    def globals(self) -> list[ir.Operation]:
        """The constant images that the function refers to."""
        return [self.dialect.constant_words(name, words) for words, name in self.images.items()]

    def functions(self) -> list[ir.Operation]:
        """The functions that were written, the last of which calls the others where there are any."""
        if self.parts:
            self._end_part()
            self._begin_part()
            self._call_parts(self.calls)
        self.function.body.return_()
        nested = self.nested.functions(self.dialect)
        for reserved in self.reserved:
            reserved.operands[0] = Builder(self.dialect, ir.InsertionPoint(reserved)).constant(self.nested.words.count)
        return [*nested, *self.parts, self.function.op]

    def _call_parts(self, calls: Sequence[int | Choice]) -> None:
        for call in calls:
            if isinstance(call, int):
                self.current.call(self._part_name(call), *self.function.arguments)
                continue
            *blocks, behind = self.current.blocks(len(call.branches) + 1)
            cases = dict(zip(call.cases, blocks[1:], strict=True))
            terminator = self.current.switch(self.size(call.number), blocks[0], cases)
            with self._nested(terminator, behind):
                for branch, block in zip(call.branches, blocks, strict=True):
                    self.current.enter(block)
                    self._call_parts(branch)
                    self.current.br(behind)
