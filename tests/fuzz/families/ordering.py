# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.builder import FLOATS, INTEGERS, Builder
from tests.fuzz.program import Printer, Value
from tests.fuzz.ranges import Range


def sort(b: Builder) -> bool:
    """By one key, with up to two more operands; stable, unless there is but the key."""
    key = b.pick(lambda v: v.range.exact and not v.range.wild, (*FLOATS, *INTEGERS), least_rank=1)
    if not key.range.exact or key.range.wild:
        return False
    values = [key]
    for _ in range(b.rng.choice((0, 0, 1, 2))):
        values.append(b.like(Value(b.rng.choice((key.dtype, "i32", "f32")), key.dims, Range(0, 3))))
    axis, direction = b.rng.randrange(key.rank), b.rng.choice(("LT", "GT"))
    stable = "true" if len(values) > 1 else b.rng.choice(("true", "false"))
    results = [Value(v.dtype, v.dims, v.range) for v in values]

    def render(p: Printer, names: list[str], made: list[str]) -> None:
        scalars = [f"tensor<{v.dtype}>" for v in values for _ in range(2)]
        arguments = [p.fresh() for _ in scalars]

        def body() -> None:
            attribute = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
            less = p.made("compare", arguments[:2], scalars[:2], "tensor<i1>", attribute)
            p.returns([less], ["tensor<i1>"])

        types = [p.type(v) for v in values]
        p.op("sort", names, types, made, types, f"dimension = {axis} : i64, is_stable = {stable}",
             p.region(arguments, scalars, body))  # fmt: skip

    return b.add_results("sort", values, results, render)


OPS: dict[str, Callable[[Builder], bool]] = {"sort": sort}
