# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs next to those that become one kernel: each misses one condition of a pattern, and meets the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.fuzz.near.builder import Builder
from tests.fuzz.near.families.family import family
from tests.fuzz.near.families.loops import _program, _rows, _types, recurrence, scan, scanned

FUNCTIONS = ("tanh", "half", "relu", "exp_neg_abs", "square", "one_minus")
TWO = ("add", "sub", "mul", "max", "gate")
ALONG = ("softmax", "center", "scale_sum")


def _moved(b: Builder, y: int) -> int:
    """A value whose elements are those of `y` at other places."""
    kind = b.any(("flip", "roll", "flip", "turned"))
    if kind == "turned" and b.shape(y)[0] == b.shape(y)[1]:
        return int(b("transpose", y, perm=[1, 0]))
    if kind == "roll":
        return int(b("roll", y, axis=b.pick(0, 1), by=1))
    return int(b("flip", y, axis=b.pick(0, 1)))


def _reduced(b: Builder, x: int, axis: int = 1) -> int:
    return int(b("reduce", b.f(b.any(FUNCTIONS), x), f=b.any(("sum", "max", "mean")), axis=axis, keep=False))


@family("moved-rows", "merge-fusions", "absorb-producer")
def moved_reduced(b: Builder) -> Sequence[int]:
    """Normalized rows together with the same rows, or others, at other places."""
    m = b.dim("b")
    n = b.pick(b.dim("s"), m)
    x = b.arg(m, n)
    y = b("along", x, f=b.any(ALONG), axis=1) if b.flip(0.7) else b.f(b.any(FUNCTIONS), x)
    z = _moved(b, b.pick(y, b.f(b.any(FUNCTIONS), b.arg(m, n))))
    w = b.two(b.any(TWO), y, z) if b.flip() else b.two(b.any(TWO), z, y)
    return b.pick([w], [w, y], [w, z], [_reduced(b, w), w])


@family("square-rows", "elementwise-fusion", "merge-fusions", "in-place")
def square_reduced(b: Builder) -> Sequence[int]:
    """Sums of the rows of a square matrix that stand at its columns."""
    n = b.dim("s")
    x, y = b.arg(n, n), b.arg(n, n)
    e = b.f(b.any(FUNCTIONS), x)
    r = b("reduce", e, f=b.any(("sum", "max", "mean")), axis=1, keep=False)
    scaled = b.two(b.any(TWO), b.pick(y, x), r, lift=[b.pick(0, 1)])
    z = b.two(b.any(TWO), b.pick(e, y), scaled)
    return b.pick([z], [z, r], [z, e], [b("along", z, f="softmax", axis=1)])


@family("widths", "elementwise-fusion", "merge-fusions", "row-reduce-fusion")
def widths(b: Builder) -> Sequence[int]:
    """Rows that are read by wider ones, by all elements, or that are rows of something larger."""
    m, n, k = b.dim("b"), b.dim("s"), b.dim("t")
    x, y = b.arg(m, n), b.arg(m, k)
    kind = b.any(("wider", "all", "larger", "repeated", "repeated"))
    if kind == "wider":
        z = b.two(b.any(TWO), y, _reduced(b, x), lift=[1])
        return b.pick([z], [z, _reduced(b, z)])
    if kind == "all":
        total = b("reduce", _reduced(b, x), f="sum", axis=0, keep=False)
        return [b.two(b.any(TWO), x, total)]
    if kind == "larger":
        total = b("reduce", b.f("tanh", b.arg(m, n, k)), f="sum", axis=2, keep=False)
        return [b.two(b.any(TWO), total, b("along", x, f=b.any(ALONG), axis=1))]
    row = b.f(b.any(FUNCTIONS), b.arg(n))
    repeated = b("broadcast", row, x, axis=0)
    sums = b("reduce", b.pick(repeated, b.f("half", repeated)), f=b.any(("sum", "mean")), axis=1, keep=False)
    return b.pick([b.two(b.any(TWO), sums, _reduced(b, x))], [sums], [b.two(b.any(TWO), x, sums, lift=[1])])


