# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The transforms of Winograd's algorithm F(4x4, 3x3) for convolutions, all channels or features of a patch at a time.

A patch d of 6 x 6 elements and a window g of 3 x 3 weights have 4 x 4 results A' [(G g G') * (B' d B)] A, where * is
the product element by element: 36 multiplications instead of 144, summed over channels as 36 matrix products. After
Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2016). The polynomials behind it are evaluated at
0, +-sqrt(1/2), +-sqrt(2) and infinity: points whose squares multiply to 1 round far less than the usual 0, +-1 and +-2
(Alam, Anderson, Barabasz and Gregg, "Winograd Convolution for Deep Neural Networks: Efficient Point Selection", 2022).
The runtime (`winograd.cpp`) runs the products.

    void winograd_patch_f32(const float *const *pixels, int64_t offset, int64_t count, float *target, int64_t step)
    void winograd_weights_f32(const float *weights, int64_t step, int64_t width, int64_t columns, float *target,
                              int64_t target_step)
    void winograd_sums_f32(const float *sums, int64_t step, int64_t width, float *const *pixels)
"""

from __future__ import annotations

from functools import cache

from shlo_disc.lowering.codegen import Routines
from shlo_disc.lowering_cpu.micro_kernels.llvm_writer import LlvmWriter
from shlo_disc.runtime import abi

PATCH = "winograd_patch_f32"
WEIGHTS = "winograd_weights_f32"
SUMS = "winograd_sums_f32"

FUNCTIONS = (PATCH, WEIGHTS, SUMS)
"""In the order of the fields of `DiscConvolution`."""

SIGNATURES = {PATCH: abi.TRANSFORM_PATCH, WEIGHTS: abi.TRANSFORM_WEIGHTS, SUMS: abi.GATHER_PATCH}
"""Their types."""

EDGE = 4
"""Results of a patch in each direction."""

SIDE = EDGE + 2
"""Its elements in each direction."""

LOW, HIGH = 0.5**0.5, 2.0**0.5
"""The points. Their squares are 1/2 and 2."""


def transforms(lanes: int) -> list[tuple[str, str]]:
    """The functions' names and their text in the LLVM dialect."""
    return [(PATCH, _patch(lanes)), (WEIGHTS, _weights(lanes)), (SUMS, _sums(lanes))]


@cache
def transform_routines(lanes: int) -> Routines:
    """The functions as code that programs share."""
    return Routines(FUNCTIONS, tuple(text for _, text in transforms(lanes)))


class _Writer(LlvmWriter):
    """Writes a function whose loop takes `lanes` channels or features at a time, the last of them masked."""

    def __init__(self, lanes: int):
        super().__init__()
        self.vector = f"vector<{lanes}xf32>"
        self.mask_type = f"vector<{lanes}xi1>"
        self.lanes = lanes

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

    def begin(self, total: str, inside: str) -> None:
        """Open the loop over [0, total): `%here` is where it stands, `self.mask` which lanes are below `inside`."""
        self.total, zero = total, self.constant(0)
        wide = f"vector<{self.lanes}xi64>"
        numbers = ", ".join(map(str, range(self.lanes)))
        lane = self.op(f"llvm.mlir.constant(dense<[{numbers}]> : {wide}) : {wide}")
        self.none = self.op(f"llvm.mlir.constant(dense<0.0> : {self.vector}) : {self.vector}")
        self.lines += [f"  llvm.br ^loop({zero} : i64)", "^loop(%here: i64):"]
        left = self.op(f"llvm.sub {inside}, %here : i64")
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

    def number(self, value: float) -> str:
        """A vector of one number."""
        return self.op(f"llvm.mlir.constant(dense<{value!r}> : {self.vector}) : {self.vector}")

    def add(self, a: str, b: str) -> str:
        """a + b."""
        return self.op(f"llvm.fadd {a}, {b} : {self.vector}")

    def subtract(self, a: str, b: str) -> str:
        """a - b."""
        return self.op(f"llvm.fsub {a}, {b} : {self.vector}")

    def multiply(self, a: str, factor: float) -> str:
        """factor a."""
        return self.op(f"llvm.fmul {a}, {self.number(factor)} : {self.vector}")

    def multiply_add(self, a: str, factor: float, b: str) -> str:
        """factor a + b."""
        types = ", ".join([self.vector] * 3)
        return self.op(f"llvm.intr.fmuladd({a}, {self.number(factor)}, {b}) : ({types}) -> {self.vector}")


