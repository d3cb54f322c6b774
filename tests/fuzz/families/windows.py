# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops over sliding windows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from shlo_disc.shape_dialect.symbolic.expr import Expr
from tests.fuzz.builder import FLOATS, Builder, array
from tests.fuzz.families.contractions import combiner, neutral, product_sum, reduced
from tests.fuzz.program import Printer, Value
from tests.fuzz.ranges import WILD, Range, full, is_float, rounded


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
        """The number of windows that fit."""
        dilated = dim if self.base_dilation == 1 else Expr.maximum((dim - 1) * self.base_dilation + 1, 0)
        return (dilated + self.low + self.high - self.spread) // self.stride + 1

    def fits(self, sizes: list[int]) -> bool:
        """Tells whether a window fits at each of the sizes."""
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
    if all(w.size == 1 for w in windows) and any(w.base_dilation > 1 for w in windows):
        return False  # XLA fills the holes with elements where it also pads a dimension of size 1
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


def convolution(b: Builder, dynamic: bool) -> bool:
    """One to three spatial dimensions, any layout, groups of features or of batches."""
    count = b.rng.choice((1, 1, 2, 2, 3))
    dtype = b.rng.choice(("f32", "f32", "f64", "bf16", "i32"))
    feature_groups, batch_groups = b.rng.choice(((1, 1), (1, 1), (2, 1), (1, 2)))
    features = feature_groups * b.rng.choice((1, 2, 3))
    outputs = feature_groups * batch_groups * b.rng.choice((1, 2, 3))
    batch = Expr.const(batch_groups * b.rng.choice((1, 2))) if batch_groups > 1 else b.dim()
    space = [b.dim() for _ in range(count)]
    windows = [random_window(b, b.at(d)) for d in space]
    lhs = {"b": batch, "f": Expr.const(features)} | {str(i): d for i, d in enumerate(space)}
    rhs = {"i": Expr.const(features // feature_groups), "o": Expr.const(outputs)}
    rhs |= {str(i): Expr.const(w.size) for i, w in enumerate(windows)}
    out = {"b": batch if batch_groups == 1 else Expr.const((batch.constant or 0) // batch_groups),
           "f": Expr.const(outputs)}  # fmt: skip
    out |= {str(i): w.result(d) if w != Window() else d for i, (w, d) in enumerate(zip(windows, space, strict=True))}
    orders = [b.rng.sample(list(shape), len(shape)) for shape in (lhs, rhs, out)]
    dims = [tuple(shape[k] for k in order) for shape, order in zip((lhs, rhs, out), orders, strict=True)]
    if not all(map(b.fits, dims)):
        return False
    small = Range(-2, 2)
    x = b.argument(dtype, dims[0], small)
    kernel = b.argument(dtype, dims[1], small)
    found = product_sum(dtype, x.range, kernel.range, features * math.prod(w.size for w in windows))
    if found is None:
        return False
    result = Value(dtype, dims[2], found)
    layout = "x".join(f"[{', '.join(order)}]" for order in orders[:2]) + f"->[{', '.join(orders[2])}]"
    pads = ", ".join(f"[{w.low}, {w.high}]" for w in windows)
    padding = f"padding = dense<[{pads}]> : tensor<{count}x2xi64>, "
    rest = (f"window_strides = {array([w.stride for w in windows])}, "
            f"lhs_dilation = {array([w.base_dilation for w in windows])}, "
            f"rhs_dilation = {array([w.dilation for w in windows])}, "
            f"dimension_numbers = #stablehlo.conv<{layout}>, feature_group_count = {feature_groups} : i64, "
            f"batch_group_count = {batch_groups} : i64")  # fmt: skip

    def render(p: Printer, names: list[str], made: list[str]) -> None:
        types = [p.type(x), p.type(kernel)]
        if p.static or not dynamic:
            p.op("convolution", names, types, made, [p.type(result)], padding + rest)
            return
        amounts = p.constant(f"[{pads}]", f"tensor<{count}x2xi32>")
        p.op("dynamic_conv", [*names, amounts], [*types, f"tensor<{count}x2xi32>"], made, [p.type(result)], rest)

    return b.add_results("dynamic_conv" if dynamic else "convolution", [x, kernel], [result], render)


def select_and_scatter(b: Builder) -> bool:
    """The place of each window's largest element receives what is scattered. Windows lie side by side or overlap."""
    x = b.pick(lambda v: v.range.exact and not v.range.wild, ("f32", "f64", "i32"), least_rank=1)
    if not x.range.exact or x.range.wild:
        return False
    windows = [Window(size, b.rng.randint(1, size)) for size in (b.rng.choice((1, 2, 3)) for _ in x.dims)]
    windows = [w if w.fits(b.at(d)) else Window() for w, d in zip(windows, x.dims, strict=True)]
    dims = tuple(w.result(d) if w != Window() else d for w, d in zip(windows, x.dims, strict=True))
    source = b.like(Value(x.dtype, dims, x.range), lambda v: not v.range.wild, Range(-2, 2))
    found = reduced("add", x.dtype, source.range, math.prod(w.size for w in windows))
    if found is None or source.range.wild:
        return False
    result = Value(x.dtype, x.dims, found)
    scalar = f"tensor<{x.dtype}>"
    kind = "FLOAT" if is_float(x.dtype) else "SIGNED"
    shape = (f"window_dimensions = {array([w.size for w in windows])}, "
             f"window_strides = {array([w.stride for w in windows])}")  # fmt: skip

    def render(p: Printer, names: list[str], made: list[str]) -> None:
        initial = p.constant(neutral("add", x.dtype), scalar)
        arguments = [p.fresh(), p.fresh()]

        def body() -> None:
            attribute = (f"comparison_direction = #stablehlo<comparison_direction GE>, "
                         f"compare_type = #stablehlo<comparison_type {kind}>")  # fmt: skip
            p.returns([p.made("compare", arguments, [scalar] * 2, "tensor<i1>", attribute)], ["tensor<i1>"])

        regions = f"{p.region(arguments, [scalar] * 2, body)}, {combiner('add', x.dtype)}"
        p.op("select_and_scatter", [*names, initial], [p.type(x), p.type(source), scalar], made, [p.type(result)],
             shape, regions)  # fmt: skip

    return b.add_results("select_and_scatter", [x, source], [result], render)


def batch_norm_inference(b: Builder) -> bool:
    """With a static number of features."""
    x = b.pick(lambda v: not v.range.wild and v.range.most <= 64, ("f32", "f64"), least_rank=1)
    if x.range.wild or x.range.most > 64:
        return False
    axis = b.rng.randrange(x.rank)
    each = (x.dims[axis],)
    scale, offset = b.argument(x.dtype, each, Range(-2, 2, 1)), b.argument(x.dtype, each, Range(-2, 2, 1))
    mean, variance = b.argument(x.dtype, each, Range(-2, 2, 1)), b.argument(x.dtype, each, Range(0.5, 4, 1))
    most = 2 * (x.range.most + 2) * 1.5 + 2
    found = rounded(x.dtype, -most, most, None, 3 * x.range.error, ulps=12)
    operands = [x, scale, offset, mean, variance]
    attributes = f"epsilon = 1.0e-3 : f32, feature_index = {axis} : i64"
    return found is not None and b.add("batch_norm_inference", operands, x.dtype, x.dims, found, attributes)


OPS: dict[str, Callable[[Builder], bool]] = {
    "batch_norm_inference": batch_norm_inference, "convolution": lambda b: convolution(b, False),
    "dynamic_conv": lambda b: convolution(b, True), "reduce_window": reduce_window,
    "select_and_scatter": select_and_scatter,
}  # fmt: skip
