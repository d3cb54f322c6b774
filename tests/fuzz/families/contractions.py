# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions and dots."""

from __future__ import annotations

import math
from collections.abc import Callable

from shlo_disc.shape_dialect.symbolic.expr import Expr
from tests.fuzz.builder import FLOATS, INTEGERS, Builder, array
from tests.fuzz.families.movement import literal
from tests.fuzz.program import Printer, Value
from tests.fuzz.ranges import WILD, Range, full, integer, is_float, rounded


def combiner(op: str, dtype: str) -> str:
    """A region of one op on two scalars."""
    scalar = f"tensor<{dtype}>"
    return (f'{{^bb0(%a: {scalar}, %b: {scalar}): %c = "stablehlo.{op}"(%a, %b) : ({scalar}, {scalar}) -> {scalar} '
            f'"stablehlo.return"(%c) : ({scalar}) -> ()}}')  # fmt: skip


def summed(dtype: str, x: Range, count: int) -> Range | None:
    """The range of a sum of `count` numbers, in any order."""
    if x.wild:
        return None
    lo, hi = min(0.0, x.lo * count), max(0.0, x.hi * count)
    if not is_float(dtype):
        return integer(dtype, lo, hi)
    return rounded(dtype, lo, hi, x.step, count * x.error, ulps=count)


def reduced(op: str, dtype: str, x: Range, count: int) -> Range | None:
    """The range of a reduction of `count` numbers and the neutral one."""
    if op == "add":
        return summed(dtype, x, count)
    if op in ("maximum", "minimum"):
        return x
    if op == "multiply" and is_float(dtype):
        return Range(-1, 1) if x.lo >= -1 and x.hi <= 1 and x.step == 0 else None
    return full(dtype) if not is_float(dtype) else None


_INFINITY = {"f16": ("0x7C00", "0xFC00"), "bf16": ("0x7F80", "0xFF80"), "f32": ("0x7F800000", "0xFF800000"),
             "f64": ("0x7FF0000000000000", "0xFFF0000000000000")}  # fmt: skip


def neutral(op: str, dtype: str) -> str:
    """The number that changes nothing: an implementation may fold it in as often as it likes, or not at all."""
    if op in ("maximum", "minimum"):
        if is_float(dtype):
            return _INFINITY[dtype][op == "maximum"]
        limits = full(dtype)
        return literal(dtype, limits.lo if op == "maximum" else limits.hi)
    if op == "and":
        return literal(dtype, full(dtype).hi if full(dtype).lo == 0 else -1)
    return literal(dtype, 1 if op == "multiply" else 0)


def reduce(b: Builder) -> bool:
    """Reduces one operand over any axes, but no NaN, which XLA passes over in some reductions and not in others."""
    x = b.pick(lambda v: not v.range.wild, (*FLOATS, *FLOATS, *INTEGERS, "i1"), least_rank=1)
    ops = ["add", "maximum", "minimum", "multiply"]
    ops = [*ops, "and", "or", "xor"] if not is_float(x.dtype) else ops
    op = b.rng.choice(ops)
    axes = sorted(b.rng.sample(range(x.rank), b.rng.choice([n for n in (1, 1, 1, 2, 3) if n <= x.rank])))
    counts = [math.prod(x.shape(sizes)[a] for a in axes) for sizes in b.sizes]
    found = reduced(op, x.dtype, x.range, max(counts))
    if found is None or x.range.wild:
        return False
    if op in ("maximum", "minimum") and min(counts) == 0:
        found = Range(WILD.lo, WILD.hi, None, found.error) if is_float(x.dtype) else full(x.dtype)
    dims = [d for a, d in enumerate(x.dims) if a not in axes]
    result = Value(x.dtype, tuple(dims), found)

    def render(p: Printer, names: list[str], made: list[str]) -> None:
        initial = p.constant(neutral(op, x.dtype), f"tensor<{x.dtype}>")
        p.op("reduce", [*names, initial], [p.type(x), f"tensor<{x.dtype}>"], made, [p.type(result)],
             f"dimensions = {array(axes)}", combiner(op, x.dtype))  # fmt: skip

    return b.add_results("reduce", [x], [result], render)


ARGMAX = """{{^bb0(%a: tensor<{t}>, %i: tensor<i32>, %b: tensor<{t}>, %j: tensor<i32>):
    %g = stablehlo.compare GT, %a, %b : (tensor<{t}>, tensor<{t}>) -> tensor<i1>
    %e = stablehlo.compare EQ, %a, %b : (tensor<{t}>, tensor<{t}>) -> tensor<i1>
    %l = stablehlo.compare LT, %i, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %f = stablehlo.and %e, %l : tensor<i1>
    %p = stablehlo.or %g, %f : tensor<i1>
    %v = stablehlo.select %p, %a, %b : tensor<i1>, tensor<{t}>
    %k = stablehlo.select %p, %i, %j : tensor<i1>, tensor<i32>
    stablehlo.return %v, %k : tensor<{t}>, tensor<i32>}}"""