def _patch(lanes: int) -> str:
    """B' d B. The target is padded to whole vectors."""
    w = _Writer(lanes)
    pixels = [w.element(p, "%offset") for p in w.pointers("%pixels", SIDE * SIDE)]
    targets = w.strided("%target", "%step", SIDE * SIDE)
    w.begin("%count", "%count")
    columns = []
    for column in range(SIDE):
        columns.append(_of_patch(w, [w.load_inside(w.element(p, "%here")) for p in pixels[column::SIDE]]))
    for row in range(SIDE):
        for column, value in enumerate(_of_patch(w, [c[row] for c in columns])):
            w.store(value, w.element(targets[SIDE * row + column], "%here"))
    w.end()
    return _function(PATCH, "%pixels: !llvm.ptr, %offset: i64, %count: i64, %target: !llvm.ptr, %step: i64", w)


def _of_patch(w: _Writer, d: list[str]) -> list[str]:
    """B' d."""
    result = [w.multiply_add(d[2], -2.5, w.add(d[0], d[4]))]
    for point, other in ((LOW, 2.0), (HIGH, 0.5)):
        even, odd = w.multiply_add(d[2], -other, d[4]), w.multiply_add(d[1], -other, d[3])
        result += [w.multiply_add(odd, point, even), w.multiply_add(odd, -point, even)]
    return [*result, w.multiply_add(d[3], -2.5, w.add(d[1], d[5]))]


def _weights(lanes: int) -> str:
    """G g G' of one channel, `step` elements between the weights of a window: `columns` of them, zeros from `width`."""
    w = _Writer(lanes)
    sources = w.strided("%weights", "%step", 9)
    targets = w.strided("%target", "%target_step", SIDE * SIDE)
    w.begin("%columns", "%width")
    values = [w.load_inside(w.element(p, "%here")) for p in sources]
    columns = [_of_weights(w, values[column::3]) for column in range(3)]
    for row in range(SIDE):
        for column, value in enumerate(_of_weights(w, [c[row] for c in columns])):
            w.store(value, w.element(targets[SIDE * row + column], "%here"))
    w.end()
    arguments = "%weights: !llvm.ptr, %step: i64, %width: i64, %columns: i64, %target: !llvm.ptr, %target_step: i64"
    return _function(WEIGHTS, arguments, w)


def _of_weights(w: _Writer, g: list[str]) -> list[str]:
    """G g."""
    result = [g[0]]
    for point, square, scale in ((LOW, 0.5, -2 / 3), (HIGH, 2.0, 1 / 6)):
        even = w.multiply(w.multiply_add(g[2], square, g[0]), scale)
        result += [w.multiply_add(g[1], scale * point, even), w.multiply_add(g[1], -scale * point, even)]
    return [*result, g[2]]


def _sums(lanes: int) -> str:
    """A' m A. The sums fill whole vectors."""
    w = _Writer(lanes)
    sources = w.strided("%sums", "%step", SIDE * SIDE)
    pixels = w.pointers("%pixels", EDGE * EDGE)
    w.begin("%width", "%width")
    columns = []
    for column in range(SIDE):
        columns.append(_of_sums(w, [w.load(w.element(p, "%here")) for p in sources[column::SIDE]]))
    for row in range(EDGE):
        for column, value in enumerate(_of_sums(w, [c[row] for c in columns])):
            w.store_inside(value, w.element(pixels[EDGE * row + column], "%here"))
    w.end()
    return _function(SUMS, "%sums: !llvm.ptr, %step: i64, %width: i64, %pixels: !llvm.ptr", w)


def _of_sums(w: _Writer, m: list[str]) -> list[str]:
    """A' m."""
    low_even, low_odd = w.add(m[1], m[2]), w.subtract(m[1], m[2])
    high_even, high_odd = w.add(m[3], m[4]), w.subtract(m[3], m[4])
    return [
        w.add(w.add(m[0], low_even), high_even),
        w.multiply_add(high_odd, HIGH, w.multiply(low_odd, LOW)),
        w.multiply_add(high_even, 2.0, w.multiply(low_even, 0.5)),
        w.multiply_add(high_odd, 2.0 * HIGH, w.multiply_add(low_odd, 0.5 * LOW, m[5])),
    ]


def _function(name: str, arguments: str, writer: _Writer) -> str:
    body = "\n".join(writer.lines)
    return f"llvm.func @{name}({arguments}) {{\n{body}\n}}"
