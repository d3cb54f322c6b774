# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops: recurrences, what is hoisted out of them, what they carry; branches."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.near.builder import Builder
from tests.fuzz.near.families.family import family
from tests.fuzz.near.pieces.elementwise import NUMBERS
from tests.fuzz.near.program import Rejected, Step, Type

ACTIVATIONS = ("tanh", "sigmoid", "relu", "half", "silu")


def scan(b: Builder, body: Builder, carry: Sequence[int], xs: Sequence[int], rest: Sequence[int],
         results: Sequence[int], reverse: bool = False, length: object = 0) -> tuple[int, ...]:  # fmt: skip
    """A scan; the body's arguments are those of the carry, of a row of each of `xs`, of the rest."""
    made = b.add("scan", *carry, *xs, *rest, count=len(results), body=_program(body, results), carry=len(carry),
                 xs=len(xs), reverse=reverse, length=length)  # fmt: skip
    return made if isinstance(made, tuple) else (made,)


def _program(body: Builder, results: Sequence[int]):  # type: ignore[no-untyped-def]
    from tests.fuzz.near.program import Program

    return Program(tuple(body.arguments), tuple(body.steps), tuple(results), body.dtype)


def _types(b: Builder, values: Sequence[int]) -> list[Type]:
    return [b.types[v] for v in values]


def _rows(b: Builder, values: Sequence[int]) -> list[Type]:
    return [Type(b.types[v].shape[1:], b.types[v].dtype) for v in values]


@family("recurrence", "recurrence", "scanned", "accumulated")
def recurrence(b: Builder) -> Sequence[int]:
    """A cell with one or two states over a batch, its inputs stacked in front or not at all."""
    batch, time, hidden, width = b.dim("b"), b.dim(b.pick("s", 4, 1)), b.pick(8, 1, 4, 17, "t"), b.pick(8, 3, "t")
    xs = b.arg(time, batch, width)
    h = b.arg(batch, hidden)
    w = b.arg(width, hidden, fill="weight")
    u = b.arg(hidden, hidden, fill="weight")
    kind = b.pick("simple", "projected before", "gated", "two states", "turned weight", "mixed rows")
    rest = [w, u, b.arg(hidden)]
    states = [h]
    if kind == "projected before":
        xs = b("einsum", xs, w, spec="bmk,kn->bmn")
    if kind in ("two states", "gated"):
        states.append(b.arg(batch, hidden))
    body = b.body(*_types(b, states), *_rows(b, [xs]), *_types(b, rest))
    state, row = 0, len(states)
    w_in, u_in, bias = row + 1, row + 2, row + 3
    left = row if kind == "projected before" else body("einsum", row, w_in, spec="mk,kn->mn")
    turned = body("transpose", u_in, perm=[1, 0]) if kind == "turned weight" else u_in
    right = body("einsum", body.pick(state, body.f("tanh", state)), turned, spec=body.pick("mk,kn->mn", "mk,nk->mn"))
    y = body.two(body.pick("add", "mul"), left, right)
    y = body.two("add", y, bias, lift=[0]) if b.flip() else y
    if kind == "mixed rows":
        y = body.two("sub", y, body("reduce", y, f=b.any(("mean", "max")), axis=b.pick(1, 0), keep=True))
    y = body.f(b.any(ACTIVATIONS), y)
    following = [y]
    if len(states) == 2:
        c = body.two(b.any(("gate", "add", "mul")), 1, y)
        c = body.f("tanh", c)
        following = b.pick([body.two("gate", y, c), c], [c, y], [y, state], [c, body.two("mul", c, state)])
    outs = b.pick([following[0]], [], [following[0], y], [body("reduce", y, f="sum", axis=b.pick(1, 0), keep=False)],
                  [state], [body("transpose", y, perm=[1, 0])], [body.f("half", row)])  # fmt: skip
    made = scan(b, body, states, [xs], rest, [*following, *outs], reverse=b.flip(0.2))
    return _after(b, made, len(states))


def _after(b: Builder, made: tuple[int, ...], carry: int) -> Sequence[int]:
    """Results of a loop, and what is computed of them."""
    if b.flip(0.5) or len(made) == carry:
        return b.pick(list(made), list(made[carry:]) or list(made), list(made[:carry]))
    ys = made[-1]
    kind = b.any(("turned", "reduced", "product", "sliced"))
    rank = b.rank(ys)
    if kind == "turned":
        return [b("transpose", ys, perm=b.rng.sample(range(rank), rank)), made[0]]
    if kind == "reduced":
        return [b("reduce", ys, f=b.any(("sum", "max", "mean")), axis=b.axis(ys), keep=False), made[0]]
    if kind == "product" and rank == 3:
        return [b("einsum", ys, b.arg(str(b.shape(ys)[2]), 8, fill="weight"), spec="bmk,kn->bmn"), made[0]]
    return [b("index", ys, axis=0, at=b.pick(-1, 0)), *made[:1], ys]


