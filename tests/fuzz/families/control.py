# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops and branches. Their regions use values from outside."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.builder import FLOATS, Builder
from tests.fuzz.families.elementwise import BINARY, union
from tests.fuzz.program import Printer, Value
from tests.fuzz.ranges import Range, full

MOST_TRIPS = 4


def scalar_index(b: Builder, range_: Range) -> Value:
    """An i32 scalar within the range."""
    found = [
        v for v in b.pool if v.dtype == "i32" and not v.rank and v.range.lo >= range_.lo and v.range.hi <= range_.hi
    ]
    return b.rng.choice(found) if found else b.argument("i32", (), range_)


def while_(b: Builder) -> bool:
    """Counts to a scalar; in each turn a carried value is combined with one from outside, and may be reversed."""
    x = b.pick(lambda v: not v.range.wild, (*FLOATS, "i32", "ui8", "i64"), least_rank=1)
    if x.range.wild:
        return False
    y = b.like(x, lambda v: not v.range.wild and v is not x, Range(0, 2))  # XLA's importer mixes the two up
    trips = scalar_index(b, Range(0, MOST_TRIPS))
    op = b.rng.choice(("add", "maximum", "subtract"))
    found = x.range
    for _ in range(MOST_TRIPS):
        after = BINARY[op](x.dtype, found, y.range)
        if after is None:
            return False
        found = union(found, after)
    turns = b.rng.random() < 0.5
    result = Value(x.dtype, x.dims, found)

    def render(p: Printer, names: list[str], made: list[str]) -> None:
        types = ["tensor<i32>", p.type(x)]
        start, counter, carried = p.constant("0", "tensor<i32>"), p.fresh(), p.fresh()

        def condition() -> None:
            less = "comparison_direction = #stablehlo<comparison_direction LT>"
            test = p.made("compare", [counter, names[2]], ["tensor<i32>"] * 2, "tensor<i1>", less)
            p.returns([test], ["tensor<i1>"])

        def body() -> None:
            one = p.constant("1", "tensor<i32>")
            following = p.made("add", [counter, one], ["tensor<i32>"] * 2, "tensor<i32>")
            inside = p.made(op, [carried, names[1]], [p.type(x), p.type(y)], p.type(x))
            if turns:
                inside = p.made("reverse", [inside], [p.type(x)], p.type(x), "dimensions = array<i64: 0>")
            p.returns([following, inside], types)

        regions = f"{p.region([counter, carried], types, condition)}, {p.region([counter, carried], types, body)}"
        p.op("while", [start, names[0]], types, [p.fresh(), made[0]], types, regions=regions)

    return b.add_results("while", [x, y, trips], [result], render)


def branches(b: Builder, op: str) -> bool:
    """if and case: each branch returns one of two values from outside, or both combined."""
    x = b.pick()
    y = b.like(x)
    both = BINARY["add"](x.dtype, x.range, y.range) if x.dtype != "i1" else full("i1")
    kinds = [b.rng.choice(("x", "y") if both is None else ("x", "y", "both", "both")) for _ in range(2)]
    if op == "case":
        kinds += [b.rng.choice(("x", "y"))] * b.rng.randint(0, 1)
        chosen = b.argument("i32", (), Range(-1, 4))
    else:
        found = [v for v in b.pool if v.dtype == "i1" and not v.rank]
        chosen = b.rng.choice(found) if found else b.argument("i1", ())
    range_ = union(x.range, y.range)
    if both is not None and "both" in kinds:
        range_ = union(range_, both)
    result = Value(x.dtype, x.dims, range_)

    def render(p: Printer, names: list[str], made: list[str]) -> None:
        def body(kind: str) -> Callable[[], None]:
            def print_() -> None:
                value = names[1] if kind == "x" else names[2]
                if kind == "both":
                    value = p.made("add", names[1:], [p.type(x), p.type(y)], p.type(x))
                p.returns([value], [p.type(x)])

            return print_

        regions = ", ".join(p.region([], [], body(kind)) for kind in kinds)
        p.op(op, names[:1], [p.type(chosen)], made, [p.type(result)], regions=regions)

    return b.add_results(op, [chosen, x, y], [result], render)


OPS: dict[str, Callable[[Builder], bool]] = {
    "while": while_, "if": lambda b: branches(b, "if"), "case": lambda b: branches(b, "case"),
}  # fmt: skip
