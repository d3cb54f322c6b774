# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops over sliding windows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from shlo_disc.shape_dialect.expr import Expr
from tests.fuzz.builder import FLOATS, Builder, array
from tests.fuzz.families.contractions import combiner, neutral, reduced
from tests.fuzz.program import Printer, Value
from tests.fuzz.ranges import WILD, full, is_float


@dataclass(frozen=True)
class Window:
    """A window along one dimension."""

    size: int = 1
    stride: int = 1
    low: int = 0
    high: int = 0
    dilation: int = 1
    base_dilation: int = 1

    @property
    def spread(self) -> int:
        """From its first element to its last."""
        return (self.size - 1) * self.dilation + 1

    def result(self, dim: Expr) -> Expr:
        """How many windows fit."""
        dilated = dim if self.base_dilation == 1 else Expr.maximum((dim - 1) * self.base_dilation + 1, 0)
        return (dilated + self.low + self.high - self.spread) // self.stride + 1

    def fits(self, sizes: list[int]) -> bool:
        """Whether a window fits at each of the sizes."""
        return min(sizes) >= 1 and self.low + self.high + min(sizes) >= self.spread


def random_window(b: Builder, sizes: list[int]) -> Window:
    """A window that fits at each of the sizes; the trivial one when the drawn one does not."""
    drawn = Window(b.rng.choice((1, 2, 3, 5)), b.rng.choice((1, 1, 2, 3)), b.rng.choice((0, 0, 1, 2)),
                   b.rng.choice((0, 0, 1, 4)), b.rng.choice((1, 1, 2)), b.rng.choice((1, 1, 2)))  # fmt: skip
    return drawn if b.rng.random() < 0.6 and drawn.fits(sizes) else Window()


def attributes(windows: list[Window]) -> str:
    """The windows of all dimensions, as reduce_window has them."""
    padding = ", ".join(f"[{w.low}, {w.high}]" for w in windows)
    return (f"window_dimensions = {array([w.size for w in windows])}, "
            f"window_strides = {array([w.stride for w in windows])}, "
            f"base_dilations = {array([w.base_dilation for w in windows])}, "
            f"window_dilations = {array([w.dilation for w in windows])}, "
            f"padding = dense<[{padding}]> : tensor<{len(windows)}x2xi64>")  # fmt: skip


def reduce_window(b: Builder) -> bool:
    """Sums, maxima and minima over windows."""
    x = b.pick(lambda v: not v.range.wild, (*FLOATS, "i32", "i8", "ui16"), least_rank=1)
    op = b.rng.choice(("add", "maximum", "minimum"))
    windows = [random_window(b, b.at(d)) for d in x.dims]
    found = reduced(op, x.dtype, x.range, math.prod(w.size for w in windows))
    if found is None or x.range.wild:
        return False
    if op != "add" and any(w != Window(w.size, w.stride) for w in windows):
        found = WILD if is_float(x.dtype) and found.exact else full(x.dtype) if not is_float(x.dtype) else None
    dims = tuple(w.result(d) if w != Window() else d for w, d in zip(windows, x.dims, strict=True))
    if found is None or not b.fits(dims):
        return False
    result = Value(x.dtype, dims, found)

    def render(p: Printer, names: list[str], made: list[str]) -> None:
        initial = p.constant(neutral(op, x.dtype), f"tensor<{x.dtype}>")
        p.op("reduce_window", [*names, initial], [p.type(x), f"tensor<{x.dtype}>"], made, [p.type(result)],
             attributes(windows), combiner(op, x.dtype))  # fmt: skip

    return b.add_results("reduce_window", [x], [result], render)


OPS: dict[str, Callable[[Builder], bool]] = {"reduce_window": reduce_window}