@family("recurrences", "horizontal-recurrence", "recurrence")
def recurrences(b: Builder) -> Sequence[int]:
    """Two loops that may or may not need each other: both ways through a sequence, or one after the other."""
    batch, time, hidden = b.dim("b"), b.dim(b.pick("s", 5)), b.pick(8, 1, 4)
    xs = b.arg(time, batch, hidden)
    made: list[tuple[int, ...]] = []
    for number in range(b.pick(2, 3)):
        kind = b.pick("apart", "state", "stack", "weight", "turned")
        source, h, u = xs, b.arg(batch, hidden), b.arg(hidden, hidden, fill="weight")
        if made and kind == "state":
            h = made[-1][0]
        elif made and kind == "stack" and b.shape(made[-1][1]) == b.shape(xs):
            source = b.pick(made[-1][1], b.two("add", made[-1][1], xs))
        elif made and kind == "weight":
            u = b("einsum", u, b.f("half", u), spec="mk,kn->mn")
        elif kind == "turned":
            source = b("flip", xs, axis=0)
        body = b.body(*_types(b, [h]), *_rows(b, [source]), *_types(b, [u]))
        y = body.f(b.any(ACTIVATIONS), body.two("add", 1, body("einsum", 0, 2, spec="mk,kn->mn")))
        made.append(scan(b, body, [h], [source], [u], [y, b.pick(y, 0)], reverse=number == 1 and b.flip(0.7)))
    results = [v for pair in made for v in pair]
    if b.flip():
        results.append(b("concat", made[0][1], made[1][1], axis=b.pick(2, 0, 1)))
    return b.pick(results, results[::-1], results[-2:])


@family("scanned", "scanned", "hoist", "accumulated")
def scanned(b: Builder) -> Sequence[int]:
    """Products of scanned rows, which are the same before the loop; and sums of products of rows."""
    time, batch, d, e = b.dim("s"), b.dim(b.pick("b", 3)), b.pick(8, 4, 1), b.pick(8, 5)
    xs = b.arg(time, batch, d)
    w = b.arg(d, e, fill="weight")
    second = b.pick([], [b.arg(time, batch, e)])
    total = b.arg(d, e)
    state = b.arg(batch, e)
    body = b.body(*_types(b, [state, total]), *_rows(b, [xs, *second]), *_types(b, [w]))
    row, weight = 2, 3 + len(second)
    kind = b.any(("project", "sum", "both", "index"))
    x = body.pick(row, body.f("tanh", row))
    p = body("einsum", x, weight, spec="mk,kn->mn")
    following = body.f(b.any(ACTIVATIONS), body.two("add", 0, p)) if kind != "sum" else 0
    if second:
        following = body.two("add", following, 3) if b.flip() else following
    left, right = x, body.pick(following, p, 3 if second else p)
    product = body("einsum", left, right, spec=b.pick("km,kn->mn", "km,kn->nm"))
    if body.shape(product) != body.shape(1):
        product = body("transpose", product, perm=[1, 0])
    sums = body.two(b.pick("add", "add", "sub", "mul"), 1, b.pick(product, body.f("half", product)))
    sums = 1 if kind == "project" else sums
    outs = b.pick([following], [], [p], [product], [x])
    made = scan(b, body, [state, total], [xs, *second], [w], [following, sums, *outs], reverse=b.flip(0.3))
    return _after(b, made, 2)


@family("loops", "carried", "loop", "take-over", "destination", "in-place", "hoist")
def loops(b: Builder) -> Sequence[int]:
    """Loops that swap, copy and reuse what they carry, with counters that things are read at."""
    m, n = b.dim("b"), b.dim("s")
    x, y, z = b.arg(m, n), b.arg(m, n), b.arg(m, n)
    stack = b.arg(b.pick(4, "t"), m, n)
    how = b.any(("fori", "fori", "while"))
    carry = b.pick([x, y], [x], [x, y, z], [x, y, stack])
    rest = [v for v in (z, stack) if v not in carry]
    counter = ((), "int32")
    body = b.body(counter, *_types(b, carry), *_types(b, rest))
    ids = {v: n + 1 for n, v in enumerate([*carry, *rest])}
    stacked = ids[stack]
    row = body("dynamic_index", stacked, body.pick(0, body.f("plus1", 0)), axis=0)
    following = []
    for value in carry:
        own = ids[value]
        if value == stack:
            update = body.pick(row, body.f("half", 1))
            following.append(body("dynamic_update", stacked, update, body.pick(0, body.f("plus1", 0)), axis=0))
            continue
        others = [ids[v] for v in (x, y, z) if v in ids]
        kind = b.any(("swap", "mix", "row", "same", "product", "reduce", "turn", "invariant"))
        mixed = body.any(others)
        if kind == "mix":
            mixed = body.two(b.any(("add", "sub", "mul")), own, mixed)
        elif kind == "row":
            mixed = body.two("add", own, row)
        elif kind == "same":
            mixed = own
        elif kind == "product":
            gram = body("scaled_einsum", own, mixed, spec="mk,nk->mn")
            mixed = body("scaled_einsum", gram, own, spec="mk,kn->mn")
        elif kind == "reduce":
            axis = b.rng.randrange(2)
            mixed = body.two("sub", own, body("reduce", mixed, f="mean", axis=axis, keep=False), lift=[axis])
        elif kind == "invariant":
            last = ids[rest[0]] if rest else mixed
            mixed = body.two("add", own, body("along", last, f="softmax", axis=1)) if body.rank(last) == 2 else own
        following.append(body.f(b.any(ACTIVATIONS), mixed) if kind != "swap" or b.flip(0.3) else mixed)
    program = _program(body, following)
    if how == "while":
        limit = b.arg(dtype="int32", fill="count:3")
        made = b.add("while", limit, *carry, *rest, count=len(carry), body=program, carry=len(carry))
    else:
        made = b.add("fori", *carry, *rest, count=len(carry), body=program, carry=len(carry), start=b.pick(0, 1),
                     trip=b.pick(3, 1, str(n), str(m), 0))  # fmt: skip
    made = made if isinstance(made, tuple) else (made,)
    return b.pick(list(made), [*made, x], [b.two("add", made[0], x), *made], [*made[::-1], b.f("tanh", z)])


