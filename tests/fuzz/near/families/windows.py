# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows that are all prefixes of an axis, or nearly."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.near.builder import Builder
from tests.fuzz.near.families.family import family


@family("prefixes", "cumulative", "scan", "window")
def prefixes(b: Builder) -> Sequence[int]:
    """Windows as long as their axis, or shorter, padded on one side or on both, with steps or holes."""
    x = b.arg(*(b.dim(d) for d in b.pick(("b", "s"), ("s",), ("b", 4, "s"))), fill=b.pick("normal", "ints"))
    x = b.pick(x, b.f("tanh", x))
    kind = b.pick("all", "shorter", "strides", "holes", "holes between", "padding")
    padding = b.any(([-1, 0], [0, -1]))
    if kind == "padding":
        padding = b.any(([0, 0], [-1, 1], [-2, 0], [0, -2], [1, -2]))
    y = b(
        "prefixes", x, f=b.any(("sum", "sum", "max", "min")), axis=b.axis(x), less=int(kind == "shorter"),
        stride=1 + (kind == "strides"), base=1 + (kind == "holes between"), dilation=1 + (kind == "holes"),
        padding=padding,
    )  # fmt: skip
    return b.pick([y], [b.f("half", y)], [y, x])
