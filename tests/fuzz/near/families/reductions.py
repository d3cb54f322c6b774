# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Row and column reductions with what surrounds them; sorts and cumulative sums."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.near.builder import Builder
from tests.fuzz.near.families.family import family
from tests.fuzz.near.pieces.reductions import ALONG, CUMULATIVE, REDUCE

FUNCTIONS = ("tanh", "half", "exp_neg_abs", "square", "relu", "sqrt1", "log1", "one_minus", "abs")
TWO = ("add", "sub", "mul", "rsub", "div1", "rdiv1", "max", "gate", "dist", "select")


@family("rows", "row-reduce", "reduce", "merge", "absorb", "elementwise", "in-place")
def rows(b: Builder) -> Sequence[int]:
    """Reductions along one axis, broadcast back, reduced again."""
    x = b.arg(b.dim("b"), b.dim("s"), fill=b.pick("normal", "ints", "positive"))
    y = b.f(b.any(FUNCTIONS), x) if b.flip() else x
    made: list[int] = []
    for _ in range(b.pick(2, 1, 3, 4)):
        axis = b.pick(1, 0)
        r = b("reduce", y, f=b.any(list(REDUCE)), axis=axis, keep=False)
        made.append(r)
        if not b.is_float(r):
            continue
        if b.types[r].dtype.name == b.dtype:
            r = b.f(b.any(FUNCTIONS), r) if b.flip(0.4) else r
            lift = axis if b.flip(0.85) else 1 - axis
            y = b.two(b.any(TWO), b.pick(y, x), r, lift=[lift])
    return b.pick([y], [y, made[0]], [y, *made], [b("reduce", y, f="sum", axis=b.pick(1, 0), keep=False), y])


@family("rows-3d", "row-reduce", "reduce", "merge", "absorb")
def rows_3d(b: Builder) -> Sequence[int]:
    """The same in three dimensions, with two axes at a time."""
    x = b.arg(b.dim("b"), b.dim(4), b.dim("s"))
    y = x
    for _ in range(b.pick(2, 1, 3)):
        axis = b.pick(2, [1, 2], 1, 0, [0, 1], [0, 2])
        r = b("reduce", y, f=b.any([f for f in REDUCE if f != "count"]), axis=axis, keep=True)
        r = b.f(b.any(FUNCTIONS), r) if b.flip(0.4) else r
        y = b.two(b.any(TWO), b.pick(y, x), r)
    if b.flip(0.4):
        y = b("along", b("merge", y, axis=b.pick(1, 0)), f=b.any(list(ALONG)), axis=b.pick(1, 0))
    return b.pick([y], [y, b("reduce", y, f="sum", axis=b.pick(0, 1), keep=False)])


@family("sinkhorn", "row-reduce", "reduce", "merge", "in-place")
def sinkhorn(b: Builder) -> Sequence[int]:
    """Rows and columns normalized in turn, in logarithms or not; by steps or in a loop."""
    x = b.arg(b.dim("b"), b.dim("s"))
    if b.flip(0.4):
        u = b("full", b("reduce", x, f="sum", axis=1, keep=False), value=0.0)
        v = b("full", b("reduce", x, f="sum", axis=0, keep=False), value=0.0)
        for _ in range(b.pick(2, 1, 3)):
            u = b.f("neg", b("reduce", b.two("add", x, v, lift=[0]), f="lse", axis=1, keep=False))
            v = b.f("neg", b("reduce", b.two("add", x, u, lift=[1]), f="lse", axis=0, keep=False))
        z = b.two("add", b.two("add", x, u, lift=[1]), v, lift=[0])
        return b.pick([z], [u, v], [b.f("exp", z), u], [b("reduce", z, f="sum", axis=0, keep=False), z])
    f = b.any(("shift_lse", "softmax", "scale_sum", "center"))
    y = x
    for number in range(b.pick(2, 3, 4)):
        y = b("along", y, f=f, axis=number % 2 if b.flip(0.9) else 1 - number % 2)
    return b.pick([y], [b.f("exp", y)], [b("reduce", y, f="sum", axis=1, keep=False), y])


