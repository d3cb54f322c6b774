# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Micro-kernels of matrix products: `C[rows, NR] (+)= A[rows, k] B[k, NR]` with all of C in registers.

One function a number of rows, from 1 to the most that the registers hold, so that no row is padded; the runtime
(`gemm.cpp`) cuts a product of any size into such tiles. Two registers of columns and as many rows as fit leave enough
registers for the row of B and a repeated element of A. After Goto and van de Geijn, "Anatomy of High-Performance Matrix
Multiplication" (2008), and BLIS.

    void gemm_f32(int64_t rows, const float *a, const float *b, int64_t b_step, float *c, int64_t c_step, int64_t k,
                  int64_t accumulate)

A lies in blocks of `DEPTH` along k, within a block row by row: element (r, k) is at
`(k / DEPTH * rows + r) * DEPTH + k % DEPTH`, so that one pointer reaches all rows at constant distances. Rows of B and
of C are `b_step` and `c_step` elements apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

DEPTH = 64
"""Elements of a row of A that lie together; the runtime packs in the same blocks."""

FEWEST_CHAINS = 8
"""Independent sums needed to hide the latency of a multiply-add on two units."""

ROWS_AHEAD = 32
"""How far ahead rows of B are fetched: packed ones are a page of memory away, where processors stop fetching ahead."""

_BITS = {"f32": 32, "f64": 64}


@dataclass(frozen=True)
class Tile:
    """The largest tile of a target: `rows` by `columns` elements."""

    element: str
    lanes: int
    rows: int

    @property
    def columns(self) -> int:
        """Columns of a tile, two registers."""
        return 2 * self.lanes

    @property
    def name(self) -> str:
        """The function that computes a tile of any number of rows."""
        return f"gemm_{self.element}"


