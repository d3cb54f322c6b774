# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data that is moved: views, transposes, slices, concatenations, gathers, between kernels of other kinds."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.near.builder import Builder
from tests.fuzz.near.families.family import family
from tests.fuzz.near.pieces.movement import _CUTS, _PADS
from tests.fuzz.near.pieces.reductions import ALONG, REDUCE


def moved(b: Builder, x: int) -> int:
    """A piece that moves data."""
    rank = b.rank(x)
    kinds = ["transpose", "slice", "flip", "roll", "pad", "tile", "expand", "take", "concat"]
    kinds += ["merge", "merge", "split"] if rank > 1 else []
    kind = b.any(kinds)
    axis = b.axis(x)
    if kind == "transpose":
        return int(b("transpose", x, perm=b.rng.sample(range(rank), rank)))
    if kind == "merge":
        return int(b("merge", x, axis=b.rng.randrange(rank - 1)))
    if kind == "split":
        sizes = [(i, d) for i, d in enumerate(b.shape(x)) if isinstance(d, int)]
        axis, size = b.any(sizes)
        return int(b("split", x, axis=axis, inner=b.any([k for k in range(1, size + 1) if size % k == 0])))
    if kind == "slice":
        return int(b("slice", x, axis=axis, cut=list(b.any(_CUTS))))
    if kind == "roll":
        return int(b("roll", x, axis=axis, by=b.any((1, -1, 2))))
    if kind == "pad":
        return int(b("pad", x, axis=axis, pad=list(b.any(_PADS)), value=b.any((0, 0, 1))))
    if kind == "tile":
        return int(b("tile", x, axis=axis, each=b.flip()))
    if kind == "expand":
        return int(b("expand", x, axis=b.rng.randrange(rank + 1)))
    if kind == "take":
        at = b.arg(b.dim("t"), dtype="int32", fill=f"index:{b.shape(x)[axis]}")
        return int(b("take", x, at, axis=axis, mode=b.any(("clip", "fill"))))
    if kind == "concat":
        return int(b("concat", x, b.pick(x, b.f("neg", x)), axis=axis))
    return int(b("flip", x, axis=axis))


def computed(b: Builder, x: int) -> int:
    """A kernel that is not movement alone."""
    kind = b.any(("f", "f", "along", "reduce", "product", "two"))
    rank = b.rank(x)
    if kind == "along" and rank:
        return int(b("along", x, f=b.any(list(ALONG)), axis=b.axis(x)))
    if kind == "reduce" and rank > 1:
        return int(b("reduce", x, f=b.any([f for f in REDUCE if f != "count"]), axis=b.axis(x), keep=b.flip(0.3)))
    if kind == "product" and rank == 2:
        spec = b.any(("mk,kn->mn", "km,kn->mn", "mk,kn->nm"))
        return int(b("scaled_einsum", x, b.arg(str(b.shape(x)[spec.index("k")]), b.dim(8)), spec=spec))
    if kind == "two":
        return b.two(b.any(("add", "mul", "sub", "max")), x, b.pick(b.f("tanh", x), x))
    return b.f(b.any(("tanh", "half", "relu", "sin", "one_minus")), x)


@family("movement", "view", "movement", "transpose", "slice", "concatenate", "pad", "gather")
def movement(b: Builder) -> Sequence[int]:
    """Kernels with data movement between them."""
    x = b.arg(*(b.dim(usual) for usual in b.pick(("b", "s"), ("b", 4, "s"), ("b", 8), ("s", 3, 4))))
    kept = [x]
    for _ in range(b.pick(2, 3, 1, 4)):
        x = computed(b, x) if b.flip() else x
        for _ in range(b.pick(1, 2)):
            x = moved(b, x)
        kept.append(x)
    if b.flip(0.6):
        x = computed(b, x)
    return b.pick([x], [x, b.any(kept)], [x, computed(b, b.any(kept))])


