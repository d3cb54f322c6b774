# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The host program: `disc_plan` (sizes, checks, offsets: `host_plan.py`) and `disc_run` (fill the arguments, launch).

Both are code in the LLVM dialect, `disc_plan` without a branch. Everything that depends on sizes alone is computed by
`disc_plan`, once per new shape, into words that the runtime remembers; `disc_run` only loads them. All size arithmetic
is checked for overflow.

A program that reads sizes from data has such a pair for each of its segments; what a segment reads, it puts into the
table of symbols that the next plan starts from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from shlo_disc.lowering_cpu.block_kernels import BLOCK_BYTES, BLOCK_GRAIN, CLEAR, COPY
from shlo_disc.lowering_cpu.gemm_kernel import Tile
from shlo_disc.lowering_cpu.host_plan import Words, function_name
from shlo_disc.lowering_cpu.steps import (
    AttentionCall,
    Branch,
    Clear,
    ConvolutionCall,
    Copy,
    DotCall,
    Epilogue,
    Launch,
    LibraryCall,
    Loop,
    Place,
    Product,
    ReadSizes,
    Step,
)
from shlo_disc.lowering_cpu.winograd_kernel import FUNCTIONS
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv

Value = tuple[str, str] | int
"""A word of an argument block: a value and its type, or the number of another word whose address it is."""

DOT_WORDS = 41
"""The words of `DiscDot`."""

IMAGE_WORDS = 12
"""So many numbers in a block are copied from a constant rather than stored one by one, which takes LLVM long."""

TILE_WORDS = 3
"""The words in which an epilogue is told its tile."""

RUNTIME_FUNCTIONS = {"launch": 0, "dot": 1, "call": 3, "convolution": 4, "attention": 5}
"""The functions of `DiscRuntime` by their field."""


@dataclass(frozen=True)
class Segment:
    """Which `disc_run` is written. `table` is the index of the symbols in `buffers`; the arenas' addresses follow.

    `first_step` is the number of its first step.
    """

    number: int = 0
    table: int = 0
    first_step: int = 0


