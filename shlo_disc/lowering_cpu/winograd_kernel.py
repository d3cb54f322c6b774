# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The transforms of Winograd's algorithm F(2x2, 3x3) for convolutions, all channels of a patch at a time.

A patch d of 4 x 4 elements and a window g of 3 x 3 weights have 2 x 2 results A' [(G g G') * (B' d B)] A, where * is
the product element by element: 16 multiplications instead of 36, summed over channels as 16 matrix products. The
matrices A and B have only the elements 0, 1 and -1. After Lavin and Gray, "Fast Algorithms for Convolutional Neural
Networks" (2016); the runtime (`winograd.cpp`) transforms the weights and runs the products.

    void winograd_patch_f32(const float *const *pixels, int64_t offset, int64_t count, float *target, int64_t step)
    void winograd_sums_f32(const float *sums, int64_t step, int64_t width, float *const *pixels)
"""

from __future__ import annotations

PATCH = "winograd_patch_f32"
SUMS = "winograd_sums_f32"

DECLARATIONS = (
    f"llvm.func @{PATCH}(!llvm.ptr, i64, i64, !llvm.ptr, i64)",
    f"llvm.func @{SUMS}(!llvm.ptr, i64, i64, !llvm.ptr)",
)


def transforms(lanes: int) -> list[tuple[str, str]]:
    """The two functions' names and their text in the LLVM dialect."""
    return [(PATCH, _patch(lanes)), (SUMS, _sums(lanes))]


class _Writer:
    """Writes a function whose loop takes `lanes` channels at a time, the last of them masked."""

    def __init__(self, lanes: int):
        self.vector = f"vector<{lanes}xf32>"
        self.mask_type = f"vector<{lanes}xi1>"
        self.lanes = lanes
        self.lines: list[str] = []
        self.count = 0

    def op(self, text: str) -> str:
        """An op with a result."""
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return f"%v{self.count}"

    def constant(self, number: int) -> str:
        """A 64-bit integer."""
        return self.op(f"llvm.mlir.constant({number} : i64) : i64")

    def element(self, pointer: str, index: str) -> str:
        """The address of an element."""
        return self.op(f"llvm.getelementptr {pointer}[{index}] : (!llvm.ptr, i64) -> !llvm.ptr, f32")

    def pointers(self, table: str, count: int) -> list[str]:
        """The first entries of a table of addresses."""
        places = [
            self.op(f"llvm.getelementptr {table}[{i}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr") for i in range(count)
        ]
        return [self.op(f"llvm.load {place} : !llvm.ptr -> !llvm.ptr") for place in places]

    def strided(self, base: str, step: str, count: int) -> list[str]:
        """Addresses `step` elements apart."""
        places = [base]
        for _ in range(count - 1):
            places.append(self.element(places[-1], step))
        return places

    def begin(self, total: str) -> None:
        """Open the loop over [0, total): `%here` is where it stands, `self.mask` which lanes are inside."""
        self.total, zero = total, self.constant(0)
        wide = f"vector<{self.lanes}xi64>"
        numbers = ", ".join(map(str, range(self.lanes)))
        lane = self.op(f"llvm.mlir.constant(dense<[{numbers}]> : {wide}) : {wide}")
        self.none = self.op(f"llvm.mlir.constant(dense<0.0> : {self.vector}) : {self.vector}")
        self.lines += [f"  llvm.br ^loop({zero} : i64)", "^loop(%here: i64):"]
        left = self.op(f"llvm.sub {total}, %here : i64")
        self.mask = self.op(f'llvm.icmp "slt" {lane}, {self.op(f"vector.broadcast {left} : i64 to {wide}")} : {wide}')

    def end(self) -> None:
        """Close the loop and the function."""
        following = self.op(f"llvm.add %here, {self.constant(self.lanes)} : i64")
        more = self.op(f'llvm.icmp "slt" {following}, {self.total} : i64')
        self.lines += [f"  llvm.cond_br {more}, ^loop({following} : i64), ^exit", "^exit:", "  llvm.return"]

    def load(self, pointer: str) -> str:
        """A vector."""
        return self.op(f"llvm.load {pointer} {{alignment = 4 : i64}} : !llvm.ptr -> {self.vector}")

    def load_inside(self, pointer: str) -> str:
        """A vector of which only lanes inside are read."""
        types = f"(!llvm.ptr, {self.mask_type}, {self.vector}) -> {self.vector}"
        return self.op(f"llvm.intr.masked.load {pointer}, {self.mask}, {self.none} {{alignment = 4 : i32}} : {types}")

    def store(self, value: str, pointer: str) -> None:
        """A vector."""
        self.lines.append(f"  llvm.store {value}, {pointer} {{alignment = 4 : i64}} : {self.vector}, !llvm.ptr")

    def store_inside(self, value: str, pointer: str) -> None:
        """A vector of which only lanes inside are written."""
        types = f"{self.vector}, {self.mask_type} into !llvm.ptr"
        self.lines.append(f"  llvm.intr.masked.store {value}, {pointer}, {self.mask} {{alignment = 4 : i32}} : {types}")

    def add(self, a: str, b: str) -> str:
        """a + b."""
        return self.op(f"llvm.fadd {a}, {b} : {self.vector}")

    def subtract(self, a: str, b: str) -> str:
        """a - b."""
        return self.op(f"llvm.fsub {a}, {b} : {self.vector}")


def _patch(lanes: int) -> str:
    """B' d B. The target has room for whole vectors."""
    w = _Writer(lanes)
    pixels = [w.element(p, "%offset") for p in w.pointers("%pixels", 16)]
    targets = w.strided("%target", "%step", 16)
    w.begin("%count")
    values = [w.load_inside(w.element(p, "%here")) for p in pixels]
    columns = [_forth(w, values[column::4]) for column in range(4)]
    for row in range(4):
        for column, value in enumerate(_forth(w, [c[row] for c in columns])):
            w.store(value, w.element(targets[4 * row + column], "%here"))
    w.end()
    return _function(PATCH, "%pixels: !llvm.ptr, %offset: i64, %count: i64, %target: !llvm.ptr, %step: i64", w)


def _forth(w: _Writer, d: list[str]) -> list[str]:
    """B' d."""
    return [w.subtract(d[0], d[2]), w.add(d[1], d[2]), w.subtract(d[2], d[1]), w.subtract(d[1], d[3])]


def _sums(lanes: int) -> str:
    """A' m A. The sums fill whole vectors."""
    w = _Writer(lanes)
    sources = w.strided("%sums", "%step", 16)
    pixels = w.pointers("%pixels", 4)
    w.begin("%width")
    values = [w.load(w.element(p, "%here")) for p in sources]
    columns = [_back(w, values[column::4]) for column in range(4)]
    for row in range(2):
        for column, value in enumerate(_back(w, [c[row] for c in columns])):
            w.store_inside(value, w.element(pixels[2 * row + column], "%here"))
    w.end()
    return _function(SUMS, "%sums: !llvm.ptr, %step: i64, %width: i64, %pixels: !llvm.ptr", w)


def _back(w: _Writer, m: list[str]) -> list[str]:
    """A' m."""
    return [w.add(w.add(m[0], m[1]), m[2]), w.subtract(w.subtract(m[1], m[2]), m[3])]


def _function(name: str, arguments: str, writer: _Writer) -> str:
    body = "\n".join(writer.lines)
    return f"llvm.func @{name}({arguments}) {{\n{body}\n}}"
