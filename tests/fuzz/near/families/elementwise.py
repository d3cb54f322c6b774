# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Long elementwise chains, whose buffers are used again."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.near.builder import Builder
from tests.fuzz.near.families.family import family

FUNCTIONS = ("tanh", "half", "relu", "sin", "one_minus", "silu", "abs", "recip1", "masked")
TWO = ("add", "sub", "mul", "max", "rsub", "gate", "select", "dist")


@family("chains", "elementwise", "in-place", "slot", "reuse", "take-over")
def chains(b: Builder) -> Sequence[int]:
    """Values that are read again late, in kernels of several shapes."""
    rows, columns = b.dim("b"), b.dim("s")
    x = b.arg(rows, columns)
    kept = [x]
    for _ in range(b.pick(6, 4, 10, 16)):
        kind = b.any(("f", "two", "two", "reduce", "turn", "slice", "product", "cumulative"))
        if kind == "f":
            x = b.f(b.any(FUNCTIONS), x)
        elif kind == "two":
            same = [v for v in kept if b.shape(v) == b.shape(x)]
            x = b.two(b.any(TWO), x, b.any(same or [x]))
        elif kind == "reduce":
            axis = b.rng.randrange(2)
            x = b.two(
                b.any(TWO), x, b("reduce", x, f=b.any(("sum", "max", "mean")), axis=axis, keep=False), lift=[axis]
            )
        elif kind == "turn":
            x = b("transpose", x, perm=[1, 0])
        elif kind == "slice":
            kept.append(b("slice", x, axis=b.rng.randrange(2), cut=b.any(([1, None, 1], [0, 2, 1]))))
            continue
        elif kind == "product":
            own = [v for v in kept if b.shape(v) == b.shape(x)]
            x = b("scaled_einsum", x, b.any(own), spec="mk,nk->mn")
        else:
            x = b("cumulative", b.f("tanh", x), f="max", axis=b.rng.randrange(2), reverse=False)
        kept.append(x)
    late = b.rng.sample(kept, min(len(kept), b.pick(1, 2, 3)))
    return [x, *(b.f("half", v) for v in late if v != x)]


@family("broadcasts", "elementwise", "merge", "absorb", "broadcast")
def broadcasts(b: Builder) -> Sequence[int]:
    """Rows, columns and scalars joined in all ways, several results of several shapes."""
    m, n = b.dim("b"), b.dim("s")
    row, column, scalar, x = b.arg(n), b.arg(m), b.arg(), b.arg(m, n)
    pool = [x, b.two(b.any(TWO), x, row, lift=[0]), b.two(b.any(TWO), x, column, lift=[1])]
    pool.append(b.two(b.any(TWO), x, scalar))
    pool.append(b("outer", column, row, f=b.any(TWO), turn=False))
    if b.flip(0.4):
        pool.append(b("outer", row, row, f=b.any(TWO), turn=b.flip()))
    for _ in range(b.pick(3, 5, 8)):
        p, q = b.any(pool), b.any(pool)
        if b.shape(p) == b.shape(q):
            pool.append(b.two(b.any(TWO), p, q))
        else:
            pool.append(b.f(b.any(FUNCTIONS), p))
        if b.flip(0.3):
            axis = b.rng.randrange(2)
            r = b("reduce", pool[-1], f=b.any(("sum", "max", "mean")), axis=axis, keep=False)
            pool.append(b.two(b.any(TWO), pool[-1], r, lift=[axis]))
    return list(dict.fromkeys([pool[-1], *b.rng.sample(pool[1:], b.pick(1, 2, 3))]))


@family("narrow", "elementwise", "convert", "epilogue")
def narrow(b: Builder) -> Sequence[int]:
    """Conversions between types, integers, booleans and masks."""
    x = b.arg(b.dim("b"), b.dim("s"))
    i = b.arg(*map(str, b.shape(x)), dtype="int32")
    m = b.arg(*map(str, b.shape(x)), dtype="bool")
    y = b("convert", b.f("tanh", x), dtype=b.any(("bfloat16", "float16", "float32")))
    y = b.f(b.any(("half", "square", "relu")), y)
    y = b("convert", y, dtype="float")
    y = b("where", m, y, b.pick(x, b("convert", i, dtype="float")))
    counts = b("reduce", b.two("gt", x, y), f=b.any(("any", "all")), axis=b.pick(1, 0), keep=False)
    k = b(
        "reduce",
        b.two(b.any(("add", "mul", "max")), i, b.f("plus1", i)),
        f=b.any(("sum", "max")),
        axis=b.pick(1, 0),
        keep=False,
    )
    n = b.two("and", m, b.two("lt", i, b.f("neg", i)))
    return b.pick([y, k], [y, counts], [y, k, n], [b("convert", n, dtype="int32"), y])
