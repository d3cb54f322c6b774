# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention and causal masks."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.near.builder import Builder
from tests.fuzz.near.families.family import family
from tests.fuzz.near.pieces.reductions import ALONG

ROW_KERNELS = ("softmax", "softmax", "exp_max", "scale_sum", "shift_max", "log_softmax", "standardize")


def _operands(b: Builder, heads: bool) -> tuple[list[int], list[str]]:
    """Query, key and value, and how they are contracted."""
    q_len, k_len, d, e = b.dim("s"), b.dim(b.pick("s", "t")), b.dim(8), b.dim(8)
    if not heads:
        q, k, v = b.arg(q_len, d), b.arg(k_len, d), b.arg(k_len, e)
        return [q, k, v], ["qd,kd->qk", "qk,ke->qe"]
    batch, h = b.dim("b"), b.dim(2)
    layout = b.pick("bqhd", "bhqd")
    q, k, v = (
        b.arg(*(sizes[c] for c in layout))
        for sizes in (
            {"b": batch, "h": h, "q": q_len, "d": d}, {"b": batch, "h": h, "q": k_len, "d": d},
            {"b": batch, "h": h, "q": k_len, "d": e},
        )
    )  # fmt: skip
    kv = layout.replace("q", "k")
    out = b.pick(layout, "bqhd", "bhqd").replace("d", "e")
    return [q, k, v], [f"{layout},{kv}->bhqk", f"bhqk,{kv.replace('d', 'e')}->{out}"]


def _masked(b: Builder, scores: int) -> int:
    kind = b.pick("causal", "none", "argument", "bias", "cache", "both")
    if kind in ("causal", "both"):
        mask = b(
            "mask", scores, compare=b.pick("ge", "gt", "le"), offset=b.pick(0, 0, 1, -1, "tail"), rows=1, columns=1
        )
        fill = b.pick("-1000000000.0", "-inf", "0.0", "-1e+30", "100.0", "-5.0")
        if fill == "-inf":
            # a row without anything is NaN in every implementation; here it has its first element
            mask = b.two("or", mask, b("mask", scores, compare="ge", offset=0, rows=b.pick(1, 1), columns=1))
        scores = b("fill", mask, scores, value=fill, invert=b.flip(0.1))
    if kind in ("argument", "both"):
        shape = b.shape(scores)
        rank = b.pick(len(shape), 2)
        mask = b.arg(*map(str, shape[len(shape) - rank :]), dtype="bool")
        scores = b("fill", mask, scores, value=b.pick("-1000000000.0", "0.0"), invert=False)
    if kind == "bias":
        shape = b.shape(scores)
        rank = b.pick(2, len(shape), 1)
        bias = b.arg(*map(str, shape[len(shape) - rank :]))
        scores = b.two(b.pick("add", "mul"), scores, bias, lift=list(range(len(shape) - rank)))
    if kind == "cache":
        offset = b.arg(dtype="int32", fill="count:4")
        mask = b("mask", scores, offset, compare=b.pick("ge", "gt", "lt"), offset=b.pick(0, 1), rows=1, columns=1,
                 sign=b.pick(1, -1))  # fmt: skip
        scores = b("fill", mask, scores, value=b.pick("-1000000000.0", "-1e+30", "0.0"), invert=False)
    return scores


@family("attention", "attention", "causal")
def attention(b: Builder) -> Sequence[int]:
    """Scores, a mask or a bias, a row kernel, the context."""
    (q, k, v), (first, second) = _operands(b, b.flip(0.6))
    if b.flip(0.2):
        v = b.pick(v, k) if b.shape(k) == b.shape(v) else v
    if b.flip(0.15) and b.shape(q) == b.shape(k):
        k = q
    scores = b("einsum", b.pick(q, b.f("half", q)), b.pick(k, b.f("half", k)), spec=first)
    scaled = b.pick(b.f("half", scores), scores, b.f("tanh", scores))
    masked = _masked(b, scaled)
    axis = b.rank(masked) - 1
    p = b("along", masked, f=b.pick("softmax", b.any(list(ALONG))), axis=b.pick(axis, axis - 1))
    if b.flip(0.2):
        p = b.two(b.pick("mul", "add"), p, b.any((masked, scores, b.arg(*map(str, b.shape(p))))))
    context = b("einsum", p, v, spec=second)
    context = b.pick(context, b.f("tanh", context), b.two("add", context, b.f("half", context)))
    return b.pick([context], [context, p], [context, scores], [context, b("reduce", p, f="sum", axis=0, keep=False)],
                  [context, b("einsum", p, v, spec=second)])  # fmt: skip


