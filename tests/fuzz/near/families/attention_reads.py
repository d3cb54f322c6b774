# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that an attention computes again, reads in pieces or leaves out: generated biases, pieces, hidden columns."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.near.builder import Builder
from tests.fuzz.near.families.family import family


def _heads(b: Builder) -> tuple[int, int]:
    """Scores of heads, and a value."""
    heads = (b.dim("b"), b.any((2, 3)))
    q, k = b.arg(*heads, b.dim("s"), 8), b.arg(*heads, b.dim(b.pick("t", "s")), 8)
    v = b.arg(*map(str, b.shape(k)[:3]), b.dim(8))
    return b("einsum", q, k, spec="bhqd,bhkd->bhqk"), v


def _context(b: Builder, scores: int, v: int) -> int:
    return int(b("einsum", b("along", scores, f="softmax", axis=3), v, spec="bhqk,bhke->bhqe"))


@family("attention-generated", "rematerialize-generator", "attention")
def generated(b: Builder) -> Sequence[int]:
    """A bias made of positions: of each head, with a second result, moved."""
    scores, v = _heads(b)
    kind = b.any(("plain", "of heads", "two results", "moved", "read elsewhere", "of an argument"))
    one = b("index", b("index", scores, axis=0, at=0), axis=0, at=0)
    if kind == "of heads":
        one = b("index", scores, axis=0, at=0)
    place = b("iota", one, axis=b.rank(one) - 1, dtype="float")
    row = b("iota", one, axis=b.rank(one) - 2, dtype="float")
    bias = b.two("sub", b.f("half", row), place)
    if kind == "of heads":
        bias = b.two("mul", bias, b("iota", one, axis=0, dtype="float"))
    more = [b.f("relu", bias)] if kind in ("two results", "read elsewhere") else []
    if kind == "moved":
        bias = b.any((
            b("flip", bias, axis=b.any((0, 1))), b("roll", bias, axis=b.any((0, 1)), by=1),
            b("transpose", b("transpose", bias, perm=[1, 0]), perm=[1, 0]),
        ))  # fmt: skip
    elif kind == "of an argument":
        bias = b.two("mul", bias, b.arg(str(b.shape(bias)[1])), lift=[0])
    elif kind == "two results":
        bias = b.two("add", bias, more[0])
    masked = b.two("add", scores, bias, lift=list(range(4 - b.rank(bias))))
    return [_context(b, masked, v), *more]


@family("attention-pieces", "row-slice-view", "attention")
def pieces(b: Builder) -> Sequence[int]:
    """Query, key and value from one product, cut out of its rows, or read otherwise as well."""
    d = b.any((4, 8))
    x = b.arg(b.dim("s"), b.dim(8))
    whole = b("einsum", x, b.arg(str(b.shape(x)[1]), 2 * d, fill="weight"), spec="mk,kn->mn")
    q, k = b("halves", whole, axis=1, count=2)
    kind = b.any(("plain", "cut across", "read by rows", "cut across"))
    if kind == "cut across":
        q, k = (b("merge", b("split", v, axis=1, inner=d // 2), axis=0) for v in (q, k))
    if kind == "read by rows":
        k = b.f("tanh", b.arg(d, d))
    scores = b("einsum", q, k, spec="qd,kd->qk")
    scores = b.two("add", scores, q) if kind == "read by rows" else scores
    v = b.f("tanh", b.arg(str(b.shape(k)[0]), b.dim(8)))
    return [b("einsum", b("along", scores, f="softmax", axis=1), v, spec="qk,ke->qe")]


@family("attention-hidden", "causal-bound", "attention")
def hidden(b: Builder) -> Sequence[int]:
    """Masks of places that hide columns of the scores, of the weights alone, or not of the weights.

    There are enough rows for some tiles to leave out hidden columns.
    """
    kind = b.any(("plain", "of the weights", "not of the weights", "of rows of several matrices"))
    rows, columns = b.any(((90, 100), (128, 70), (100, 100)))
    if kind == "of rows of several matrices":
        q, k = b.arg(2, rows, 8), b.f("tanh", b.arg(2, columns, 8))
        scores = b("merge", b("einsum", q, k, spec="hqd,hkd->hqk"), axis=0)
        p = b("along", _masked(b, scores, "-1000000000.0"), f="softmax", axis=1)
        return [b("einsum", b("split", p, axis=0, inner=rows), k, spec="hqk,hke->hqe")]
    k = b.f("tanh", b.arg(columns, 8))
    scores = b("einsum", b.arg(rows, 8), k, spec="qd,kd->qk")
    if kind == "of the weights":
        p = _masked(b, b("along", scores, f=b.any(("softmax", "exp_max", "scale_sum")), axis=1), "0.0")
    else:
        p = b("along", _masked(b, scores, "-1000000000.0"), f="softmax", axis=1)
    if kind == "not of the weights":
        p = b.any((b.f("plus1", p), b.f("one_minus", p)))
    return [b("einsum", p, k, spec="qk,ke->qe")]


@family("attention-visible", "visible-columns", "visible-softmax", "attention-gradient", "attention")
def visible(b: Builder) -> Sequence[int]:
    """Formulas of comparisons of integers of rows with those of columns, which hide elements of the scores.

    Some rows see nothing, some masks are read by the weights as well, and some numbers show through.
    """
    rows, columns = b.any(((90, 100), (128, 70), (57, 200), (20, 90)))
    q, k, v = b.arg(2, rows, 8), b.f("tanh", b.arg(2, columns, 8)), b.arg(2, columns, b.dim(8))
    scores = b("einsum", q, k, spec="hqd,hkd->hqk")
    one = b("index", scores, axis=0, at=0)
    mask = _comparison(b, one, rows, columns)
    for _ in range(b.pick(0, 1, 2)):
        mask = b.two(b.any(("and", "or", "xor")), mask, _comparison(b, one, rows, columns))
    if b.flip(0.3):
        scores = b.two("add", scores, b.arg(rows, columns), lift=[0])
    fill = b.pick("-1000000000.0", "-inf", "-1e+30", "-5.0", "0.0")
    if fill == "-inf":
        mask = b.two("or", mask, b("mask", one, compare="ge", offset=0, rows=1, columns=1))
    everywhere = b.two("and", mask, b("mask", scores, compare="ge", offset=columns, rows=0, columns=1), lift=[0])
    p = b("along", b("fill", everywhere, scores, value=fill, invert=b.flip(0.2)), f="softmax", axis=2)
    if b.flip(0.2):
        p = b("fill", everywhere, p, value=b.pick("0.0", "1.0"), invert=False)
    return [b("einsum", p, v, spec="hqk,hke->hqe")]


def _comparison(b: Builder, scores: int, rows: int, columns: int) -> int:
    """An integer of each row compared with one of each column, or with its place and an integer."""
    place = b("iota", scores, axis=1, dtype="int32")
    of_column = b.two(b.pick("add", "sub", "mul"), place, b.arg(columns, dtype="int32", fill="index:6"), lift=[0])
    of_row = b.arg(rows, dtype="int32", fill=f"index:{b.any((6, columns))}")
    return int(b.two(b.any(("eq", "ge", "le", "gt", "lt")), of_column, of_row, lift=[1]))


def _masked(b: Builder, x: int, value: str) -> int:
    mask = b("mask", x, compare="ge", offset=b.pick(0, 1, -1, 3), rows=1, columns=1)
    return int(b("fill", mask, x, value=value, invert=False))
