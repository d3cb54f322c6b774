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
from shlo_disc.lowering.host_llvm.plan import Words
from shlo_disc.lowering.launches import is_command
from shlo_disc.runtime import abi
from shlo_disc.shape_dialect.dialect.host import CALL, Bind, call_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

PART_LINES = 256
"""After so many lines, commands go into the next part, a function of its own: LLVM's register allocator takes time that
grows with the square of the uses that a value has in a block."""

_ARGUMENTS = ("%rt", "%buffers", "%words", "%arena")
_POINTERS = ", ".join("!llvm.ptr" for _ in _ARGUMENTS)

IMAGE_WORDS = 12
"""So many numbers in a block are copied from a constant rather than stored one by one, which takes LLVM long."""


@dataclass(frozen=True)
class Scope:
    """The data that the functions of a program share: its buffers, and its symbols in their order."""

    buffers: BufferTable
    symbols: Sequence[str]


class Layout:
    """The entries of a block, and the words of it that are addresses of operands, each with the operand's number."""

    def __init__(self, entries: Sequence[Entry]):
        self.entries = entries
        self.addresses = [
            (word, entry.number)
            for word, entry in enumerate(entries)
            if isinstance(entry, Buffer) and entry.number >= 0
        ]


@dataclass
class Block:
    """A block that straight-line code fills, with its present values: each with its type, or a word's number."""

    name: str
    values: list[tuple[str, str] | int]


