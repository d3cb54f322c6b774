# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Micro-kernels of matrix products: `C[rows, NR] (+)= A[rows, k] B[k, NR]` with all of C in registers.

A and B consist of words (`gemm_format.py`): elements, or neighbours along k that are multiplied by one instruction.

One function a number of rows, from 1 to the most that the registers hold, so that no row is padded; the runtime
(`gemm.cpp`) cuts a product of any size into such tiles. Two registers of columns, or one where a schedule says so, and
as many rows as fit leave enough registers for the row of B and a repeated word of A. After Goto and van de Geijn,
"Anatomy of High-Performance Matrix Multiplication" (2008), and BLIS.

    void gemm_f32(int64_t rows, const float *a, const float *b, int64_t b_step, float *c, int64_t c_step, int64_t k,
                  int64_t accumulate, const char *fetch, int64_t fetch_step)

A lies in blocks of `DEPTH` along k, within a block row by row: element (r, k) is at
`(k / DEPTH * rows + r) * DEPTH + k % DEPTH`, so that one pointer reaches all rows at constant distances. Rows of B and
of C are `b_step` and `c_step` elements apart. For each row of B, a tile prefetches as many bytes from `fetch` on into
the second cache, and adds `fetch_step` bytes to it: the caller chooses what is needed next. Any address will do, as a
prefetch never faults. Tiles of at most half of the rows take a null pointer as well, and prefetch nothing then: they
wait for their loads, of which a prefetch takes the place where the caches have B. Tiles of AMX never prefetch.
"""

from __future__ import annotations

from functools import cache
from typing import ClassVar

from shlo_disc.lowering.codegen import Routines
from shlo_disc.lowering_cpu.micro_kernels import amx_kernel
from shlo_disc.lowering_cpu.micro_kernels.gemm_format import AMX, MULTIPLIERS, Multiplier, format_of
from shlo_disc.lowering_cpu.micro_kernels.llvm_writer import LlvmWriter
from shlo_disc.lowering_cpu.options import CpuOptions
from shlo_disc.runtime.abi import TILE
from shlo_disc.shape_dialect.dialect.host import TILE_REGISTERS, GemmTile

DEPTH = 64
"""Words of a row of A that lie together; the runtime packs in the same blocks."""

FEWEST_CHAINS = 8
"""Independent sums needed to hide the latency of a multiply-add on two units."""

LINE_BYTES = 64
"""The bytes of a line of the caches."""

_SPLIT = 8
"""Registers for the parts of words where no instruction multiplies pairs."""

_BYTES = {"f32": 4, "f64": 8, "i32": 4}


def multiplier_of(tile: GemmTile) -> Multiplier:
    """The multiplier of words."""
    return MULTIPLIERS[tile.format.multiplier]


def tile_of(element: str, options: CpuOptions, registers: int = TILE_REGISTERS) -> GemmTile:
    """The tile of products of an element type, with so many registers in a row where tiles of that type may have."""
    format_ = format_of(element, options)
    multiplier = MULTIPLIERS[format_.multiplier]
    split = 0 if options.is_x86 or multiplier.sums != "i32" else _SPLIT
    if multiplier.name in AMX:
        return GemmTile(format_, options.vector_bits // 32, amx_kernel.ROWS, is_x86=True)
    sums = options.registers - 4 - multiplier.spare - split
    lanes = options.vector_bits // 8 // _BYTES[multiplier.word]
    return GemmTile(format_, lanes, sums // registers, options.is_x86, registers)


def micro_kernels(tile: GemmTile) -> list[tuple[str, str]]:
    """The functions' names and their text in the LLVM dialect; the last one, of the tile's name, chooses by `rows`."""
    if multiplier_of(tile).name in AMX:
        return [(tile.name, amx_kernel.amx_kernel(tile.name, multiplier_of(tile), _ARGUMENTS, DEPTH))]
    writers = [_Kernel(tile, rows, fetches=True) for rows in range(1, tile.rows + 1)]
    writers += [_Kernel(tile, rows, fetches=False) for rows in _few_rows(tile)]
    return [*((writer.name, writer.text()) for writer in writers), (tile.name, _chooser(tile))]


def _few_rows(tile: GemmTile) -> range:
    """The numbers of rows for which loads are what a tile waits for."""
    return range(1, tile.rows // 2 + 1)


SIGNATURE = TILE.llvm_parameters.removeprefix("i64, ")
"""Parameter types of the function for one number of rows."""


_ARGUMENTS = (
    "%a: !llvm.ptr, %b: !llvm.ptr, %b_step: i64, %c: !llvm.ptr, %c_step: i64, %k: i64, %accumulate: i64, "
    "%fetch: !llvm.ptr, %fetch_step: i64"
)
_NAMES = ", ".join(argument.partition(":")[0] for argument in _ARGUMENTS.split(", "))


@cache
def tile_routines(tile: GemmTile) -> Routines:
    """The micro-kernels as code that programs share."""
    return Routines((tile.name,), tuple(text for _, text in micro_kernels(tile)), is_optnone=True)


def _chooser(tile: GemmTile) -> str:
    cases = ", ".join(f"{rows}: ^rows{rows}" for rows in range(1, tile.rows))
    lines = [
        f"llvm.func @{tile.name}(%rows: i64, {_ARGUMENTS}) {{",
        "  %null = llvm.mlir.zero : !llvm.ptr",
        '  %is_near = llvm.icmp "eq" %fetch, %null : !llvm.ptr',
        f"  llvm.switch %rows : i64, ^rows{tile.rows} [{cases}]",
    ]
    few = _few_rows(tile)
    for rows in range(1, tile.rows + 1):
        lines.append(f"^rows{rows}:")
        if rows in few:
            lines += [f"  llvm.cond_br %is_near, ^near{rows}, ^far{rows}", f"^near{rows}:"]
            lines += _call(f"{tile.name}_{rows}_near")
            lines.append(f"^far{rows}:")
        lines += _call(f"{tile.name}_{rows}")
    return "\n".join([*lines, "}"])


def _call(kernel: str) -> list[str]:
    return [f"  llvm.call @{kernel}({_NAMES}) : ({SIGNATURE}) -> ()", "  llvm.return"]


class _Kernel(LlvmWriter):
    """Writes one micro-kernel: a loop over blocks of A, in it one over k.

    All sums travel as block arguments. Where rows are few, several words of k are worked on in turn, each with sums of
    its own. Where A is given 128 too large, there is one more row of sums, of 128 times B, to be taken off.
    """

    def __init__(self, tile: GemmTile, rows: int, fetches: bool):
        super().__init__()
        self.tile = tile
        self.rows = rows
        self.multiplier = multiplier_of(tile)
        self.has_offset = self.multiplier.name == "i8x4"
        self.registers = tile.registers * (rows + self.has_offset)
        self.chains = max(1, FEWEST_CHAINS // self.registers)
        self.words = f"vector<{tile.lanes}x{self.multiplier.word}>"
        self.vector = f"vector<{tile.lanes}x{self.multiplier.sums}>"
        self.alignment = f"{{alignment = {_BYTES[self.multiplier.word]} : i64}}"
        self.sum_types = [self.vector] * (self.registers * self.chains)
        self.fetches = fetches
        self.name = f"{tile.name}_{rows}" if fetches else f"{tile.name}_{rows}_near"

    # ---- ops --------------------------------------------------------------------------------------------------------

    def _element(self, pointer: str, index: str | int) -> str:
        """The address of a word."""
        index_type = "" if isinstance(index, int) else ", i64"
        return self.op(
            f"llvm.getelementptr {pointer}[{index}] : (!llvm.ptr{index_type}) -> !llvm.ptr, {self.multiplier.word}"
        )

    def _byte(self, pointer: str, offset: str | int) -> str:
        """The address so many bytes further on."""
        index_type = "" if isinstance(offset, int) else ", i64"
        return self.op(f"llvm.getelementptr {pointer}[{offset}] : (!llvm.ptr{index_type}) -> !llvm.ptr, i8")

    def _load(self, pointer: str, type_: str) -> str:
        return self.op(f"llvm.load {pointer} {self.alignment} : !llvm.ptr -> {type_}")

    def _splat(self, value: int | float, type_: str) -> str:
        return self.op(f"llvm.mlir.constant(dense<{value}> : {type_}) : {type_}")

    def _fetch(self, pointer: str) -> None:
        """Brings a cache line to the second cache; it may lie anywhere."""
        attributes = "rw = 0 : i32, hint = 2 : i32, cache = 1 : i32"
        self.lines.append(f'  "llvm.intr.prefetch"({pointer}) <{{{attributes}}}> : (!llvm.ptr) -> ()')

    def _repeated(self, pointer: str) -> str:
        """One word in every lane."""
        value = self.op(f"llvm.load {pointer} : !llvm.ptr -> {self.multiplier.word}")
        return self.op(f"vector.broadcast {value} : {self.multiplier.word} to {self.words}")

    def _block(self, name: str, plain: list[str], types: list[str]) -> tuple[list[str], list[str]]:
        """Begin a block: its plain arguments and its sums."""
        sums = [f"%{name}_{i}" for i in range(len(self.sum_types))]
        typed = zip([*plain, *sums], [*types, *self.sum_types], strict=True)
        self.lines.append(f"^{name}({', '.join(f'{n}: {t}' for n, t in typed)}):")
        return plain, sums

    def _target(self, name: str, plain: list[str], types: list[str], sums: list[str]) -> str:
        kinds = ", ".join([*types, *self.sum_types])
        return f"^{name}({', '.join([*plain, *sums])} : {kinds})"

    def _branch(self, condition: str, yes: str, no: str) -> None:
        self.lines.append(f"  llvm.cond_br {condition}, {yes}, {no}")

    # ---- the kernel -------------------------------------------------------------------------------------------------

    _HERE: ClassVar[list[str]] = ["!llvm.ptr", "!llvm.ptr", "!llvm.ptr", "i64"]
    """Types of what the loops carry besides sums: where A, B and what is fetched stand, and how much of k is left."""

    def text(self) -> str:
        """The function."""
        self._write()
        body = "\n".join(self.lines)
        return f"llvm.func @{self.name}({_ARGUMENTS}) {{\n{body}\n  llvm.return\n}}"

    def _write(self) -> None:
        """All blocks."""
        self.zero, self.depth = self.constant(0), self.constant(DEPTH)
        none = self._splat(0 if self.multiplier.sums == "i32" else 0.0, self.vector)
        if self.has_offset:
            self.offset = self._splat(-0x7F7F7F80, self.words)  # 128 in each byte
        places = self._places()
        empty = [none] * len(self.sum_types)
        self.lines.append(f"  llvm.br {self._target('outer', ['%a', '%b', '%fetch', '%k'], self._HERE, empty)}")
        self._outer()
        self._inner()
        _, sums = self._block("exit", [], [])
        self._finish(places, sums)

    def _finish(self, places: list[str], sums: list[str]) -> None:
        """Write the sums, or add them to what is there: sums of sums round less than one long sum."""
        add, subtract = ("add", "sub") if self.multiplier.sums == "i32" else ("fadd", "fsub")
        totals = sums[: self.registers]
        for i in range(self.registers, len(sums)):
            first = i % self.registers
            totals[first] = self.op(f"llvm.{add} {totals[first]}, {sums[i]} : {self.vector}")
        if self.has_offset:
            offsets = totals[len(places) :]
            totals = [
                self.op(f"llvm.{subtract} {t}, {offsets[i % self.tile.registers]} : {self.vector}")
                for i, t in enumerate(totals[: len(places)])
            ]
        adds = self.op(f'llvm.icmp "ne" %accumulate, {self.zero} : i64')
        self._branch(adds, "^add", "^write")
        self.lines.append("^add:")
        together = [
            self.op(f"llvm.{add} {self._load(p, self.vector)}, {t} : {self.vector}")
            for p, t in zip(places, totals, strict=True)
        ]
        self._store(together, places)
        self.lines += ["  llvm.return", "^write:"]
        self._store(totals, places)

    def _store(self, values: list[str], places: list[str]) -> None:
        for value, place in zip(values, places, strict=True):
            self.lines.append(f"  llvm.store {value}, {place} {self.alignment} : {self.vector}, !llvm.ptr")

    def _places(self) -> list[str]:
        """The addresses of C's registers, row by row."""
        places: list[str] = []
        row = "%c"
        for _ in range(self.rows):
            places += self._along(row)
            row = self._element(row, "%c_step")
        return places

    def _along(self, row: str) -> list[str]:
        """The addresses of a row's registers."""
        return [row, *(self._element(row, i * self.tile.lanes) for i in range(1, self.tile.registers))]

    def _outer(self) -> None:
        """Over blocks of A."""
        (a, b, fetch, left), sums = self._block("outer", ["%outer_a", "%outer_b", "%outer_f", "%left"], self._HERE)
        some = self.op(f'llvm.icmp "sgt" {left}, {self.zero} : i64')
        here = self.op(f'"llvm.intr.smin"({left}, {self.depth}) : (i64, i64) -> i64')
        self._branch(
            some, self._target("inner", [a, b, fetch, here], self._HERE, sums), self._target("exit", [], [], sums)
        )
        places, sums = self._block("next", ["%next_b", "%next_f"], ["!llvm.ptr"] * 2)
        after = self._element("%outer_a", self.constant(self.rows * DEPTH))
        rest = self.op(f"llvm.sub %left, {self.depth} : i64")
        self.lines.append(f"  llvm.br {self._target('outer', [after, *places, rest], self._HERE, sums)}")

    def _inner(self) -> None:
        """Over k within a block: `chains` words at a time, then one by one."""
        here, sums = self._block("inner", ["%inner_a", "%inner_b", "%inner_f", "%rest"], self._HERE)
        if self.chains == 1:
            self._advance("inner", here, sums, 1)
            return
        many = self.op(f'llvm.icmp "sge" {here[-1]}, {self.constant(self.chains)} : i64')
        self._branch(many, "^several", self._target("single", here, self._HERE, sums))
        self.lines.append("^several:")
        self._advance("inner", here, sums, self.chains)
        here, sums = self._block("single", ["%single_a", "%single_b", "%single_f", "%single_rest"], self._HERE)
        self._advance("single", here, sums, 1)

    def _advance(self, loop: str, here: list[str], sums: list[str], steps: int) -> None:
        """`steps` words of k, then back to `loop` or on to the next block."""
        a, b, fetch, rest = here
        after: list[str] = []
        for step in range(steps):
            first = self._element(a, step) if step else a
            fetch = self._fetch_row(fetch)
            after += self._step(first, b, sums[step * self.registers : (step + 1) * self.registers])
            b = self._element(b, "%b_step")
        after += sums[len(after) :]
        a = self._element(a, steps)
        rest = self.op(f"llvm.sub {rest}, {self.constant(steps)} : i64")
        more = self.op(f'llvm.icmp "sgt" {rest}, {self.zero} : i64')
        again = self._target(loop, [a, b, fetch, rest], self._HERE, after)
        self._branch(more, again, self._target("next", [b, fetch], ["!llvm.ptr"] * 2, after))

    def _fetch_row(self, place: str) -> str:
        """Fetch as many bytes as a row of B has; returns the place of the next."""
        if not self.fetches:
            return place
        width = self.tile.registers * self.tile.lanes * _BYTES[self.multiplier.word]
        for offset in range(0, width, LINE_BYTES):
            self._fetch(self._byte(place, offset) if offset else place)
        return self._byte(place, "%fetch_step")

    def _step(self, a: str, b: str, sums: list[str]) -> list[str]:
        """One word of each row of A times one row of B."""
        columns = [self._load(place, self.words) for place in self._along(b)]
        result: list[str] = []
        for row in range(self.rows):
            value = self._repeated(self._element(a, row * DEPTH) if row else a)
            for column in columns:
                result.append(self._multiply_add(value, column, sums[len(result)]))
        if self.has_offset:
            result += [
                self._multiply_add(self.offset, column, sums[len(result) + i]) for i, column in enumerate(columns)
            ]
        return result

    def _multiply_add(self, a: str, b: str, total: str) -> str:
        """`total` and the product of two words, lane by lane."""
        lanes = self.tile.lanes
        if self.multiplier.name in ("f32", "f64"):
            types = ", ".join([self.vector] * 3)
            return self.op(f"llvm.intr.fmuladd({a}, {b}, {total}) : ({types}) -> {self.vector}")
        if self.multiplier.name == "bf16x2":
            return self._instruction("avx512bf16.dpbf16ps.512", [a, b], f"vector<{2 * lanes}xbf16>", total)
        if self.multiplier.name == "i8x4":
            return self._instruction("avx512.vpdpbusd.512", [a, b], f"vector<{4 * lanes}xi8>", total)
        product = self._pairs(a, b) if self.multiplier.name == "i16x2" else self._binary("mul", a, b)
        return self._binary("add", product, total)

    def _pairs(self, a: str, b: str) -> str:
        """The products of two pairs of 16-bit integers, added up."""
        if self.tile.is_x86:
            name = {4: "sse2.pmadd.wd", 8: "avx2.pmadd.wd", 16: "avx512.pmaddw.d.512"}[self.tile.lanes]
            return self._instruction(name, [a, b], f"vector<{2 * self.tile.lanes}xi16>")
        half = self._splat(16, self.words)
        upper = self._binary("mul", self._binary("ashr", a, half), self._binary("ashr", b, half))
        low = [self._binary("ashr", self._binary("shl", word, half), half) for word in (a, b)]
        return self._binary("add", upper, self._binary("mul", *low))

    def _binary(self, name: str, a: str, b: str) -> str:
        return self.op(f"llvm.{name} {a}, {b} : {self.words}")

    def _instruction(self, name: str, words: list[str], type_: str, total: str | None = None) -> str:
        """An instruction of x86 on words seen as vectors of `type_`, with a sum before them if there is one."""
        operands = [] if total is None else [total]
        types = [] if total is None else [self.vector]
        for word in words:
            operands.append(self.op(f"llvm.bitcast {word} : {self.words} to {type_}"))
            types.append(type_)
        call = f'llvm.call_intrinsic "llvm.x86.{name}"({", ".join(operands)})'
        return self.op(f"{call} : ({', '.join(types)}) -> {self.vector}")