def argmax(b: Builder) -> bool:
    """The reduction of two operands that finds the largest element and its place."""
    x = b.pick(lambda v: v.range.exact and not v.range.wild, ("f32", "f64", "i32", "bf16"), least_rank=1)
    if not x.range.exact or x.range.wild:
        return False
    axis = b.rng.randrange(x.rank)
    places = b.argument("i32", x.dims, Range(0, 40))
    dims = tuple(d for a, d in enumerate(x.dims) if a != axis)
    largest = WILD if is_float(x.dtype) else full(x.dtype)
    empty = min(b.at(x.dims[axis])) == 0
    results = [Value(x.dtype, dims, largest if empty else x.range), Value("i32", dims, Range(0, 1000))]

    def render(p: Printer, names: list[str], made: list[str]) -> None:
        initial = [p.constant(neutral("maximum", x.dtype), f"tensor<{x.dtype}>"), p.constant("1000", "tensor<i32>")]
        types = [p.type(x), p.type(places), f"tensor<{x.dtype}>", "tensor<i32>"]
        p.op("reduce", [*names, *initial], types, made, [p.type(r) for r in results],
             f"dimensions = {array([axis])}", ARGMAX.format(t=x.dtype))  # fmt: skip

    return b.add_results("reduce", [x, places], results, render)


def dot_general(b: Builder) -> bool:
    """Any number of batch, contracting and free dimensions, in any order."""
    lhs = b.pick(lambda v: not v.range.wild, (*FLOATS, *FLOATS, "i32", "i8", "ui16", "i64"), least_rank=1)
    if lhs.range.wild:
        return False
    axes = b.rng.sample(range(lhs.rank), lhs.rank)
    contracted = axes[: b.rng.choice([n for n in (0, 1, 1, 1, 2) if n <= lhs.rank])]
    batch = axes[len(contracted) :][: b.rng.choice((0, 0, 1, 1, 2))]
    roles = [("batch", a) for a in batch] + [("contract", a) for a in contracted]
    roles += [("free", -1)] * b.rng.choice((0, 1, 1, 1, 2))
    b.rng.shuffle(roles)
    dims = tuple(b.dim() if a < 0 else lhs.dims[a] for _, a in roles)
    if not b.fits(dims):
        return False
    rhs = b.like(Value(lhs.dtype, dims, lhs.range), lambda v: not v.range.wild,
                 Range(-2, 2) if is_float(lhs.dtype) else Range(0, 3))  # fmt: skip
    count = max(math.prod(lhs.shape(sizes)[a] for a in contracted) for sizes in b.sizes)
    found = product_sum(lhs.dtype, lhs.range, rhs.range, count)
    if found is None:
        return False
    numbers = [[roles.index(("batch", a)) for a in batch], [roles.index(("contract", a)) for a in contracted]]
    attributes = (f"dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = {batch}, "
                  f"rhs_batching_dimensions = {numbers[0]}, lhs_contracting_dimensions = {contracted}, "
                  f"rhs_contracting_dimensions = {numbers[1]}>")  # fmt: skip
    free = [lhs.dims[a] for a in range(lhs.rank) if a not in (*batch, *contracted)]
    free += [d for (role, _), d in zip(roles, dims, strict=True) if role == "free"]
    result: list[Expr] = [lhs.dims[a] for a in batch] + free
    return len(result) <= 6 and b.add("dot_general", [lhs, rhs], lhs.dtype, result, found, attributes)


def product_sum(dtype: str, x: Range, y: Range, count: int) -> Range | None:
    """The range of a sum of `count` products."""
    most = x.most * y.most * max(count, 1)
    if not is_float(dtype):
        return integer(dtype, -most, most) if full(dtype).lo < 0 else integer(dtype, 0, most)
    step = None if x.step is None or y.step is None else x.step + y.step
    error = max(count, 1) * (x.error * y.most + y.error * x.most + x.error * y.error)
    return rounded(dtype, -most, most, step, error, ulps=count + 1)


def reduce_any(b: Builder) -> bool:
    """A reduction of one operand, or of two."""
    return argmax(b) if b.rng.random() < 0.2 else reduce(b)


OPS: dict[str, Callable[[Builder], bool]] = {"reduce": reduce_any, "dot_general": dot_general}
