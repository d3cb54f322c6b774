# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows that are all prefixes of an axis, or nearly."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.near.builder import Builder
from tests.fuzz.near.families.family import family


@family("convolution-sizes", "convolution", "gemm")
def convolution_sizes(b: Builder) -> Sequence[int]:
    """Convolutions whose sizes can be written in several ways: holes in the input, negative padding, gradients."""
    rank = b.pick(1, 2)
    stride, holes = ([b.any((1, 2, 2, 3)), b.any((1, 2))] for _ in range(2))
    dilation = [b.any((1, 1, 2)), 1]
    kernel = [b.any((1, 1, 2, 3)), b.any((1, 3))][:rank]
    groups = b.pick(1, 1, 2)
    space = [b.any((f"{n}*s", f"{n}*s + 1", "s + 2", f"{n}*t + {n}", 9)) for n in stride][:rank]
    features = groups * b.any((2, 4))
    x = b.arg(b.dim("b"), *space, features)
    w = b.arg(*kernel, features // groups, groups * b.any((1, 3)), fill="weight")
    padding = [[b.any((0, 0, -1, -2, 1, 2)), b.any((0, 0, -1, 1, 3))] for _ in range(2)]
    params = {"stride": stride, "dilation": dilation, "padding": padding, "groups": groups}
    kind = b.pick("holes", "forward", "gradient")
    if kind == "gradient":
        return [b("conv_gradient", x, w, of=b.any((0, 1)), **params)]
    if kind == "holes":
        params |= {"input_dilation": holes, "stride": b.pick([1, 1], stride)}
    y = b("conv", x, w, **params)
    return b.pick([y], [b.f("relu", y)], [b.f("tanh", y), y])


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