@family("views", "view", "reshape", "merge", "row-reduce")
def views(b: Builder) -> Sequence[int]:
    """Reshapes on all sides of kernels."""
    d, e = b.any((2, 4, 8)), b.any((1, 2, 3))
    x = b.arg(b.dim("b"), b.dim("s"), d * e)
    y = b.f(b.any(("tanh", "half")), x) if b.flip() else x
    kind = b.any(("heads", "flat", "rows", "group norm", "pairs"))
    if kind == "heads":
        y = b("transpose", b("split", y, axis=2, inner=d), perm=b.pick([0, 2, 1, 3], [2, 0, 1, 3], [0, 1, 3, 2]))
        y = b("along", y, f=b.any(list(ALONG)), axis=b.pick(3, 2, 1, 0))
        y = b("merge", b("transpose", y, perm=b.pick([0, 2, 1, 3], [1, 2, 0, 3])), axis=b.pick(2, 0, 1))
    elif kind == "flat":
        y = b("flatten", y)
        y = b.two("add", y, b.f("tanh", b("flatten", x)))
        y = b("reshape_like", b("cumulative", y, f="sum", axis=0, reverse=False) if b.flip(0.2) else y, x)
    elif kind == "rows":
        y = b("along", b("merge", y, axis=b.pick(0, 1)), f=b.any(list(ALONG)), axis=b.pick(1, 0))
        y = b.two("mul", b("reshape_like", y, x), x)
    elif kind == "group norm":
        y = b(
            "along", b("split", y, axis=2, inner=d), f=b.any(("standardize", "softmax", "center")), axis=b.pick(3, 2, 1)
        )
        y = b.two("add", b("merge", y, axis=2), b.arg(d * e), lift=[0, 1])
    else:
        y = b("split", y, axis=2, inner=1)
        y = b("squeeze", y, axis=3)
    z = b("reduce", y, f=b.any(list(REDUCE)), axis=b.axis(y), keep=False)
    return b.pick([y], [z], [y, z], [b("transpose", y, perm=list(range(b.rank(y)))[::-1]), z])


@family("rolls", "concatenate", "slice", "pad", "movement")
def rolls(b: Builder) -> Sequence[int]:
    """Stencils: rolls, slices and pads of one array joined."""
    x = b.arg(b.dim("b"), b.dim("s"))
    y = x
    for _ in range(b.pick(1, 2)):
        axis = b.pick(0, 1)
        left, right = (b("roll", y, axis=axis, by=by) for by in (b.pick(1, 2), b.pick(-1, -2)))
        y = b.two(b.any(("add", "sub", "mean")), left, b.two("add", right, b.f("twice", y)))
        y = b.f(b.any(("half", "tanh")), y)
    kind = b.any(("interior", "padded", "alone", "split", "rope"))
    if kind == "interior":
        inner = b("slice", b("slice", y, axis=0, cut=[1, -1, 1]), axis=1, cut=[1, -1, 1])
        y = b("pad", b("pad", inner, axis=0, pad=[1, 1, 0], value=0), axis=1, pad=[1, 1, 0], value=0)
        y = b.two("add", y, b.pick(x, b.f("half", x)))
    elif kind == "padded":
        y = b(
            "slice", b("pad", y, axis=1, pad=b.pick([1, 0, 0], [0, 1, 0], [2, 1, 0]), value=0), axis=1, cut=[0, -1, 1]
        )
    elif kind == "split":
        y = b("concat", b("slice", y, axis=1, cut=[1, None, 1]), b("slice", y, axis=1, cut=[0, 1, 1]), axis=1)
    elif kind == "rope":
        z = b.arg(b.dim("b"), 8)
        p, q = b("halves", z, axis=1, count=2)
        y = b.two(
            "add",
            b.two("mul", z, b.arg(8), lift=[0]),
            b.two("mul", b("concat", b.f("neg", q), p, axis=1), b.arg(8), lift=[0]),
        )
    return b.pick([y], [y, b("reduce", y, f="sum", axis=b.pick(1, 0), keep=False)])
