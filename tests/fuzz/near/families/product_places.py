# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values read in another block than they are made in, GEMMs along the rows of a kernel, convolutions of one input."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.near.builder import Builder
from tests.fuzz.near.families.family import family
from tests.fuzz.near.families.loops import _program


def _in_branches(b: Builder, values: Sequence[int], *pieces: Sequence[tuple[str, dict[str, object]]]) -> int:
    """A choice between two chains of pieces, each with a value of its own to start from."""
    bodies = []
    for number, chain in enumerate(pieces):
        body = b.body(*(b.types[v] for v in values))
        y = number % len(values)
        for piece, params in chain:
            y = body(piece, y, **params)
        bodies.append(_program(body, [y]))
    return int(b("cond", b.arg(dtype="bool"), *values, then=bodies[0], **{"else": bodies[1]}))


@family("gemm-branch", "gemm-follower", "gemm", "epilogue")
def branch(b: Builder) -> Sequence[int]:
    """A product that only a branch reads."""
    x = b.arg(b.dim("b"), b.dim(8))
    y = b("einsum", x, b.arg(str(b.shape(x)[1]), b.dim("s"), fill="weight"), spec="mk,kn->mn")
    z = b.arg(*map(str, b.shape(y)))
    chains = ([("unary", {"f": "tanh"})], [("along", {"f": "softmax", "axis": 1})], [("unary", {"f": "half"})])
    return [_in_branches(b, b.pick([y, z], [z, y], [y]), b.any(chains), b.any(chains))]


@family("sort-branch", "selection", "sort")
def sorted_branch(b: Builder) -> Sequence[int]:
    """A sort of which a branch reads the beginning."""
    x = b.arg(b.dim("b"), b.dim(17), fill=b.pick("distinct", "normal"))
    y = b("sort", x, axis=1, descending=b.flip(0.4), take=None, places=False)
    first = [("slice", {"axis": 1, "cut": [0, 2, 1]}), ("unary", {"f": b.any(("tanh", "half"))})]
    return [_in_branches(b, [y], first, b.pick(first, [*first, ("unary", {"f": "neg"})]))]


@family("sort-long", "selection", "sort")
def long_beginnings(b: Builder) -> Sequence[int]:
    """The first of many, which are as many as a selection takes, one more, or all of them."""
    x = b.arg(b.dim("b"), 130, fill=b.pick("distinct", "normal"))
    count = b.any((63, 64, 65, 129, 130))
    if b.flip():
        return list(b("top_k", x, count=2, k=count))
    return [b("sort", x, axis=1, descending=b.flip(0.4), take=count, places=b.flip(0.3))]


@family("gemm-row-sums", "row-epilogue", "epilogue", "gemm")
def row_sums(b: Builder) -> Sequence[int]:
    """A kernel of rows that reads a product of vectors once a row."""
    n = b.dim("s")
    x = b.arg(b.dim(8))
    y = b("einsum", x, b.arg(str(b.shape(x)[0]), n, fill="weight"), spec=b.pick("k,kn->n"))
    whole = b.two("mul", b("expand", y, axis=1), b.arg(1, b.dim("t")))
    whole = b.two("add", whole, b.arg(n), lift=[1]) if b.flip() else whole
    return [b("reduce", b.f("tanh", whole), f=b.any(("sum", "max")), axis=1, keep=False)]


@family("gemm-spread", "epilogue", "gemm")
def spread(b: Builder) -> Sequence[int]:
    """A loop that reads a product of a vector again and again, along rows or along columns."""
    n = b.dim("s")
    x = b.arg(b.dim(8))
    y = b("einsum", x, b.arg(str(b.shape(x)[0]), n, fill="weight"), spec="k,kn->n")
    y = b.f("tanh", y) if b.flip(0.3) else y
    rows = b.flip(0.7)
    whole = b.arg(b.dim("b"), n) if rows else b.arg(n, b.dim("b"))
    return [b.two(b.any(("add", "mul", "sub")), whole, y, lift=[0 if rows else 1])]


@family("convs-beside", "convolution-product", "convolution", "horizontal-gemm")
def convolutions(b: Builder) -> Sequence[int]:
    """Convolutions of one input, of an image with itself, in one or three dimensions, or of other element types."""
    kind = b.pick("beside", "itself", "groups", "rank")
    if kind == "itself":
        x = b.arg(16, b.any((3, 5)), 3, 16)
        return [b("conv", x, b("reshape_like", x, b.arg(3, b.shape(x)[1], 16, 16)), stride=[1, 1], dilation=[1, 1],
                  padding="VALID", groups=1)]  # fmt: skip
    if kind == "rank":
        rank = b.any((1, 3))
        x = b.arg(b.dim("b"), *(b.any((4, 5)) for _ in range(rank)), 8)
        w = b.arg(*([3] * rank), 8, b.any((8, 16)), fill="weight")
        return [
            b("conv", x, w, stride=b.pick([1, 1], [2, 1]), dilation=[1, 1], padding=b.pick("SAME", "VALID"), groups=1)
        ]
    x = b.arg(b.dim("b"), b.any((5, 6)), 6, 16)
    made = []
    for _ in range(b.pick(2, 3)):
        groups = 2 if kind == "groups" else 1
        w = b.arg(3, 3, 16 // groups, b.any((16, 32)), fill="weight")
        made.append(b("conv", x, w, stride=[1, 1], dilation=[1, 1], padding=b.pick("SAME", "VALID"), groups=groups))
    return [b.f("relu", y) if b.flip() else y for y in made]