@family("branches", "branch", "cond", "control")
def branches(b: Builder) -> Sequence[int]:
    """Branches that return, swap and change what they are given."""
    m, n = b.dim("b"), b.dim("s")
    x, y = b.f("tanh", b.arg(m, n)), b.arg(m, n)
    which = b.pick(b.arg(dtype="bool"), b.arg(dtype="int32", fill="wild:2"))
    names = ["then", "else"] if b.types[which].dtype == bool else ["then", "else", "other"]
    count = b.pick(2, 1)
    bodies = {}
    for name in names:
        body = b.body(*_types(b, [x, y]))
        pool = [0, 1]
        for _ in range(b.rng.randrange(4)):
            kind = b.any(("f", "two", "along", "product"))
            if kind == "f":
                pool.append(body.f(b.any(ACTIVATIONS), b.any(pool)))
            elif kind == "two":
                pool.append(body.two(b.any(("add", "mul", "sub")), b.any(pool), b.any(pool)))
            elif kind == "along":
                pool.append(body("along", b.any(pool), f=b.any(("softmax", "center")), axis=b.pick(1, 0)))
            else:
                gram = body("scaled_einsum", b.any(pool), b.any(pool), spec="mk,nk->mn")
                pool.append(body("scaled_einsum", gram, b.any(pool), spec="mk,kn->mn"))
        bodies[name] = _program(body, [b.any(pool) for _ in range(count)])
    made = b.add("cond", which, x, y, count=count, **bodies)
    made = made if isinstance(made, tuple) else (made,)
    return b.pick(list(made), [b.two("add", made[0], x), *made], [*made, y], [b.f("tanh", made[-1]), x])


@family("gradients", "gradient", "accumulated", "scanned", "recurrence")
def gradients(b: Builder) -> Sequence[int]:
    """Gradients of scans."""
    build = b.any((recurrence, scanned, recurrences))
    inner = Builder(b.rng, b.dtype)
    program = inner.finish(list(build(inner)))
    arguments = [b.arg(*a.dims, dtype=a.dtype, fill=a.fill) for a in program.arguments]
    floats = [n for n, a in enumerate(program.arguments) if a.dtype == "float"]
    if not floats:
        raise Rejected("nothing to differentiate by")
    wrt = sorted(b.rng.sample(floats, b.rng.randint(1, len(floats))))
    made = b.add(
        "grad", *arguments, count=len(wrt), body=program, wrt=wrt, loss=b.any(("sum", "mean", "square", "weighted"))
    )
    return list(made) if isinstance(made, tuple) else [made]


__all__ = ["Step"]


@family("steps", "shared-kernel", "loop", "reduce")
def steps(b: Builder) -> Sequence[int]:
    """Loops whose bodies differ in numbers alone, or nearly; what one leaves may be read late."""
    x = b.arg(*((b.dim("b"), b.dim("s")) if b.flip(0.8) else ()))
    first, second = b.any(("mul", "add", "max", "sub", "rsub")), b.any(("add", "div1", "mul", "sub"))
    function, axis = b.any(ACTIVATIONS), b.pick(0, 1, None) if b.rank(x) else None
    made = [x]
    for _ in range(b.pick(6, 4, 5, 9)):
        body = b.body(((), "int32"), *_types(b, [x]))
        y = body("number", 1, f=first if b.flip(0.9) else "mul", number=str(b.any(NUMBERS)))
        y = body.f(function if b.flip(0.9) else "tanh", y)
        y = body("number", y, f=second, number=str(b.pick(0.5, b.any(NUMBERS))))
        if axis is not None:
            y = body.two("sub", y, body("reduce", y, f="max", axis=axis if b.flip(0.9) else 1 - axis, keep=True))
        y = body.f("tanh", y)
        made.append(b.add("fori", made[-1], count=1, body=_program(body, [y]), carry=1, start=0, trip=b.pick(2, 1, 3)))
    return [made[-1], *b.rng.sample(made[1:-1], b.pick(1, 0, 2))]