@family("statistics", "row-reduce", "reduce", "gemm", "epilogue")
def statistics(b: Builder) -> Sequence[int]:
    """Correlations: centred or standardized columns, their products, normalized by what stands on the diagonal."""
    x = b.arg(b.dim("b"), b.dim(b.any((8, "s"))))
    axis = b.pick(0, 1)
    z = b("along", x, f=b.any(("center", "standardize", "normalize")), axis=axis)
    other = b.pick(z, x, b.f("tanh", z))
    c = b("einsum", z, other, spec=b.pick("km,kn->mn", "mk,nk->mn"))
    c = b.f("half", c) if b.flip(0.3) else c
    kind = b.pick("diagonal", "norms", "none")
    if kind == "diagonal":
        d = b.f(b.pick("rsqrt1", "sqrt1"), b("diagonal", c))
        c = b.two("mul", b.two("mul", c, d, lift=[1]), d, lift=[b.pick(0, 1)])
    elif kind == "norms":
        n = b("reduce", c, f="norm1", axis=b.pick(0, 1), keep=False)
        c = b.two("div1", c, b("outer", n, n, f="mul", turn=False))
    return b.pick([c], [c, z], [b("reduce", c, f=b.any(list(REDUCE)), axis=b.pick(1, 0), keep=False), c])


@family("sorts", "selection", "sort", "top-k")
def sorts(b: Builder) -> Sequence[int]:
    """Sorts of which a beginning is read, the largest few, places that rows are taken at."""
    x = b.arg(b.dim("b"), b.dim("s"), fill=b.pick("ints", "distinct", "normal"))
    axis = b.pick(1, 0)
    kind = b.any(("sort", "top", "by", "argsort", "two readers", "after product"))
    if kind == "after product":
        x = b("einsum", x, b.arg(str(b.shape(x)[1]), b.dim(8), fill="ints"), spec="mk,kn->mn")
        kind = "sort"
    if kind == "sort":
        y = b("sort", x, axis=axis, descending=b.flip(0.4), take=b.pick(2, 1, None, 3, -2), places=b.flip(0.3))
        return b.pick(
            [y], [y, x], [b.f("neg", y)], [y, b("reduce", y, f="sum", axis=b.pick(axis, 1 - axis), keep=False)]
        )
    if kind == "top":
        v, i = b("top_k", x, count=2, k=b.pick(2, 1, 3))
        return b.pick([v, i], [v], [i], [b("take_along", x, i, axis=1)], [b("along", v, f="softmax", axis=1), i])
    if kind == "by":
        y = b.arg(*map(str, b.shape(x)), fill=b.pick("ints", "normal"))
        p, q = b("sort_by", x, y, count=2, axis=axis)
        cut = b.pick([0, 2, 1], [0, 1, 1], [1, None, 1])
        return b.pick(
            [b("slice", p, axis=axis, cut=cut), b("slice", q, axis=axis, cut=b.pick(cut, [0, 3, 1]))], [p, q], [q]
        )
    if kind == "argsort":
        i = b("sort", x, axis=axis, descending=b.flip(0.3), take=b.pick(None, 2), places=True)
        return b.pick([b("take_along", x, i, axis=axis)], [i], [b("take_along", b.f("tanh", x), i, axis=axis), i])
    y = b("sort", x, axis=axis, descending=False, take=None, places=False)
    return [
        b("slice", y, axis=axis, cut=[0, 2, 1]),
        b.pick(y, b("slice", y, axis=axis, cut=b.any(([0, 1, 1], [1, None, 1])))),
    ]


@family("cumulative", "scan", "cumulative", "window")
def cumulative(b: Builder) -> Sequence[int]:
    """Cumulative sums and what reads them."""
    x = b.arg(b.dim("b"), b.dim("s"), fill=b.pick("normal", "ints"))
    y = b.f(b.any(FUNCTIONS), x) if b.flip() else x
    axis = b.pick(1, 0)
    for _ in range(b.pick(1, 2)):
        f = b.any([*CUMULATIVE, "sum", "sum"])
        y = b("cumulative", y, f="sum" if f == "associative" else f, axis=axis, reverse=b.flip(0.3))
        y = b.f(b.any(("tanh", "half", "sqrt1")), y) if b.flip(0.4) else y
    total = b("reduce", x, f="norm1", axis=axis, keep=False)
    kind = b.any(("alone", "last", "scaled", "difference", "reduced", "product"))
    if kind == "last":
        return [b("index", y, axis=axis, at=b.pick(-1, 0)), b.pick(y, x)]
    if kind == "scaled":
        return [b.two(b.pick("div1", "mul"), y, total, lift=[axis])]
    if kind == "difference":
        return [b.two("sub", y, b("roll", y, axis=axis, by=1)), y]
    if kind == "reduced":
        return [b("reduce", y, f=b.any(list(REDUCE)), axis=b.pick(axis, 1 - axis), keep=False)]
    if kind == "product":
        return [b("einsum", y, b.arg(str(b.shape(y)[1]), 8, fill="weight"), spec="mk,kn->mn")]
    return b.pick([y], [y, x], [y, total])
