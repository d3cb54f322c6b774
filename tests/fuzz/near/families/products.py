# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products and convolutions, with what follows them and beside one another."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.near.builder import Builder
from tests.fuzz.near.families.family import family
from tests.fuzz.near.pieces.reductions import ALONG, REDUCE

ACTIVATIONS = ("relu", "gelu", "tanh", "silu", "sigmoid", "exp_tanh", "gelu_erf", "softplus", "square", "one_minus")
LAYOUTS = ("mk,kn->mn", "mk,nk->mn", "km,kn->mn", "mk,kn->nm", "km,nk->mn")


def product(b: Builder, layout: str | None = None) -> tuple[int, dict[str, object]]:
    """A product of two arguments and the sizes of its letters."""
    layout = layout or b.pick(*LAYOUTS)
    left, right = layout.split("->")[0].split(",")
    sizes = {"m": b.dim("b"), "k": b.dim(b.any((12, 8, "s"))), "n": b.dim(b.any((8, 16, 17, "s", "t")))}
    x = b.arg(*(sizes[c] for c in left))
    w = b.arg(*(sizes[c] for c in right), fill="weight")
    acc = {"acc": "float32"} if b.dtype in ("bfloat16", "float16") and b.flip(0.3) else {}
    y = b("einsum", x, w, spec=layout, **acc)
    rows = layout.split("->")[1]
    return y, {
        "x": x,
        "w": w,
        "rows": sizes[rows[0]],
        "columns": sizes[rows[1]],
        "k": sizes["k"],
        "n": sizes["n"],
        **sizes,
    }


def _other(b: Builder, y: int, sizes: dict[str, object]) -> int:
    """Something that is joined with the elements of a product: of its rows, its columns, or all."""
    kind = b.pick("columns", "rows", "all", "scalar", "other product", "of the left", "row")
    rows, columns = str(sizes["rows"]), str(sizes["columns"])
    f = b.any(("add", "mul", "sub", "rsub", "div1", "rdiv1", "max", "gate", "select", "dist"))
    if b.types[y].dtype.name != b.dtype:
        y = b("convert", y, dtype="float")
    if kind == "columns":
        return b.two(f, y, _made(b, b.arg(columns)), lift=[0])
    if kind == "rows":
        return b.two(f, y, _made(b, b.arg(rows)), lift=[1])
    if kind == "row":
        return b.two(f, y, b.arg(rows, 1))
    if kind == "all":
        return b.two(f, y, _made(b, b.arg(rows, columns)))
    if kind == "scalar":
        return b.two(f, y, _made(b, b.arg()))
    if kind == "of the left":
        own = b("reduce", sizes["x"], f=b.any(("sumsq", "sum", "max")), axis=b.pick(1, 0), keep=False)
        return b.two(f, y, own, lift=[b.pick(1, 0)])
    x, w = b.arg(rows, b.dim(8)), None
    w = b.arg(str(b.shape(x)[1]), columns, fill="weight")
    return b.two(f, y, b("einsum", x, w, spec="mk,kn->mn"))


def _made(b: Builder, value: int) -> int:
    """The value, or something computed of it."""
    return b.pick(value, b.f(b.any(("tanh", "half", "neg")), value))


def epilogue(b: Builder, y: int, sizes: dict[str, object]) -> int:
    """A bias, an activation, a residual: one to three of them."""
    for _ in range(b.pick(1, 2, 3)):
        y = b.f(b.any(ACTIVATIONS), y) if b.flip(0.4) else _other(b, y, sizes)
    return y


@family("gemm", "epilogue", "gemm")
def gemm(b: Builder) -> Sequence[int]:
    """A product and an epilogue."""
    y, sizes = product(b)
    z = epilogue(b, y, sizes)
    return b.pick([z], [z, y], [y, z], [z, b("transpose", z, perm=[1, 0])])


@family("gemm-rows", "row-epilogue", "gemm", "epilogue")
def gemm_rows(b: Builder) -> Sequence[int]:
    """A product whose rows, or columns, are reduced or normalized."""
    y, sizes = product(b)
    y = b.pick(y, epilogue(b, y, sizes))
    axis = b.pick(1, 0)
    kind = b.any(("along", "reduce", "both", "chain"))
    if kind == "along":
        z = b("along", y, f=b.any(list(ALONG)), axis=axis)
        return b.pick([z], [z, y], [epilogue(b, z, sizes)], [z, b.f("tanh", z)])
    if kind == "reduce":
        z = b("reduce", y, f=b.any([*REDUCE, "argmax"]), axis=axis, keep=b.flip(0.2))
        return b.pick([z], [z, y])
    if kind == "both":
        return [b("reduce", y, f="sum", axis=axis, keep=False), b("reduce", y, f=b.any(("max", "sum")), axis=1 - axis,
                                                                  keep=False)]  # fmt: skip
    z = b("along", y, f=b.any(("softmax", "standardize", "center")), axis=axis)
    z = b(
        "along", b.pick(z, b.f("half", z)), f=b.any(("softmax", "scale_sum", "scale_max")), axis=b.pick(axis, 1 - axis)
    )
    return [z]