class RunWriter:
    """Writes `disc_run` of a segment, whose first command has the number `command`; a target has its commands.

    Sizes, addresses and, inside of loops and branches, whole argument blocks are the same whenever they are needed:
    they are computed once, before the outermost loop or branch that uses them.
    """

    def __init__(self, scope: Scope, words: Words, segment: int, command: int):
        self.scope = scope
        self.words = words
        self.segment = segment
        self.once: list[str] = []
        self.lines = self.once
        self.count = 0
        self.labels = 0
        self.command = command
        self.words_of: dict[str, int] = {}
        self.known: dict[object, str] = {}
        self.layouts: dict[Hashable, Layout] = {}
        self.blocks: dict[Layout, Block] = {}
        self.parts: list[str] = []
        self.values: dict[ir.Value, str] = {}
        self.numbers: dict[str, int] = {}
        self.images: dict[tuple[int, ...], str] = {}
        self.writers: dict[str, Callable[[ir.Operation], None]] = {
            "disc_host.bind": self.bind,
            "memref.load": self.load,
            "arith.cmpi": self.compare,
            "scf.while": self.loop,
            "scf.if": self.branch,
            "scf.index_switch": self.switch,
            **self.commands(),
        }

    def emit(self, text: str, lines: list[str] | None = None) -> str:
        """Write an op with a result, at the end of what is written or of `lines`; gives the result's name."""
        self.count += 1
        name = f"%r{self.count}"
        (self.lines if lines is None else lines).append(f"  {name} = {text}")
        return name

    def _once(self, key: object, text: str) -> str:
        if key not in self.known:
            self.known[key] = self.emit(text, self.once)
        return self.known[key]

    def constant(self, number: int, bits: int = 64) -> str:
        """An integer constant."""
        name = self._once(("constant", number, bits), f"llvm.mlir.constant({number} : i{bits}) : i{bits}")
        self.numbers[name] = number
        return name

    def runtime_function(self, name: str) -> str:
        """The address of a function of the runtime."""
        index = abi.RUNTIME_CALLS[name]
        address = self._once(
            ("entry of", name), f"llvm.getelementptr %rt[{index}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr"
        )
        return self._once(("function", name), f"llvm.load {address} : !llvm.ptr -> !llvm.ptr")

    def size(self, e: Expr) -> str:
        """A constant, or the word that the plan computed."""
        if e.constant is not None:
            return self.constant(e.constant)
        place = self.words.place(e)
        address = self._once(("word", place), f"llvm.getelementptr %words[{place}] : (!llvm.ptr) -> !llvm.ptr, i64")
        return self._once(e, f"llvm.load {address} : !llvm.ptr -> i64")

    def pointer(self, buffer: ir.Value) -> str:
        """The address of a buffer."""
        place = self.scope.buffers.place(buffer)
        if not place.is_arena:
            return self.entry(place.index)
        own = place.index == self.segment
        arena = "%arena" if own else self.entry(self.scope.buffers.symbols + 1 + place.index)
        offset = self.size(place.offset)
        return self._once(place, f"llvm.getelementptr {arena}[{offset}] : (!llvm.ptr, i64) -> !llvm.ptr, i8")

    def entry(self, index: int) -> str:
        """An entry of the table of buffers."""
        address = self._once(
            ("address", index), f"llvm.getelementptr %buffers[{index}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr"
        )
        return self._once(BufferSlice(index), f"llvm.load {address} : !llvm.ptr -> !llvm.ptr")

    # ---- argument blocks --------------------------------------------------------------------------------------------

    def filled(self, entries: Callable[[], Sequence[Entry]], op: ir.Operation, *more: Hashable) -> str:
        """The address of a block of words, some of which are the addresses of operands of `op`.

        Ops of one name with equal attributes of `call`, and equal `more`, have equal `entries`. Straight-line code has
        one block for them, in which it changes the addresses that differ from those of the last op: the runtime writes
        to no block, and is done with it when a call returns. A loop or branch has blocks that are filled before it.
        """
        key = (op.name, op.attributes[CALL], *more)
        if key not in self.layouts:
            self.layouts[key] = Layout(entries())
        layout = self.layouts[key]
        if self.lines is not self.once:
            values = self._values(layout, op)
            known = ("filled", *values)
            if known not in self.known:
                self.known[known] = self._address(self._new_block(values), 0)
            return self.known[known]
        block = self.blocks.get(layout)
        if block is None:
            values = self._values(layout, op)
            block = self.blocks[layout] = Block(self._new_block(values), values)
            return self._address(block.name, 0)
        for word, number in layout.addresses:
            value = (self.pointer(op.operands[number]), "!llvm.ptr")
            if block.values[word] != value:
                block.values[word] = value
                self._store(block.name, word, value)
        return self._address(block.name, 0)

    def _new_block(self, values: Sequence[tuple[str, str] | int]) -> str:
        name = f"%block{len(self.words_of)}"
        self.words_of[name] = len(values)
        self._fill(name, values)
        return name

    def _values(self, layout: Layout, op: ir.Operation) -> list[tuple[str, str] | int]:
        return [entry.number if isinstance(entry, Word) else self._value(entry, op) for entry in layout.entries]

    def _value(self, entry: Entry, op: ir.Operation) -> tuple[str, str]:
        """The value of a word and its type."""
        if isinstance(entry, Buffer):
            return (self.null() if entry.number < 0 else self.pointer(op.operands[entry.number]), "!llvm.ptr")
        if isinstance(entry, Symbol):
            return (self.symbol(entry.name) if entry.name else self.null(), "!llvm.ptr")
        if isinstance(entry, Runtime):
            return "%rt", "!llvm.ptr"
        if isinstance(entry, Word):
            raise CompilerError("host: a word is told another's address")
        return (self.constant(entry) if isinstance(entry, int) else self.size(entry), "i64")

    def _fill(self, block: str, values: Sequence[tuple[str, str] | int]) -> None:
        """Store the words; those that are numbers in one copy of a constant image, where they are many.

        A number stands for the address of that word of the block, -1 for null.
        """
        values = [(self.null(), "!llvm.ptr") if value == -1 else value for value in values]
        numbers = [None if isinstance(value, int) else self.numbers.get(value[0]) for value in values]
        has_image = sum(n is not None for n in numbers) >= IMAGE_WORDS
        if has_image:
            self._copy_image(block, tuple(n or 0 for n in numbers))
        for word, (entry, number) in enumerate(zip(values, numbers, strict=True)):
            if has_image and number is not None:
                continue
            self._store(block, word, (self._address(block, entry), "!llvm.ptr") if isinstance(entry, int) else entry)

    def _store(self, block: str, word: int, value: tuple[str, str]) -> None:
        self.once.append(f"  llvm.store {value[0]}, {self._address(block, word)} : {value[1]}, !llvm.ptr")

    def _copy_image(self, block: str, words: tuple[int, ...]) -> None:
        name = self.images.setdefault(words, f"block_{self.segment}_{len(self.images)}")
        source, size = self.symbol(name), self.constant(8 * len(words))
        self.once.append(
            f'  "llvm.intr.memcpy"({self._address(block, 0)}, {source}, {size}) '
            "<{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()"
        )

    def _address(self, block: str, word: int) -> str:
        return self._once((block, word), f"llvm.getelementptr {block}[{word}] : (!llvm.ptr) -> !llvm.ptr, i64")

    def symbol(self, name: str) -> str:
        """The address of a function or constant of the module."""
        return self._once(("symbol", name), f"llvm.mlir.addressof @{name} : !llvm.ptr")

    def null(self) -> str:
        """No address."""
        name = self._once("null", "llvm.mlir.zero : !llvm.ptr")
        self.numbers[name] = 0
        return name

    # ---- ops --------------------------------------------------------------------------------------------------------

    def write(self, ops: Iterable[ir.Operation]) -> None:
        """All of `ops`, in order. Ops that only name buffers and sizes are looked at where they are used."""
        for op in ops:
            if len(self.once) > PART_LINES and self.lines is self.once and is_command(op):
                self._end_part()
            write = self.writers.get(op.name)
            if write is not None:
                write(op)
                self.command += is_command(op)

    def _end_part(self) -> None:
        """Have what follows written as a function of its own, which computes anew what it needs.

        Only conditions are known to later ops besides, and a command never stands between one and what it is for.
        """
        self.parts.append(self._function(self._part_name(len(self.parts)), self.once))
        self.once = self.lines = []
        self.words_of = {}
        self.known = {}
        self.blocks = {}

    def _part_name(self, number: int) -> str:
        return f"{function_name('disc_run', self.segment)}_part_{number}"

    def commands(self) -> dict[str, Callable[[ir.Operation], None]]:
        """The target's writers of ops that have an effect."""
        raise NotImplementedError

    def runtime_call(self, function: str, operands: str) -> None:
        """Call a function of the runtime."""
        types = abi.RUNTIME_FUNCTIONS[function].llvm_parameters
        self.lines.append(
            f"  llvm.call {self.runtime_function(function)}(%rt, {operands}, {self.constant(self.command)}) "
            f": !llvm.ptr, ({types}) -> ()"
        )

    # ---- what depends on data ---------------------------------------------------------------------------------------

    def read(self, address: str, width: int) -> str:
        """The integer of `width` bits at an address of a buffer, after the commands before it."""
        raise NotImplementedError

    def bind(self, op: ir.Operation) -> None:
        """Symbols from data."""
        call: Bind = call_of(op)
        element = ir.IntegerType(call.element)
        source, table = self.pointer(op.operands[0]), self.entry(self.scope.buffers.symbols)
        type_ = f"i{element.width}"
        for number, name in enumerate(call.symbols):
            address = self.emit(f"llvm.getelementptr {source}[{number}] : (!llvm.ptr) -> !llvm.ptr, {type_}")
            value = self.read(address, element.width)
            if element.width < 64:
                value = self.emit(f"llvm.{'zext' if element.is_unsigned else 'sext'} {value} : {type_} to i64")
            position = self.scope.symbols.index(name)
            target = self.emit(f"llvm.getelementptr {table}[{position}] : (!llvm.ptr) -> !llvm.ptr, i64")
            self.lines.append(f"  llvm.store {value}, {target} : i64, !llvm.ptr")

    def load(self, op: ir.Operation) -> None:
        """The one element of a buffer, of which the op has a view."""
        address = self.pointer(op.operands[0].owner.operands[0])
        self.values[op.results[0]] = self.read(address, ir.IntegerType(op.results[0].type).width)

    # ---- loops and branches -----------------------------------------------------------------------------------------

    def compare(self, op: ir.Operation) -> None:
        """Tells whether a byte is not 0."""
        byte = self.values[op.operands[0]]
        self.values[op.results[0]] = self.emit(f'llvm.icmp "ne" {byte}, {self.constant(0, 8)} : i8')

    @contextmanager
    def _nested(self) -> Iterator[int]:
        """Lines go behind everything that they need once; gives a number for the labels."""
        outermost = self.lines is self.once
        if outermost:
            self.lines = []
        self.labels += 1
        yield self.labels
        if outermost:
            self.once.extend(self.lines)
            self.lines = self.once

    def loop(self, op: ir.Operation) -> None:
        """`scf.while`."""
        before, body = (region.blocks[0] for region in op.regions)
        with self._nested() as number:
            self.lines += [f"  llvm.br ^condition{number}", f"^condition{number}:"]
            self.write(inner.operation for inner in before.operations)
            goes_on = self.values[before.operations[len(before.operations) - 1].operands[0]]
            self.lines += [f"  llvm.cond_br {goes_on}, ^body{number}, ^exit{number}", f"^body{number}:"]
            self.begin_trip(number)
            self.write(inner.operation for inner in body.operations)
            self.lines += [f"  llvm.br ^condition{number}", f"^exit{number}:"]

    def begin_trip(self, number: int) -> None:
        """Emit the code that each trip of the loop of this number begins with."""

    def branch(self, op: ir.Operation) -> None:
        """`scf.if`."""
        condition = self.values[op.operands[0]]
        with self._nested() as number:
            self.lines.append(f"  llvm.cond_br {condition}, ^branch{number}_0, ^branch{number}_1")
            self._branches(op, number)

    def switch(self, op: ir.Operation) -> None:
        """`scf.index_switch`, whose default is its first region."""
        (cast,) = (op.operands[0].owner,)
        index, type_ = self.values[cast.operands[0]], cast.operands[0].type
        with self._nested() as number:
            values = enumerate(ir.DenseI64ArrayAttr(op.attributes["cases"]), 1)
            cases = ", ".join(f"{value}: ^branch{number}_{region}" for region, value in values)
            self.lines.append(f"  llvm.switch {index} : {type_}, ^branch{number}_0 [{cases}]")
            self._branches(op, number)

    def _branches(self, op: ir.Operation, number: int) -> None:
        for position, region in enumerate(op.regions):
            self.lines.append(f"^branch{number}_{position}:")
            self.write(inner.operation for inner in region.blocks[0].operations)
            self.lines.append(f"  llvm.br ^exit{number}")
        self.lines.append(f"^exit{number}:")

    def globals(self) -> list[str]:
        """The constant images that the function refers to."""
        return [
            f"llvm.mlir.global internal constant @{name}(dense<{list(words)}> : tensor<{len(words)}xi64>) "
            f"{{alignment = 64 : i64}} : !llvm.array<{len(words)} x i64>"
            for words, name in self.images.items()
        ]

    def texts(self) -> list[str]:
        """The functions that were written, the last of which calls the others where there are any."""
        name = function_name("disc_run", self.segment)
        if not self.parts:
            return [self._function(name, self.once)]
        self._end_part()
        arguments = ", ".join(_ARGUMENTS)
        names = map(self._part_name, range(len(self.parts)))
        calls = [f"  llvm.call @{part}({arguments}) : ({_POINTERS}) -> ()" for part in names]
        return [*self.parts, self._function(name, calls)]

    def _function(self, name: str, lines: Sequence[str]) -> str:
        """A function of lines. A part is not inlined and, without branches, not optimised, as `disc_run` is not."""
        blocks = (
            f"  {block}_words = llvm.mlir.constant({words} : i64) : i64\n"
            f"  {block} = llvm.alloca {block}_words x i64 : (i64) -> !llvm.ptr"
            for block, words in self.words_of.items()
        )
        arguments = ", ".join(f"{argument}: !llvm.ptr" for argument in _ARGUMENTS)
        attributes = ""
        if name != function_name("disc_run", self.segment):
            has_branches = any(line.startswith("^") for line in lines)
            attributes = 'attributes {passthrough = ["noinline"' + ("" if has_branches else ', "optnone"') + "]} "
        body = "\n".join((*blocks, *lines))
        return f"llvm.func @{name}({arguments}) {attributes}{{\n{body}\n  llvm.return\n}}"
