# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Micro-kernels out of AMX instructions, which multiply tiles of 16 rows by 16 words (Advanced Matrix Extensions).

They read the packed forms of `gemm_kernel.py`: a step of 16 words of k is a tile of A, whose rows are a block's depth
apart, and one of B, whose rows are `b_step` apart. Up to 32 rows by 32 columns of sums are four tiles. A configuration
says how many rows and words the tiles have; to change it empties them, so the last words of k, fewer than 16, are
multiplied first, with a configuration of their own, and their sums go through C.
"""

from __future__ import annotations

from shlo_disc.lowering_cpu.micro_kernels.gemm_format import AMX, Multiplier
from shlo_disc.lowering_cpu.micro_kernels.llvm_writer import LlvmWriter

ROWS = 32
"""Rows of the largest tile of sums."""

_STEP = 16
"""Rows of a hardware tile, and words of its rows."""

_WORD = 4
_A, _B = (4, 5), (6, 7)
"""Hardware tiles of two tiles of rows and of two of columns; those of sums are 0 to 3, row by row."""


def amx_kernel(name: str, multiplier: Multiplier, arguments: str, depth: int) -> str:
    """The text of a micro-kernel in the LLVM dialect; rows of A have blocks of `depth` words."""
    writer = _Kernel(AMX[multiplier.name], depth)
    writer.write()
    body = "\n".join(writer.lines)
    return f"llvm.func @{name}(%rows: i64, {arguments}) {{\n{body}\n}}"


class _Kernel(LlvmWriter):
    """Writes one micro-kernel."""

    def __init__(self, product: str, depth: int):
        super().__init__()
        self.product = product
        self.depth = depth

    # ---- ops --------------------------------------------------------------------------------------------------------

    def _binary(self, name: str, a: str, b: str | int) -> str:
        right = self.constant(b) if isinstance(b, int) else b
        return self.op(f"llvm.{name} {a}, {right} : i64")

    def _compare(self, predicate: str, a: str, b: str | int) -> str:
        right = self.constant(b) if isinstance(b, int) else b
        return self.op(f'llvm.icmp "{predicate}" {a}, {right} : i64')

    def _at(self, pointer: str, bytes_: str) -> str:
        return self.op(f"llvm.getelementptr {pointer}[{bytes_}] : (!llvm.ptr, i64) -> !llvm.ptr, i8")

    def _instruction(self, name: str, tiles: tuple[int, ...], pointer: str | None = None, stride: str = "") -> None:
        operands, types = [self.constant(tile, 8) for tile in tiles], ["i8"] * len(tiles)
        if pointer is not None:
            operands, types = [*operands, pointer], [*types, "!llvm.ptr"]
        if stride:
            operands, types = [*operands, stride], [*types, "i64"]
        self.lines.append(
            f'  llvm.call_intrinsic "llvm.x86.{name}"({", ".join(operands)}) : ({", ".join(types)}) -> ()'
        )

    def _label(self, text: str) -> None:
        self.lines.append(f"^{text}:")

    def _branch(self, condition: str, yes: str, no: str) -> None:
        self.lines.append(f"  llvm.cond_br {condition}, ^{yes}, ^{no}")

    # ---- the kernel -------------------------------------------------------------------------------------------------

    def write(self) -> None:
        """All blocks."""
        self.config = self.op(f"llvm.alloca {self.constant(8)} x i64 : (i64) -> !llvm.ptr")
        self.a_stride = self.constant(self.depth * _WORD)
        self.b_stride = self._binary("mul", "%b_step", _WORD)
        self.c_stride = self._binary("mul", "%c_step", _WORD)
        self.top = self.op(f'"llvm.intr.smin"(%rows, {self.constant(_STEP)}) : (i64, i64) -> i64')
        left = self._binary("sub", "%rows", self.top)
        self.bottom = self.op(f'"llvm.intr.smax"({left}, {self.constant(1)}) : (i64, i64) -> i64')  # if not used, valid
        self.rest = self._binary("and", "%k", _STEP - 1)
        self.whole = self._binary("sub", "%k", self.rest)
        self.zero, one = self.constant(0), self.constant(1)
        steps, some = self._binary("lshr", self.whole, 4), self._compare("ne", self.rest, 0)
        self._branch(self._compare("sgt", "%rows", _STEP), "two", "one")
        for name, rows in (("one", 1), ("two", 2)):
            self._label(name)
            self._branch(some, f"{name}_rest", f"{name}_whole(%accumulate : i64)")
            self._label(f"{name}_rest")
            self._phase(f"{name}_rest", rows, self.rest, self.whole, one, "%accumulate")
            self.lines.append(f"  llvm.br ^{name}_whole({one} : i64)")
            self._label(f"{name}_whole(%{name}_adds: i64)")
            self._phase(f"{name}_whole", rows, self.constant(_STEP), self.zero, steps, f"%{name}_adds")
            self._instruction("tilerelease", ())
            self.lines.append("  llvm.return")

    def _phase(self, name: str, rows: int, words: str, first: str, steps: str, adds: str) -> None:
        """`steps` times `words` words of k from `first` on, added to C if `adds`."""
        self._configure(words)
        sums = [(2 * row + column, self._sums_at(row, column)) for row in range(rows) for column in range(2)]
        self._branch(self._compare("ne", adds, 0), f"{name}_read", f"{name}_clear")
        self._label(f"{name}_read")
        for tile, place in sums:
            self._instruction("tileloadd64", (tile,), place, self.c_stride)
        self.lines.append(f"  llvm.br ^{name}_loop({self.zero} : i64)")
        self._label(f"{name}_clear")
        for tile, _ in sums:
            self._instruction("tilezero", (tile,))
        self.lines.append(f"  llvm.br ^{name}_loop({self.zero} : i64)")
        self._label(f"{name}_loop(%{name}_step: i64)")
        self._branch(self._compare("slt", f"%{name}_step", steps), f"{name}_body", f"{name}_exit")
        self._label(f"{name}_body")
        self._multiply(rows, self._binary("add", first, self._binary("mul", f"%{name}_step", _STEP)))
        self.lines.append(f"  llvm.br ^{name}_loop({self._binary('add', f'%{name}_step', 1)} : i64)")
        self._label(f"{name}_exit")
        for tile, place in sums:
            self._instruction("tilestored64", (tile,), place, self.c_stride)

    def _sums_at(self, row: int, column: int) -> str:
        down = self._binary("mul", self.c_stride, row * _STEP)
        return self._at("%c", self._binary("add", down, column * _STEP * _WORD))

    def _configure(self, words: str) -> None:
        """Palette 1; 16 sizes of rows in bytes, of 16 bits each; 16 numbers of rows, of 8 bits each."""
        wide = self.constant(_STEP * _WORD)
        bytes_ = self._binary("mul", words, _WORD)
        widths = self._packed([wide] * 4, 16), self._packed([bytes_, bytes_, wide, wide], 16)
        heights = self._packed([self.top] * 2 + [self.bottom] * 2 + [self.top, self.bottom, words, words], 8)
        values = [self.constant(1), self.zero, *widths, self.zero, self.zero, heights, self.zero]
        for number, value in enumerate(values):
            place = self.op(f"llvm.getelementptr {self.config}[{number}] : (!llvm.ptr) -> !llvm.ptr, i64")
            self.lines.append(f"  llvm.store {value}, {place} : i64, !llvm.ptr")
        self._instruction("ldtilecfg", (), self.config)

    def _packed(self, numbers: list[str], bits: int) -> str:
        """Numbers of so many bits side by side."""
        result = numbers[0]
        for place, number in enumerate(numbers[1:], 1):
            result = self._binary("or", result, self._binary("shl", number, place * bits))
        return result

    def _multiply(self, rows: int, word: str) -> None:
        """Tiles of A and B from a word of k on."""
        block = self._binary("mul", self._binary("udiv", word, self.depth), "%rows")
        inside = self._binary("urem", word, self.depth)
        place = self._binary("add", self._binary("mul", block, self.depth), inside)
        a = self._at("%a", self._binary("mul", place, _WORD))
        b = self._at("%b", self._binary("mul", self.b_stride, word))
        for column in range(2):
            self._instruction(
                "tileloadd64", (_B[column],), self._at(b, self.constant(column * _STEP * _WORD)), self.b_stride
            )
        for row in range(rows):
            down = self.constant(row * _STEP * self.depth * _WORD)
            self._instruction("tileloadd64", (_A[row],), self._at(a, down), self.a_stride)
            for column in range(2):
                self._instruction(self.product, (2 * row + column, _A[row], _B[column]))