@family("pairs", "epilogue", "row-epilogue", "gemm")
def pairs(b: Builder) -> Sequence[int]:
    """Distances and correlations of rows: a product with outer broadcasts of what is computed of its operands."""
    x = b.arg(b.dim("b"), b.dim(b.any((8, "s"))))
    y = b.pick(x, b.arg(*b.shape(x)), b.arg(b.dim("t"), str(b.shape(x)[1])))
    f = b.any(("sumsq", "norm1", "sum", "mean", "max"))
    own = [b("reduce", v, f=f, axis=1, keep=False) for v in (x, y)]
    if b.flip(0.3):
        x = b("along", x, f=b.any(("center", "normalize", "standardize")), axis=b.pick(1, 0))
    d = b("einsum", x, y, spec=b.pick("mk,nk->mn", "mk,nk->nm"))
    outer = b("outer", *own, f=b.any(("add", "mul", "max", "sub")), turn=b.flip(0.15))
    d = b.f(b.pick("twice", "half", "identity"), d)
    z = b.two(b.any(("rsub", "sub", "div1", "rdiv1", "add")), d, outer)
    z = b.f(b.any(("identity", "abs", "relu", "sqrt1", "exp_neg_abs", "half")), z)
    if b.flip(0.4):
        z = b("along", z, f=b.any(list(ALONG)), axis=b.pick(1, 0))
    return b.pick([z], [b("reduce", z, f=b.any(list(REDUCE)), axis=b.pick(1, 0), keep=False)], [z, d], [z, *own])


@family("gemm-beside", "horizontal-gemm", "gemm")
def beside(b: Builder) -> Sequence[int]:
    """Products of one left-hand side."""
    m, k = b.dim("b"), b.dim(b.any((8, 12, "s")))
    x = b.pick(b.arg(m, k), b.f("tanh", b.arg(m, k)))
    made: list[int] = []
    results: list[int] = []
    for _ in range(b.pick(3, 2, 4)):
        n = b.dim(b.any((8, 16, "t")))
        kind = b.pick("same", "turned", "depends", "other left", "wide", "aliased")
        w = b.arg(k, n, fill="weight")
        left, spec = x, "mk,kn->mn"
        if kind == "turned":
            w, spec = b.arg(n, k, fill="weight"), "mk,nk->mn"
        elif kind == "depends" and made:
            inner = b.shape(made[-1])[1]
            w = b("einsum", b.arg(k, str(b.shape(made[-1])[0])), made[-1], spec="mk,kn->mn")
            if inner == b.shape(x)[1]:
                left = b.pick(x, made[-1])
        elif kind == "other left":
            left = b.f("relu", x)
        elif kind == "aliased" and k == n:
            w = results[0] if results else w
        y = b("einsum", left, w, spec=spec)
        made.append(y)
        sizes: dict[str, object] = {"x": x, "rows": m, "columns": str(b.shape(y)[1])}
        results.append(epilogue(b, y, sizes) if b.flip(0.4) else y)
    if b.flip(0.5) and b.shape(results[0]) == b.shape(results[1]):
        results.append(b.two(b.any(("mul", "gate", "add", "sub")), results[0], results[1]))
    return b.pick(results, results[::-1], [*results, *made[:1]])


@family("gemm-chain", "gemm", "epilogue")
def chain(b: Builder) -> Sequence[int]:
    """Products one after the other, residuals that come back later, layer norms between."""
    m, k = b.dim("b"), b.dim(b.any((8, 16, "s")))
    x = b.arg(m, k)
    kept = [x]
    for _ in range(b.pick(2, 3, 4)):
        h = b("along", x, f=b.any(("standardize", "normalize")), axis=b.pick(1, 0)) if b.flip(0.3) else x
        n = b.pick(k, b.dim(12))
        y = b("einsum", h, b.arg(k, n, fill="weight"), spec="mk,kn->mn")
        y = b.f(b.any(ACTIVATIONS), y) if b.flip() else b.two("add", y, b.arg(n), lift=[0])
        if str(n) != str(k):
            y = b("einsum", y, b.arg(n, k, fill="weight"), spec="mk,kn->mn")
        if b.flip(0.7):
            y = b.two(b.pick("add", "mul", "sub"), y, b.pick(x, b.any(kept)))
        x = y
        kept.append(x)
    return b.pick([x], [x, b.any(kept[1:])], [x, b("transpose", x, perm=[1, 0])])


