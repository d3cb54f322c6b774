# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attentions whose axes, element types or blocks are not those of one kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.fuzz.near.builder import Builder
from tests.fuzz.near.families.family import family
from tests.fuzz.near.families.loops import _program


def _scores(b: Builder) -> tuple[int, int, int]:
    """Scores and a value of computed rows, and their number."""
    q, k, e = b.arg(b.dim("s"), 8), b.arg(b.dim(b.pick("t", "s")), 8), b.dim(8)
    k = b.pick(b.f("tanh", k), k)
    return b("einsum", q, k, spec="qd,kd->qk"), b.f("tanh", b.arg(str(b.shape(k)[0]), e)), k


def _rows_of_the_key(b: Builder) -> Sequence[int]:
    q, k = b.arg(b.dim("s"), 8), b.arg(b.dim("t"), b.any((3, "b")), 8)
    p = b("along", b("einsum", q, k, spec="qd,khd->qkh"), f="softmax", axis=2)
    return [b("einsum", p, b.f("tanh", b.arg(str(b.shape(k)[1]), 8)), spec="qkh,he->qke")]


def _batched_columns(b: Builder) -> Sequence[int]:
    n = b.any((3, "b"))
    q, k = b.arg(b.dim("s"), n, 8), b.arg(b.dim("t"), n, 8)
    p = b("along", b("einsum", q, k, spec="qhd,khd->qkh"), f="softmax", axis=2)
    return [b("einsum", p, b.f("tanh", b.arg(n, 8)), spec="qkh,he->qke")]


def _other_rows(b: Builder) -> Sequence[int]:
    h, inner = b.any(((6, 3), (6, 2), (4, 1), (2, 1)))
    q, k = b.arg(b.dim("s"), h, 8), b.arg(b.dim("t"), 8)
    scores = b("split", b("merge", b("einsum", q, k, spec="qhd,kd->qhk"), axis=0), axis=0, inner=inner)
    v = b.f("tanh", b.arg(str(b.shape(scores)[2]), 8))
    return [b("einsum", b("along", scores, f="softmax", axis=2), v, spec="mhk,ke->mhe")]


def _moved_scores(b: Builder) -> Sequence[int]:
    scores, v, _ = _scores(b)
    axis = b.any((0, 1))
    scores = b.any((b("flip", scores, axis=axis), b("roll", scores, axis=axis, by=1)))
    return [b("einsum", b("along", scores, f=b.any(("softmax", "scale_sum")), axis=1), v, spec="qk,ke->qe")]


def _sums_of_many(b: Builder) -> Sequence[int]:
    """Each weight is a sum of its own."""
    scores, v, k = _scores(b)
    whole = b.two("mul", b("expand", scores, axis=2), b.arg(b.dim("b")), lift=[0, 1])
    whole = b.two("add", whole, b.arg(str(b.shape(k)[0]), 1), lift=[0]) if b.flip(0.7) else whole
    return [b("einsum", b("reduce", b.f("tanh", whole), f="sum", axis=2, keep=False), v, spec="qk,ke->qe")]


def _merged_rows(b: Builder) -> Sequence[int]:
    q, k = b.arg(b.dim("s"), b.any((2, 3)), 8), b.arg(b.dim("t"), 8)
    scores = b("merge", b("einsum", q, k, spec="qhd,kd->qhk"), axis=b.pick(0, 1))
    v = b.f("tanh", b.arg(str(b.shape(scores)[1]), 8))
    return [b("einsum", b("along", scores, f="softmax", axis=1), v, spec="mk,ke->me")]


def _joint_columns(b: Builder) -> Sequence[int]:
    q, k = b.arg(b.dim("s"), b.any((2, 3, "b")), 8), b.arg(b.dim("t"), 8)
    scores = b("einsum", q, k, spec="qhd,kd->qhk")
    whole = b("reduce", scores, f=b.any(("norm1", "abs_sum")), axis=[1, 2], keep=True)
    p = b.two("div1", scores, whole)
    return [b("einsum", p, b.f("tanh", b.arg(str(b.shape(k)[0]), 8)), spec="qhk,ke->qhe")]