def tile_of(element: str, vector_bits: int) -> Tile:
    """The tile for registers of so many bits; processors with 512 have 32 of them, others count as having 16."""
    registers = 32 if vector_bits == 512 else 16
    return Tile(element, vector_bits // _BITS[element], (registers - 4) // 2)


def micro_kernels(tile: Tile) -> list[tuple[str, str]]:
    """The functions' names and their text in the LLVM dialect; the last one, of the tile's name, chooses by `rows`."""
    kernels = [(f"{tile.name}_{rows}", _kernel(tile, rows)) for rows in range(1, tile.rows + 1)]
    return [*kernels, (tile.name, _chooser(tile))]


SIGNATURE = "!llvm.ptr, !llvm.ptr, i64, !llvm.ptr, i64, i64, i64"
"""Of the function for one number of rows."""


_ARGUMENTS = "%a: !llvm.ptr, %b: !llvm.ptr, %b_step: i64, %c: !llvm.ptr, %c_step: i64, %k: i64, %accumulate: i64"


def _chooser(tile: Tile) -> str:
    cases = ", ".join(f"{rows}: ^rows{rows}" for rows in range(1, tile.rows))
    lines = [
        f"llvm.func @{tile.name}(%rows: i64, {_ARGUMENTS}) {{",
        f"  llvm.switch %rows : i64, ^rows{tile.rows} [{cases}]",
    ]
    for rows in range(1, tile.rows + 1):
        lines += [
            f"^rows{rows}:",
            f"  llvm.call @{tile.name}_{rows}(%a, %b, %b_step, %c, %c_step, %k, %accumulate) : ({SIGNATURE}) -> ()",
            "  llvm.return",
        ]
    return "\n".join([*lines, "}"])


def _kernel(tile: Tile, rows: int) -> str:
    writer = _Kernel(tile, rows)
    writer.write()
    body = "\n".join(writer.lines)
    return f"llvm.func @{tile.name}_{rows}({_ARGUMENTS}) {{\n{body}\n  llvm.return\n}}"


class _Kernel:
    """Writes one micro-kernel: a loop over blocks of A, in it one over k.

    All sums travel as block arguments. Where rows are few, several elements of k are worked on in turn, each with sums
    of its own.
    """

    def __init__(self, tile: Tile, rows: int):
        self.tile = tile
        self.rows = rows
        self.registers = 2 * rows
        self.chains = max(1, FEWEST_CHAINS // self.registers)
        self.vector = f"vector<{tile.lanes}x{tile.element}>"
        self.alignment = f"{{alignment = {_BITS[tile.element] // 8} : i64}}"
        self.sum_types = [self.vector] * (self.registers * self.chains)
        self.fetches = 2 * rows > tile.rows  # with fewer rows, B comes as fast without
        self.lines: list[str] = []
        self.count = 0

    # ---- ops --------------------------------------------------------------------------------------------------------

    def _op(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return f"%v{self.count}"

    def _constant(self, number: int) -> str:
        return self._op(f"llvm.mlir.constant({number} : i64) : i64")

    def _element(self, pointer: str, index: str | int) -> str:
        """The address of an element."""
        index_type = "" if isinstance(index, int) else ", i64"
        return self._op(
            f"llvm.getelementptr {pointer}[{index}] : (!llvm.ptr{index_type}) -> !llvm.ptr, {self.tile.element}"
        )

    def _load(self, pointer: str) -> str:
        return self._op(f"llvm.load {pointer} {self.alignment} : !llvm.ptr -> {self.vector}")

    def _fetch(self, pointer: str) -> None:
        """Brings a cache line to the caches; it may lie outside of B."""
        attributes = "rw = 0 : i32, hint = 3 : i32, cache = 1 : i32"
        self.lines.append(f'  "llvm.intr.prefetch"({pointer}) <{{{attributes}}}> : (!llvm.ptr) -> ()')

    def _repeated(self, pointer: str) -> str:
        """One element in every lane."""
        value = self._op(f"llvm.load {pointer} : !llvm.ptr -> {self.tile.element}")
        return self._op(f"vector.broadcast {value} : {self.tile.element} to {self.vector}")

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

    _HERE: ClassVar[list[str]] = ["!llvm.ptr", "!llvm.ptr", "i64"]
    """Types of what the loops carry besides sums: where A and B stand, and how much of k is left."""

    def write(self) -> None:
        """All blocks."""
        self.zero, self.depth = self._constant(0), self._constant(DEPTH)
        none = self._op(f"llvm.mlir.constant(dense<0.0> : {self.vector}) : {self.vector}")
        if self.fetches:
            self.ahead = self._op(f"llvm.mul %b_step, {self._constant(ROWS_AHEAD)} : i64")
        places = self._places()
        adds = self._op(f'llvm.icmp "ne" %accumulate, {self.zero} : i64')
        start: list[str] = ["%a", "%b", "%k"]
        empty = [none] * len(self.sum_types)
        self._branch(adds, "^read", self._target("outer", start, self._HERE, empty))
        self.lines.append("^read:")
        old = [self._load(p) for p in places]
        self.lines.append(f"  llvm.br {self._target('outer', start, self._HERE, [*old, *empty[self.registers :]])}")
        self._outer()
        self._inner()
        _, sums = self._block("exit", [], [])
        for i, place in enumerate(places):
            total = sums[i]
            for other in sums[i + self.registers :: self.registers]:
                total = self._op(f"llvm.fadd {total}, {other} : {self.vector}")
            self.lines.append(f"  llvm.store {total}, {place} {self.alignment} : {self.vector}, !llvm.ptr")

    def _places(self) -> list[str]:
        """The addresses of C's registers, row by row."""
        places: list[str] = []
        row = "%c"
        for _ in range(self.rows):
            places += [row, self._element(row, self.tile.lanes)]
            row = self._element(row, "%c_step")
        return places

    def _outer(self) -> None:
        """Over blocks of A."""
        (a, b, left), sums = self._block("outer", ["%outer_a", "%outer_b", "%left"], self._HERE)
        some = self._op(f'llvm.icmp "sgt" {left}, {self.zero} : i64')
        here = self._op(f'"llvm.intr.smin"({left}, {self.depth}) : (i64, i64) -> i64')
        self._branch(some, self._target("inner", [a, b, here], self._HERE, sums), self._target("exit", [], [], sums))
        _, sums = self._block("next", ["%next_b"], ["!llvm.ptr"])
        after = self._element("%outer_a", self._constant(self.rows * DEPTH))
        rest = self._op(f"llvm.sub %left, {self.depth} : i64")
        self.lines.append(f"  llvm.br {self._target('outer', [after, '%next_b', rest], self._HERE, sums)}")

    def _inner(self) -> None:
        """Over k within a block: `chains` elements at a time, then one by one."""
        here, sums = self._block("inner", ["%inner_a", "%inner_b", "%rest"], self._HERE)
        if self.chains == 1:
            self._advance("inner", here, sums, 1)
            return
        many = self._op(f'llvm.icmp "sge" {here[2]}, {self._constant(self.chains)} : i64')
        self._branch(many, "^several", self._target("single", here, self._HERE, sums))
        self.lines.append("^several:")
        self._advance("inner", here, sums, self.chains)
        here, sums = self._block("single", ["%single_a", "%single_b", "%single_rest"], self._HERE)
        self._advance("single", here, sums, 1)

    def _advance(self, loop: str, here: list[str], sums: list[str], steps: int) -> None:
        """`steps` elements of k, then back to `loop` or on to the next block."""
        a, b, rest = here
        after: list[str] = []
        for step in range(steps):
            first = self._element(a, step) if step else a
            after += self._step(first, b, sums[step * self.registers : (step + 1) * self.registers])
            b = self._element(b, "%b_step")
        after += sums[len(after) :]
        a = self._element(a, steps)
        rest = self._op(f"llvm.sub {rest}, {self._constant(steps)} : i64")
        more = self._op(f'llvm.icmp "sgt" {rest}, {self.zero} : i64')
        again = self._target(loop, [a, b, rest], self._HERE, after)
        self._branch(more, again, self._target("next", [b], ["!llvm.ptr"], after))

    def _step(self, a: str, b: str, sums: list[str]) -> list[str]:
        """One element of each row of A times one row of B."""
        if self.fetches:
            first = self._element(b, self.ahead)
            self._fetch(first)
            self._fetch(self._element(first, self.tile.lanes))
        columns = [self._load(b), self._load(self._element(b, self.tile.lanes))]
        result: list[str] = []
        for row in range(self.rows):
            value = self._repeated(self._element(a, row * DEPTH) if row else a)
            for column in columns:
                operands = f"{value}, {column}, {sums[len(result)]}"
                types = ", ".join([self.vector] * 3)
                result.append(self._op(f"llvm.intr.fmuladd({operands}) : ({types}) -> {self.vector}"))
        return result