@family("gemm-batched", "gemm", "epilogue", "horizontal-gemm")
def batched(b: Builder) -> Sequence[int]:
    """Products with batch axes and other layouts, the results transposed or reshaped."""
    spec = b.any(("bmk,bkn->bmn", "bmk,bnk->bmn", "bmk,kn->bmn", "bmk,nk->bnm", "abmk,abkn->abmn", "mbk,nbk->bmn",
                  "bmk,bmn->bkn", "bmk,bmk->bm", "bk,bkn->bn", "mk,bkn->bmn", "bhmk,bhnk->bhmn",
                  "bkm,bkn->mn"))  # fmt: skip
    left, right = spec.split("->")[0].split(",")
    sizes = {c: b.dim(usual) for c, usual in (("b", "b"), ("a", 2), ("h", 2), ("m", "s"), ("k", 8), ("n", 8))}
    y = b("einsum", b.arg(*(sizes[c] for c in left)), b.arg(*(sizes[c] for c in right)), spec=spec)
    for _ in range(b.pick(1, 2, 0)):
        rank = b.rank(y)
        kind = b.any(("f", "along", "transpose", "merge", "bias", "mask", "slice"))
        if kind == "f":
            y = b.f(b.any(ACTIVATIONS), y)
        elif kind == "along":
            y = b("along", y, f=b.any(list(ALONG)), axis=b.pick(rank - 1, b.rng.randrange(rank)))
        elif kind == "transpose":
            y = b("transpose", y, perm=b.rng.sample(range(rank), rank))
        elif kind == "merge" and rank > 1:
            y = b("merge", y, axis=b.rng.randrange(rank - 1))
        elif kind == "bias":
            y = b.two("add", y, b.arg(str(b.shape(y)[-1])), lift=list(range(rank - 1)))
        elif kind == "mask" and rank > 1:
            y = b("fill", b("mask", y, compare="ge", offset=0, rows=1, columns=1), y, value="0.0", invert=False)
        elif kind == "slice":
            y = b("slice", y, axis=b.axis(y), cut=[1, None, 1])
    return [y]


@family("gemm-sliced", "gemm", "epilogue", "slice")
def sliced(b: Builder) -> Sequence[int]:
    """One product whose result is cut into pieces, as the query, key and value of one weight."""
    m, k, d = b.dim("b"), b.dim("s"), b.any((4, 8))
    x = b.arg(m, k)
    y = b("einsum", x, b.arg(k, 2 * d, fill="weight"), spec="mk,kn->mn")
    y = b.pick(y, b.two("add", y, b.arg(2 * d), lift=[0]))
    p, q = b("halves", y, axis=1, count=2)
    kind = b.any(("gate", "scores", "cuts", "split"))
    if kind == "gate":
        z = b.two(b.any(("gate", "mul", "add")), p, b.pick(q, p))
    elif kind == "scores":
        z = b("along", b("einsum", p, b.pick(q, p), spec="mk,nk->mn"), f="softmax", axis=b.pick(1, 0))
    elif kind == "cuts":
        z = b("concat", q, p, axis=b.pick(1, 0))
    else:
        z = b("split", y, axis=1, inner=b.any((1, 2, 4)))
    return b.pick([z], [z, p], [z, y], [b("transpose", q, perm=[1, 0]), z])


@family("conv", "convolution", "epilogue", "gemm")
def convolution(b: Builder) -> Sequence[int]:
    """A convolution and what follows it."""
    window = b.pick([3, 3], [1, 1], [2, 2], [5, 3], [1, 3])
    batch, height, width = b.dim("b"), b.pick("s", 8, 9, 6), b.pick("s", 8, 10, "t")
    channels, features = b.pick(4, 8, 1, 3, 16), b.pick(8, 4, 16, 1, 17)
    groups = b.pick(1, 1, 1, channels)
    features = features * groups if groups > 1 else features
    x = b.arg(batch, height, width, channels)
    x = b.pick(x, b.f("relu", x))
    w = b.arg(*window, channels // groups, features, fill="weight")
    y = b("conv", x, w, stride=b.pick([1, 1], [2, 2], [2, 1]), dilation=b.pick([1, 1], [1, 1], [2, 2]),
          padding=b.pick("SAME", "VALID", [[1, 0], [0, 2]]), groups=groups)  # fmt: skip
    for _ in range(b.pick(1, 2, 0, 3)):
        kind = b.any(("bias", "f", "residual", "pool", "conv", "rows", "batch", "flat"))
        if kind == "bias":
            y = b.two(b.pick("add", "mul"), y, b.arg(str(b.shape(y)[-1])), lift=[0, 1, 2])
        elif kind == "f":
            y = b.f(b.any(ACTIVATIONS), y)
        elif kind == "residual":
            y = b.two("add", y, b.pick(b.arg(*map(str, b.shape(y))), b.f("tanh", y)))
        elif kind == "pool":
            y = b("pool", y, f=b.any(("max", "mean")), stride=b.pick(2, 1))
        elif kind == "conv":
            own = str(b.shape(y)[-1])
            y = b("conv", y, b.arg(*b.pick([1, 1], [3, 3]), own, b.any((4, 8)), fill="weight"), stride=[1, 1],
                  dilation=[1, 1], padding="SAME", groups=1)  # fmt: skip
        elif kind == "rows":
            y = b("along", y, f=b.any(list(ALONG)), axis=b.pick(3, 0, 1, 2))
        elif kind == "batch":
            y = b("reduce", y, f=b.any(("sum", "mean", "max")), axis=b.any(([0, 1], [1, 2], [0, 3])), keep=True)
        else:
            return [
                b("einsum", b("merge", b("merge", y, axis=0), axis=0), b.arg(str(b.shape(y)[-1]), 8), spec="mk,kn->mn")
            ]
    return [y]