@family("loop-starts", "take-over", "destination", "loop")
def loop_starts(b: Builder) -> Sequence[int]:
    """Loops in loops and branches, which start from what is carried, computed, read again, or two from one value."""
    n = b.dim("s")
    x = b.arg(n, n)
    y = b("scaled_einsum", b.f("tanh", x), x, spec="mk,nk->mn") if b.flip() else b.f("tanh", x)
    kind = b.any(("nested", "nested", "same", "again", "branch"))
    if kind == "branch":
        bodies = {"then": b.body(b.types[y]), "else": b.body(b.types[y])}
        made = {name: _program(body, [_powers(body, 0) if name == "then" else body.f("half", 0)])
                for name, body in bodies.items()}  # fmt: skip
        return [b("cond", b.arg(dtype="bool"), y, **made), *b.pick([], [y])]
    if kind == "again":
        z = _powers(b, y)
        return b.pick([b.two("add", z, y)], [z, y], [b("scaled_einsum", z, y, spec="mk,nk->mn")])
    start = [y, y] if kind == "same" else [y, b.f("half", x)]
    body = b.body(((), "int32"), *(b.types[v] for v in start))
    one = body("scaled_einsum", body.f("tanh", 2), body.pick(2, 1), spec="mk,nk->mn")
    other = body.two("add", 1, 2) if kind == "same" else _powers(body, 1)
    following = b.pick([one, other], [other, one])
    made = b.add("fori", *start, count=2, body=_program(body, following), carry=2, start=0, trip=b.pick(3, 1, str(n)))
    return list(made)


def _powers(b: Builder, x: int) -> int:
    """A loop that starts from `x`."""
    body = b.body(((), "int32"), b.types[x])
    y = body.f("tanh", body("scaled_einsum", 1, 1, spec="mk,nk->mn"))
    return int(b("fori", x, body=_program(body, [y]), carry=1, start=0, trip=b.pick(2, 1)))


@family("walks", "counted-loop", "covered-stack", "hoist-scanned-product", "hoist-accumulated-product", "recurrence")
def walks(b: Builder) -> Sequence[int]:
    """Scans written as loops that count, of which one thing is another: where they start and end, what they read."""
    results = b.any((recurrence, scanned, scanned))(b)
    changes = ({}, {"start": 1}, {"step": 2}, {"less": "le"}, {"bound": -1}, {"place": "next"}, {"place": "back"},
               {"place": "half"}, {"place": "next", "bound": -1}, {"extra": 1}, {"until": 1.5})  # fmt: skip
    usual = {"start": 0, "step": 1, "less": "lt", "bound": 0, "place": "same", "extra": 0, "until": 0.0}
    change = b.any(changes)
    b.steps[:] = [
        replace(s, op="walk", params={**s.params, **usual, **change}) if s.op == "scan" else s for s in b.steps
    ]
    return results


@family("cells", "recurrence", "pre-transpose-weights", "hoist-invariant")
def cells(b: Builder) -> Sequence[int]:
    """A cell with one more thing that it carries or computes, which is no row of the batch."""
    batch, time, hidden = b.dim("b"), b.dim(b.pick("s", 5)), b.any((8, 4, 1))
    kind = b.any(("scalar", "from outside", "square", "own weight", "invariant", "wide", "batch"))
    hidden = b.pick("t", "b") if kind == "wide" else batch if kind == "square" else hidden
    xs, h, u = b.arg(time, batch, hidden), b.arg(batch, hidden), b.arg(hidden, hidden, fill="weight")
    more = {"scalar": lambda: b.arg(), "from outside": lambda: b.arg(b.dim("t"), 4)}.get(
        kind, lambda: b.arg(batch, hidden)
    )()
    other = b.arg(*map(str, b.shape(more))) if kind == "from outside" else u
    body = b.body(*_types(b, [h, more]), *_rows(b, [xs]), *_types(b, [u, other]))
    weight = 3
    if kind == "own weight":
        weight = body.two("add", 3, body("scaled_einsum", 0, 0, spec="km,kn->mn"))
    elif kind == "invariant":
        weight = body("scaled_einsum", body.f("tanh", 3), 3, spec="mk,kn->mn")
    y = 0 if kind == "wide" else body("einsum", 0, weight, spec=body.pick("mk,nk->mn", "mk,kn->mn"))
    y = body.f(b.any(("tanh", "half")), body.two("add", y, 2))
    following = {
        "scalar": lambda: body.f(b.any(("half", "plus1")), 1),
        "from outside": lambda: body.f("half", 4) if b.flip() else 4,
        "square": lambda: body("transpose", b.pick(0, y), perm=[1, 0]),
    }.get(kind, lambda: body.two("sub", y, body.f("half", 1)))()
    made = scan(b, body, [h, more], [xs], [u, other], [y, following, *b.pick([y], [])])
    return b.pick(list(made), list(made[:2]), list(made[2:]) or list(made))


