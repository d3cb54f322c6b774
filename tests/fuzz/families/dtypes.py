# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex numbers, and the float and integer types of eight bits and less: made, computed with, and taken apart again.

None of these values passes in or out of a program. The range of a complex value bounds both of its parts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from shlo_disc.shape_dialect.symbolic.expr import Expr
from tests.fuzz.builder import Builder
from tests.fuzz.families import elementwise
from tests.fuzz.families.elementwise import BINARY
from tests.fuzz.program import Value
from tests.fuzz.ranges import Range, integer, is_float, rounded

_PARTS = {"complex<f32>": "f32", "complex<f64>": "f64"}


def complex_(b: Builder) -> bool:
    """From two parts."""
    x = b.pick(lambda v: not v.range.wild, ("f32", "f64"))
    y = b.like(x, lambda v: not v.range.wild, Range(-2, 2, 1))
    if x.range.wild:
        return False
    return b.add("complex", [x, y], f"complex<{x.dtype}>", x.dims, both_parts(x.range, y.range))


def both_parts(x: Range, y: Range) -> Range:
    """A range that holds either."""
    step = None if x.step is None or y.step is None else max(x.step, y.step)
    return Range(min(x.lo, y.lo), max(x.hi, y.hi), step, max(x.error, y.error))


def picked(b: Builder) -> Value | None:
    """A complex value, made for the purpose when there is none."""
    if not any(v.dtype in _PARTS for v in b.pool):
        complex_(b)
    found = [v for v in b.pool if v.dtype in _PARTS]
    return b.rng.choice(found[-3:]) if found else None


def part(op: str, b: Builder) -> bool:
    """real and imag; at times of a sum or a product that is made for the purpose."""
    x = picked(b)
    if x is None:
        return False
    if b.rng.random() < 0.6:
        arithmetic(b)
        x = b.pool[-1] if b.pool[-1].dtype in _PARTS else x
    return b.add(op, [x], _PARTS[x.dtype], x.dims, x.range)


def arithmetic(b: Builder) -> bool:
    """Sums, differences and products."""
    x = picked(b)
    others = [] if x is None else [v for v in b.pool if v.dtype == x.dtype and v.dims == x.dims]
    if x is None or not others:
        return False
    y, kind = b.rng.choice(others), _PARTS[x.dtype]
    op = b.rng.choice(("add", "subtract", "multiply"))
    found = BINARY[op](kind, x.range, y.range)
    if op == "multiply" and found is not None:
        found = BINARY["add"](kind, both_parts(found, Range(-found.hi, -found.lo, found.step, found.error)),
                              both_parts(found, Range(-found.hi, -found.lo, found.step, found.error)))  # fmt: skip
    return found is not None and b.add(op, [x, y], x.dtype, x.dims, found)


NARROW_FLOATS = {"f8E4M3FN": (240.0, 9), "f8E5M2": (2.0**14, 16), "f8E4M3": (200.0, 9), "f8E3M4": (14.0, 6)}
"""A magnitude below the largest, and the step of the smallest numbers."""
NARROW_INTEGERS = ("i4", "ui4", "i2", "ui2")


def through_narrow(b: Builder) -> bool:
    """To a type of eight bits or less and back again: one rounding, to even, or one wrap."""
    x = b.pick(lambda v: v.range.exact and not v.range.wild, ("f32", "bf16", "f64", "i32", "i8", "ui8"))
    if not x.range.exact or x.range.wild:
        return False
    if is_float(x.dtype):
        narrow = b.rng.choice(list(NARROW_FLOATS))
        most, step = NARROW_FLOATS[narrow]
        if x.range.most > most or x.range.step is None or x.range.step > step:
            return False
        doubled = rounded(x.dtype, -2 * x.range.most, 2 * x.range.most, step)
        if doubled is None or not doubled.exact:
            return False
        found = doubled
    else:
        narrow = b.rng.choice(NARROW_INTEGERS)
        found = integer(narrow, x.range.lo, x.range.hi)
    made = b.add("convert", [x], narrow, x.dims, found)
    return made and (is_float(x.dtype) or found.lo >= 0 or x.dtype[0] != "u") and b.add(
        "convert", [b.pool[-1]], x.dtype, x.dims, found)  # fmt: skip


def convert(b: Builder) -> bool:
    """Between any two dtypes."""
    return through_narrow(b) if b.rng.random() < 0.2 else elementwise.convert(b)


def fft(b: Builder) -> bool:
    """Transforms the last dimension, forwards or backwards, from real numbers or complex ones."""
    length = b.rng.choice((1, 2, 3, 4, 5, 8, 15, 16, 17, 30))
    dims = (*b.dims(b.rng.randint(0, 2)), Expr.const(length))
    kind, real = b.rng.choice(("FFT", "IFFT", "RFFT")), b.rng.choice(("f32", "f32", "f64"))
    if not b.fits(dims):
        return False
    x = b.argument(real, dims, Range(-2, 2, 1))
    if kind != "RFFT":
        y = b.argument(real, dims, Range(-2, 2, 1))
        b.add("complex", [x, y], f"complex<{real}>", dims, x.range)
        x = b.pool[-1]
    most = 4.0 * length if kind != "IFFT" else 4.0
    found = rounded(real, -most, most, None, ulps=16)
    last = Expr.const(length // 2 + 1) if kind == "RFFT" else dims[-1]
    attributes = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = array<i64: {length}>"
    return found is not None and b.add("fft", [x], f"complex<{real}>", (*dims[:-1], last), found, attributes)


OPS: dict[str, Callable[[Builder], bool]] = {
    "complex": complex_, "convert": convert, "fft": fft,
    "real": functools.partial(part, "real"), "imag": functools.partial(part, "imag"),
}  # fmt: skip