@family("attention-block", "attention", "horizontal-gemm", "causal", "gemm")
def block(b: Builder) -> Sequence[int]:
    """Attention with its projections and a residual."""
    batch, length, h, d = b.dim("b"), b.dim("s"), b.pick(2, 1, 4), b.pick(4, 8, 2)
    width = h * d
    x = b.arg(batch, length, width)
    y = b("along", x, f="standardize", axis=2) if b.flip(0.6) else x
    projected = []
    for _ in range(3):
        p = b("einsum", b.pick(y, x), b.arg(width, width, fill="weight"), spec="bmk,kn->bmn")
        p = b.two("add", p, b.arg(width), lift=[0, 1]) if b.flip(0.3) else p
        projected.append(b("split", p, axis=2, inner=d))
    q, k, v = projected
    k, v = (k, v) if b.flip(0.8) else (b.pick(k, q), b.pick(v, k))
    scores = _masked(b, b.f("half", b("einsum", q, k, spec="bqhd,bkhd->bhqk")))
    p = b("along", scores, f="softmax", axis=3)
    context = b("merge", b("einsum", p, v, spec="bhqk,bkhd->bqhd"), axis=2)
    out = b("einsum", context, b.arg(width, width, fill="weight"), spec="bmk,kn->bmn")
    out = b.two("add", b.pick(x, y), out)
    return b.pick([out], [out, b("transpose", k, perm=[0, 2, 1, 3])], [out, p], [out, v, k])


@family("attention-cache", "attention", "causal", "update")
def cache(b: Builder) -> Sequence[int]:
    """One step of decoding: key and value are written into caches, of which so much counts."""
    batch, total, d, new = b.dim("b"), b.dim("s"), b.dim(8), b.pick(1, 2)
    place = b.arg(dtype="int32", fill=f"index:{total}")
    keys, values = b.arg(batch, total, d), b.arg(batch, total, d)
    q = b.arg(batch, new, d)
    k_new, v_new = (b.f(b.pick("half", "tanh"), q) for _ in range(2))
    k = b("dynamic_update", keys, b.pick(k_new, b.arg(batch, new, d)), place, axis=1)
    v = b("dynamic_update", values, b.pick(v_new, b.arg(batch, new, d)), place, axis=1)
    scores = b("einsum", q, b.pick(k, k, keys), spec="bqd,bkd->bqk")
    mask = b("mask", scores, place, compare=b.pick("ge", "gt"), offset=b.pick(0, 1), rows=1, columns=1, sign=1)
    mask = b.two("or", mask, b("mask", scores, compare="ge", offset=0, rows=1, columns=1)) if b.flip(0.3) else mask
    scores = b("fill", mask, scores, value=b.pick("-1000000000.0", "0.0"), invert=False)
    p = b("along", scores, f="softmax", axis=2)
    context = b("einsum", p, b.pick(v, v, values), spec="bqk,bkd->bqd")
    return b.pick(
        [context, k, v], [context], [context, v, b("reduce", keys, f="sum", axis=1, keep=False)], [k, v, context]
    )


@family("causal", "causal", "attention")
def causal(b: Builder) -> Sequence[int]:
    """Elements hidden by a mask of places do not count: masks of other kinds, and rows that need what is hidden."""
    rows, columns = b.dim("s"), b.dim(b.pick("s", "t"))
    x, v = b.arg(rows, b.dim(8)), b.arg(columns, b.dim(8))
    scores = b("einsum", x, b.arg(columns, str(b.shape(x)[1])), spec="mk,nk->mn")
    offset = b.pick(0, 1, -1, "tail", 3)
    mask = b("mask", scores, compare=b.pick("ge", "gt", "le", "lt", "eq", "ne"), offset=offset, rows=b.pick(1, 2, -1),
             columns=b.pick(1, 2))  # fmt: skip
    if b.flip(0.25):
        other = b("mask", scores, compare=b.any(("ge", "le")), offset=b.any((0, 2, -2)), rows=1, columns=1)
        mask = b.two(b.any(("and", "or", "xor")), mask, other)
    value = b.pick("-1000000000.0", "0.0", "-1e+30", "-5.0", "100.0")
    p = b("fill", mask, scores, value=value, invert=b.flip(0.15))
    for _ in range(b.pick(1, 2)):
        p = b("along", p, f=b.any(ROW_KERNELS), axis=b.pick(1, 1, 0))
    if b.flip(0.4):
        p = b("fill", b.pick(mask, b("mask", scores, compare="ge", offset=0, rows=1, columns=1)), p,
              value=b.pick("0.0", "1.0"), invert=False)  # fmt: skip
    if b.flip(0.2):
        p = b.f(b.any(("plus1", "tanh", "one_minus")), p)
    y = b("einsum", p, v, spec="mk,kn->mn")
    return b.pick([y], [y, p], [y, b("reduce", p, f="sum", axis=1, keep=False)])