class RunWriter:
    """Writes `disc_run`.

    Sizes, addresses and, inside of loops and branches, whole argument blocks are the same whenever they are needed:
    they are computed once, before the outermost loop or branch that uses them.
    """

    def __init__(self, words: Words, shared: int, segment: Segment):
        self.words = words
        self.segment = segment
        self.once: list[str] = []
        self.lines = self.once
        self.count = 0
        self.labels = 0
        self.step = segment.first_step
        self.block_words = shared
        self.known: dict[object, str] = {}
        self.numbers: dict[str, int] = {}
        self.images: dict[tuple[int, ...], str] = {}
        self.function = {name: self._function(i) for name, i in RUNTIME_FUNCTIONS.items()}

    def _op(self, text: str, lines: list[str] | None = None) -> str:
        self.count += 1
        name = f"%r{self.count}"
        (self.lines if lines is None else lines).append(f"  {name} = {text}")
        return name

    def _once(self, key: object, text: str) -> str:
        if key not in self.known:
            self.known[key] = self._op(text, self.once)
        return self.known[key]

    def constant(self, number: int, bits: int = 64) -> str:
        """An integer constant."""
        name = self._once(("constant", number, bits), f"llvm.mlir.constant({number} : i{bits}) : i{bits}")
        self.numbers[name] = number
        return name

    def _function(self, index: int) -> str:
        address = self._op(f"llvm.getelementptr %rt[{index}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr")
        return self._op(f"llvm.load {address} : !llvm.ptr -> !llvm.ptr")

    def size(self, e: Expr) -> str:
        """A constant, or the word that the plan computed."""
        if e.constant is not None:
            return self.constant(e.constant)
        place = self.words.place(e)
        address = self._once(("word", place), f"llvm.getelementptr %words[{place}] : (!llvm.ptr) -> !llvm.ptr, i64")
        return self._once(e, f"llvm.load {address} : !llvm.ptr -> i64")

    def pointer(self, place: Place) -> str:
        """The address of a buffer."""
        if place.space == "arena":
            own = place.index == self.segment.number
            arena = "%arena" if own else self._buffer(self.segment.table + 1 + place.index)
            offset = self.size(place.offset)
            return self._once(place, f"llvm.getelementptr {arena}[{offset}] : (!llvm.ptr, i64) -> !llvm.ptr, i8")
        return self._buffer(place.index)

    def _buffer(self, index: int) -> str:
        address = self._once(
            ("address", index), f"llvm.getelementptr %buffers[{index}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr"
        )
        return self._once(("buffer", index), f"llvm.load {address} : !llvm.ptr -> !llvm.ptr")

    # ---- argument blocks --------------------------------------------------------------------------------------------

    def _filled(self, values: Sequence[Value]) -> str:
        """A block of words with these values and types; a number stands for the address of that word of the block.

        Straight-line code fills one block again and again; a loop or branch has blocks that are filled before it.
        """
        if self.lines is self.once:
            self._fill(0, values)
            return self._address(0)
        key = ("filled", *values)
        if key not in self.known:
            first = self.block_words
            self.block_words += len(values)
            self._fill(first, values)
            self.known[key] = self._address(first)
        return self.known[key]

    def _fill(self, first: int, values: Sequence[Value]) -> None:
        """Store the words; those that are numbers in one copy of a constant image, where they are many."""
        numbers = [None if isinstance(entry, int) else self.numbers.get(entry[0]) for entry in values]
        has_image = sum(n is not None for n in numbers) >= IMAGE_WORDS
        if has_image:
            self._copy_image(first, tuple(n or 0 for n in numbers))
        for word, (entry, number) in enumerate(zip(values, numbers, strict=True), first):
            if has_image and number is not None:
                continue
            value, type_ = (self._address(first + entry), "!llvm.ptr") if isinstance(entry, int) else entry
            self.once.append(f"  llvm.store {value}, {self._address(word)} : {type_}, !llvm.ptr")

    def _copy_image(self, first: int, words: tuple[int, ...]) -> None:
        name = self.images.setdefault(words, f"block_{self.segment.number}_{len(self.images)}")
        source, size = self._symbol(name), self.constant(8 * len(words))
        self.once.append(
            f'  "llvm.intr.memcpy"({self._address(first)}, {source}, {size}) '
            "<{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()"
        )

    def _address(self, word: int) -> str:
        return self._once(("block", word), f"llvm.getelementptr %block[{word}] : (!llvm.ptr) -> !llvm.ptr, i64")

    # ---- steps ------------------------------------------------------------------------------------------------------

    def write(self, steps: Sequence[Step]) -> None:
        """All of `steps`, in order."""
        for step in steps:
            if isinstance(step, Launch):
                values: list[Value] = [(self.pointer(p), "!llvm.ptr") for p in step.buffers]
                values += [(self.size(s), "i64") for s in step.sizes]
                self._launch(step.kernel, self._filled(values), step.total, step.grain)
            elif isinstance(step, DotCall):
                self._runtime_call("dot", self._dot(step))
            elif isinstance(step, ConvolutionCall):
                self._runtime_call("convolution", self._convolution(step))
            elif isinstance(step, AttentionCall):
                self._runtime_call("attention", self._attention(step))
            elif isinstance(step, LibraryCall):
                self._library(step)
            elif isinstance(step, Copy | Clear):
                values = [(self.pointer(step.target), "!llvm.ptr"), (self.size(step.bytes), "i64")]
                if isinstance(step, Copy):
                    values.append((self.pointer(step.source), "!llvm.ptr"))
                name = COPY if isinstance(step, Copy) else CLEAR
                self._launch(name, self._filled(values), ceildiv(step.bytes, BLOCK_BYTES), Expr.const(BLOCK_GRAIN))
            elif isinstance(step, Loop):
                self._loop(step)
            elif isinstance(step, Branch):
                self._branch(step)
            else:
                self._read_sizes(step)
            self.step += not isinstance(step, Loop | Branch | ReadSizes)

    def _launch(self, name: str, block: str, total: Expr, grain: Expr) -> None:
        types = ": (!llvm.ptr, i64, i64) -> ()"
        if total.constant == 1:
            self.lines.append(f"  llvm.call @{name}_entry({block}, {self.constant(0)}, {self.constant(1)}) {types}")
            return
        operands = f"%rt, {self._symbol(f'{name}_entry')}, {block}, {self.size(total)}, {self.size(grain)}"
        self.lines.append(
            f"  llvm.call {self.function['launch']}({operands}, {self.constant(self.step)}) "
            ": !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64) -> ()"
        )

    def _dot(self, call: DotCall) -> list[Value]:
        """Each `DiscDot`, behind it the arguments of its epilogue."""
        values: list[Value] = []
        for product in call.products:
            arguments = self._epilogue_words(product.epilogue)
            behind = len(values) + DOT_WORDS
            follower = None if product is call.products[-1] else behind + len(arguments)
            values += self._product(product, call.tile, behind, follower) + arguments
        return values

    def _convolution(self, call: ConvolutionCall) -> list[Value]:
        """The words of a `DiscConvolution`, behind them the arguments of its epilogue."""
        (product,) = call.product.products
        own = len(call.words) + 1 + len(FUNCTIONS)
        values = self._product(product, call.product.tile, DOT_WORDS + own, None)
        values += [(self.size(w), "i64") for w in call.words]
        values.append(self._address_word(product.lhs))
        functions = [self._symbol(name) if call.may_transform else self._null() for name in FUNCTIONS]
        values += [(function, "!llvm.ptr") for function in functions]
        return values + self._epilogue_words(product.epilogue)

    def _symbol(self, name: str) -> str:
        return self._once(("symbol", name), f"llvm.mlir.addressof @{name} : !llvm.ptr")

    def _null(self) -> str:
        name = self._once("null", "llvm.mlir.zero : !llvm.ptr")
        self.numbers[name] = 0
        return name

    def _runtime_call(self, function: str, values: Sequence[Value]) -> None:
        """Call a function of the runtime with a block of these words."""
        operands = f"%rt, {self._filled(values)}, {self.constant(self.step)}"
        self.lines.append(
            f"  llvm.call {self.function[function]}({operands}) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, i64) -> ()"
        )

    def _product(self, product: Product, tile: Tile, behind: int, follower: int | None) -> list[Value]:
        """The words of a `DiscDot`, with its epilogue's arguments from word `behind`, the next one at `follower`."""
        values: list[Value] = [(self.size(w), "i64") for w in product.words]
        values += [self._address_word(p) for p in (product.lhs, product.rhs, product.result, product.packed)]
        values += self._tile(tile)
        values.append(self._address_word(None) if follower is None else follower)
        epilogue = product.epilogue
        if epilogue is None:
            return [*values, *[self._address_word(None)] * 2, *[(self.constant(0), "i64")] * 4]
        count = len(epilogue.buffers) + len(epilogue.sizes)
        values += [(self._symbol(f"{epilogue.kernel}_entry"), "!llvm.ptr"), behind]
        values += [(self.constant(count), "i64"), (self.size(epilogue.grain), "i64")]
        return values + [(self.constant(-1 if w is None else w), "i64") for w in (epilogue.sums, epilogue.tile)]

    def _epilogue_words(self, epilogue: Epilogue | None) -> list[Value]:
        if epilogue is None:
            return []
        words: list[Value] = [self._address_word(p) for p in epilogue.buffers]
        own = range(0) if epilogue.tile is None else range(epilogue.tile, epilogue.tile + TILE_WORDS)
        for number, size in enumerate(epilogue.sizes, len(words)):
            words.append((self.constant(0) if number in own else self.size(size), "i64"))
        return words

    def _tile(self, tile: Tile) -> list[Value]:
        return [
            (self._symbol(tile.name), "!llvm.ptr"),
            (self.constant(tile.rows), "i64"),
            (self.constant(tile.columns), "i64"),
        ]

    def _attention(self, call: AttentionCall) -> list[Value]:
        """The words of a `DiscAttention`, and those of its row kernel."""
        values: list[Value] = [(self.size(w), "i64") for w in call.words]
        values += [self._address_word(p) for p in call.buffers]
        values += [*self._tile(call.tile), (self._symbol(f"{call.rows}_entry"), "!llvm.ptr")]
        scores = [i for i, p in enumerate(call.row_buffers) if p is None]
        bound = len(call.row_buffers) + call.row_sizes.index(None) if None in call.row_sizes else -1
        numbers = [len(call.row_buffers) + len(call.row_sizes), *scores, bound]
        values += [(self.constant(number), "i64") for number in numbers]
        values += [(self.size(number), "i64") for number in call.causal]
        values += [self._address_word(p) for p in call.row_buffers]
        return values + [(self.constant(0) if s is None else self.size(s), "i64") for s in call.row_sizes]

    def _address_word(self, place: Place | None) -> tuple[str, str]:
        return (self._null() if place is None else self.pointer(place), "!llvm.ptr")

    def _read_sizes(self, read: ReadSizes) -> None:
        source, table = self.pointer(read.source), self._buffer(self.segment.table)
        type_ = f"i{read.bits}"
        for element, position in enumerate(read.positions):
            address = self._op(f"llvm.getelementptr {source}[{element}] : (!llvm.ptr) -> !llvm.ptr, {type_}")
            value = self._op(f"llvm.load {address} : !llvm.ptr -> {type_}")
            if read.bits < 64:
                value = self._op(f"llvm.{'zext' if read.is_unsigned else 'sext'} {value} : {type_} to i64")
            target = self._op(f"llvm.getelementptr {table}[{position}] : (!llvm.ptr) -> !llvm.ptr, i64")
            self.lines.append(f"  llvm.store {value}, {target} : i64, !llvm.ptr")

    def _library(self, call: LibraryCall) -> None:
        values: list[Value] = []
        for place, sizes in call.tensors:
            values.append((self.pointer(place), "!llvm.ptr"))
            values += [(self.size(size), "i64") for size in sizes]
        block = self._filled(values)
        self.lines.append(
            f"  llvm.call {self.function['call']}(%rt, {self.constant(call.index)}, {block}, "
            f"{self.constant(self.step)}) : !llvm.ptr, (!llvm.ptr, i64, !llvm.ptr, i64) -> ()"
        )

    # ---- loops and branches -----------------------------------------------------------------------------------------

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

    def _loop(self, loop: Loop) -> None:
        with self._nested() as number:
            self.lines += [f"  llvm.br ^condition{number}", f"^condition{number}:"]
            self.write(loop.before)
            goes_on = self._truth(loop.condition)
            self.lines += [f"  llvm.cond_br {goes_on}, ^body{number}, ^exit{number}", f"^body{number}:"]
            self.write(loop.body)
            self.lines += [f"  llvm.br ^condition{number}", f"^exit{number}:"]

    def _branch(self, branch: Branch) -> None:
        with self._nested() as number:
            pointer = self.pointer(branch.index)
            index = self._op(f"llvm.load {pointer} : !llvm.ptr -> i{branch.bits}")
            last = len(branch.branches) - 1
            cases = ", ".join(f"{i}: ^branch{number}_{i}" for i in range(last))
            self.lines.append(f"  llvm.switch {index} : i{branch.bits}, ^branch{number}_{last} [{cases}]")
            for position, steps in enumerate(branch.branches):
                self.lines.append(f"^branch{number}_{position}:")
                self.write(steps)
                self.lines.append(f"  llvm.br ^exit{number}")
            self.lines.append(f"^exit{number}:")

    def _truth(self, place: Place) -> str:
        byte = self._op(f"llvm.load {self.pointer(place)} : !llvm.ptr -> i8")
        return self._op(f'llvm.icmp "ne" {byte}, {self.constant(0, 8)} : i8')

    def globals(self) -> list[str]:
        """The constant images that the function refers to."""
        return [
            f"llvm.mlir.global internal constant @{name}(dense<{list(words)}> : tensor<{len(words)}xi64>) "
            f"{{alignment = 64 : i64}} : !llvm.array<{len(words)} x i64>"
            for words, name in self.images.items()
        ]

    def text(self) -> str:
        """The function."""
        body = "\n".join(self.once)
        arguments = "%rt: !llvm.ptr, %buffers: !llvm.ptr, %words: !llvm.ptr, %arena: !llvm.ptr"
        block = (
            f"  %block_words = llvm.mlir.constant({max(1, self.block_words)} : i64) : i64\n"
            "  %block = llvm.alloca %block_words x i64 : (i64) -> !llvm.ptr"
        )
        name = function_name("disc_run", self.segment.number)
        return f"llvm.func @{name}({arguments}) {{\n{block}\n{body}\n  llvm.return\n}}"


def write_run(steps: Sequence[Step], words: Words, segment: Segment) -> list[str]:
    """The texts of the constants that `disc_run` refers to, and of itself."""
    writer = RunWriter(words, max(map(_block_words, steps), default=0), segment)
    writer.write(steps)
    return [*writer.globals(), writer.text()]


def _block_words(step: Step) -> int:
    """The words of the argument block of a step outside of loops and branches."""
    if isinstance(step, Launch):
        return len(step.buffers) + len(step.sizes)
    if isinstance(step, DotCall):
        epilogues = [p.epilogue for p in step.products if p.epilogue is not None]
        return DOT_WORDS * len(step.products) + sum(len(e.buffers) + len(e.sizes) for e in epilogues)
    if isinstance(step, ConvolutionCall):
        return _block_words(step.product) + len(step.words) + 4
    if isinstance(step, AttentionCall):
        rows = len(step.row_buffers) + len(step.row_sizes)
        return len(step.words) + len(step.buffers) + rows + 11
    if isinstance(step, LibraryCall):
        return sum(1 + len(sizes) for _, sizes in step.tensors)
    return 3