def _turned_bias(b: Builder) -> Sequence[int]:
    scores, v, _ = _scores(b)
    bias = b("transpose", b.arg(*map(str, b.shape(scores)[::-1])), perm=[1, 0])
    p = b("along", b.two("add", scores, bias), f="softmax", axis=1)
    return [b("einsum", p, v, spec="qk,ke->qe")]


def _wide_value(b: Builder) -> Sequence[int]:
    scores, _, k = _scores(b)
    v = b.f("tanh", b.arg(str(b.shape(k)[0]), b.any((2, 3)), b.any((4, "b"))))
    return [b("einsum", b("along", scores, f="softmax", axis=1), v, spec=b.pick("qk,khe->qhe", "qk,khe->hqe"))]


def _many_rows(b: Builder) -> Sequence[int]:
    rows = [b.any((2, 2, 3)) for _ in range(b.any((4, 5)))]
    letters = "abcfg"[: len(rows)]
    q, k, v = (b.arg(*rows, n, 2) for n in ("s", "t", "t"))
    p = b("along", b("einsum", q, k, spec=f"{letters}qd,{letters}kd->{letters}qk"), f="softmax", axis=len(rows) + 1)
    return [b("einsum", p, v, spec=f"{letters}qk,{letters}kd->{letters}qd")]


def _narrow_weights(b: Builder) -> Sequence[int]:
    scores, v, _ = _scores(b)
    narrow = b.any(("bfloat16", "float16"))
    p, v = (b("convert", x, dtype=narrow) for x in (b("along", scores, f="softmax", axis=1), v))
    return [b("einsum", p, v, spec="qk,ke->qe", **b.pick({"acc": "float32"}, {}))]


def _in_a_branch(b: Builder) -> Sequence[int]:
    scores, v, _ = _scores(b)
    bodies = []
    for f in ("softmax", "scale_sum"):
        body = b.body(b.types[scores], b.types[v])
        bodies.append(_program(body, [body("einsum", body("along", 0, f=f, axis=1), 1, spec="qk,ke->qe")]))
    return [b("cond", b.arg(dtype="bool"), scores, v, then=bodies[0], **{"else": bodies[1]})]


LAYOUTS: tuple[Callable[[Builder], Sequence[int]], ...] = (
    _rows_of_the_key, _batched_columns, _merged_rows, _other_rows, _joint_columns, _turned_bias, _moved_scores,
    _sums_of_many, _wide_value, _many_rows, _narrow_weights, _in_a_branch,
)  # fmt: skip


@family("attention-layouts", "attention")
def layouts(b: Builder) -> Sequence[int]:
    """Rows that are the key's, or not those of the weights; columns of several axes; values with two axes."""
    return b.any(LAYOUTS)(b)


@family("attention-rounded", "rounding", "attention")
def rounded(b: Builder) -> Sequence[int]:
    """Sums that are rounded, by the attention or by what else reads them."""
    b.dtype = b.any(("bfloat16", "bfloat16", "float16"))
    q, k, v = b.arg(b.dim("s"), 8), b.arg(b.dim("t"), 8), b.dim(8)
    p = b("along", b("einsum", q, k, spec="qd,kd->qk"), f="softmax", axis=1)
    v = b.f("tanh", b.arg(str(b.shape(k)[0]), v))
    sums = b("einsum", p, v, spec="qk,ke->qe", acc="float32")
    kind = b.pick("alone", "both", "branch", "otherwise")
    if kind == "otherwise":
        return [b("convert", sums, dtype=b.any(("float16", "bfloat16")))]
    if kind == "branch":
        values = [sums, b("convert", sums if b.flip(0.2) else b.arg(*map(str, b.shape(sums))), dtype="float32")]
        bodies = []
        for number in (0, 1):
            body = b.body(*(b.types[v] for v in values))
            bodies.append(_program(body, [body("convert", number, dtype="float")]))
        return [b("cond", b.arg(dtype="bool"), *values, then=bodies[0], **{"else": bodies[1]})]
    more = [b("reduce", sums, f="sum", axis=0, keep=False)] if kind == "both" else []
    return [*more, b("convert", sums, dtype="float")]