@family("hoists", "hoist-scanned-product", "hoist-accumulated-product", "hoist-invariant")
def hoists(b: Builder) -> Sequence[int]:
    """Products in a scan: of its rows, at two places, of what it carries, with a batch; summed up, and read before."""
    time, batch, d = b.dim("s"), b.any((3, 2, "b")), b.any((4, 8))
    xs, ys, stack = (b.arg(time, batch, d) for _ in range(3))
    h, total, sums = b.arg(batch, d), b.arg(d, d), b.arg(batch, d, d)
    w, weights = b.arg(d, d, fill="weight"), b.arg(batch, d, d, fill="weight")
    place = b.arg(dtype="int32", fill=f"index:{time}")
    carry, rest = [h, total, sums, stack], [w, weights, ys, place, b.arg(batch, d)]
    body = b.body(*_types(b, carry), *_rows(b, [xs, ys]), *_types(b, rest))
    x, y = 4, body.f("tanh", 5)
    kind = b.any(("batch", "steps", "carried", "places", "watched", "shared", "outer", "fixed", "loop"))
    left, right, spec = x, 6, "mk,kn->mn"
    if kind == "steps":
        left = body("cumulative", x, f="sum", axis=1, reverse=False)
    elif kind in ("carried", "places"):
        other = body("dynamic_index", 3 if kind == "carried" else 8, 9, axis=0)
        left = other if kind == "carried" else body.two("add", x, other)
    elif kind == "batch":
        right, spec = 7, "bi,bij->bj"
    elif kind == "loop":
        right = body("einsum", _powers(body, 6), 6, spec="mk,kn->mn")
    state = body.f("tanh", body.two("add", 0, body("einsum", left, right, spec=spec)))
    product = body("einsum", *((10, x) if kind == "fixed" else (x, y)), spec="km,kn->mn")
    following = [state, body.two("add", 1, product), 2, body.f("half", 3)]
    if kind in ("watched", "shared"):
        read = body("reduce", following[1] if kind == "watched" else product, f="mean", axis=0, keep=False)
        following[0] = body.two("add", state, read, lift=[0])
    elif kind == "outer":
        following[2] = body.two("add", 2, body("einsum", x, y, spec="bi,bj->bij"))
    return list(scan(b, body, carry, [xs, ys], rest, following, reverse=b.flip(0.2)))


@family("windows", "covered-stack", "recurrence")
def windows(b: Builder) -> Sequence[int]:
    """A cell that writes its state to a stack: a row of it, two rows, a part of a row, at the counter or next to it."""
    rows, time, d = b.dim("b"), b.any((4, 6, 5)), b.any((4, 8))
    xs, h, out = b.arg(time, rows, d), b.arg(rows, d), b.arg(rows, time, d)
    body = b.body(((), "int32"), *_types(b, [h, out, xs]))
    y = body.f("tanh", body.two("add", 1, body("dynamic_index", 3, 0, axis=0)))
    part = body("expand", y, axis=1)
    kind = b.any(("row", "two", "corner"))
    if kind == "two":
        part = body("concat", part, body.f("half", part), axis=1)
    elif kind == "corner":
        part = body("slice", part, axis=2, cut=b.pick([0, 1, 1], [0, 2, 1], [1, None, 1]))
    made = body("put", 2, part, body.pick(0, body.f("plus1", 0)), axis=1)
    return list(b.add("fori", h, out, xs, count=2, body=_program(body, [y, made]), carry=2, start=b.pick(0, 1),
                      trip=b.pick(time, 2)))  # fmt: skip
