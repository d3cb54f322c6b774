# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of which a part is changed."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.near.builder import Builder
from tests.fuzz.near.families.family import family
from tests.fuzz.near.families.loops import _program, _types

HOW = ("set", "add", "max", "mul", "min")


def _update(b: Builder, x: int, source: int) -> int:
    """One part of `x` changed, by rows of `source`, which has its shape."""
    axis = b.pick(0, 1)
    other = str(b.shape(x)[1 - axis])
    kind = b.any(("dynamic", "row", "cut", "scatter", "scatter", "slice of itself"))
    if kind == "row":
        return int(
            b(
                "write",
                x,
                b("index", source, axis=axis, at=b.pick(0, -1)),
                axis=axis,
                at=b.pick(0, -1),
                how=b.pick(*HOW),
            )
        )
    if kind == "cut":
        return int(
            b("write_cut", x, source, axis=axis, cut=b.pick([1, None, 1], [0, 2, 1], [0, None, 2]), how=b.pick(*HOW))
        )
    if kind == "scatter":
        count = b.dim("t")
        at = b.arg(count, dtype="int32", fill=f"{b.pick('index', 'wild')}:{b.shape(x)[axis]}")
        sizes = [count, other] if axis == 0 else [other, count]
        rows = b.pick(b.arg(*sizes), b("take", source, at, axis=axis, mode="clip"))
        return int(b("scatter", x, at, rows, axis=axis, how=b.pick("add", "set", "max"), mode=b.pick("drop", "clip")))
    place = b.arg(dtype="int32", fill=f"wild:{b.shape(x)[axis]}")
    part = b(
        "dynamic_index", b.pick(source, x), b.pick(place, b.f("plus1", place)), axis=axis, keep=b.pick(True, False)
    )
    part = b.f(b.any(("half", "tanh")), part) if b.flip() else part
    return int(b("dynamic_update", x, part, place, axis=axis))


@family("updates", "in-place", "update", "scatter", "reuse")
def updates(b: Builder) -> Sequence[int]:
    """Updates, one after the other, of an argument or a computed array that is read before and after."""
    x = b.arg(b.dim("b"), b.dim("s"))
    source = b.pick(b.arg(*map(str, b.shape(x))), x)
    y = b.pick(b.f("tanh", x), x, b("full", x, value=0.0))
    kept = [y]
    for _ in range(b.pick(1, 2, 3)):
        y = _update(b, y, b.pick(source, b.any(kept)))
        kept.append(y)
        if b.flip(0.3):
            y = b.f("half", y)
    before = b.any(kept)
    return b.pick([y], [y, before], [y, b("reduce", before, f="sum", axis=0, keep=False)], [b.two("add", y, before)],
                  [y, b.two("sub", x, y)])  # fmt: skip


@family("updates-in-loops", "in-place", "update", "take-over", "destination", "scatter")
def updates_in_loops(b: Builder) -> Sequence[int]:
    """Loops that write rows of what they carry, at places that are the counter, or data."""
    m, n = b.dim("s"), b.dim("b")
    x, y = b.arg(m, n), b.arg(m, n)
    start = b.pick(b("full", x, value=0.0), b.f("tanh", x), x)
    carry = b.pick([start], [start, y])
    rest = [x, b.arg(dtype="int32", fill=f"index:{m}")]
    body = b.body(((), "int32"), *_types(b, carry), *_types(b, rest))
    counter, own, source, place = 0, 1, len(carry) + 1, len(carry) + 2
    read = body("dynamic_index", b.pick(source, own), body.pick(counter, place), axis=0)
    previous = body("dynamic_index", own, body("unary", counter, f=b.pick("identity", "plus1", "one_minus")), axis=0)
    value = body.two(b.any(("add", "mul", "sub")), read, previous) if b.flip(0.7) else body.f("tanh", read)
    value = body.f("tanh", value)
    kind = b.pick("update", "add at", "cut", "two")
    if kind == "add at":
        at = body("expand", body.pick(counter, place), axis=0)
        made = body("scatter", own, at, body("expand", value, axis=0), axis=0, how=b.pick("add", "set"), mode="drop")
    elif kind == "cut":
        made = body("write_cut", own, source, axis=0, cut=[1, None, 1], how=b.pick("add", "set"))
    else:
        made = body("dynamic_update", own, value, body.pick(counter, place), axis=0)
        if kind == "two":
            made = body("dynamic_update", made, body.f("half", value), body.pick(place, counter), axis=0)
    following = [made]
    if len(carry) == 2:
        following.append(b.pick(body.two("add", 2, own), body.f("half", made), own, 2))
    trip = b.pick(str(m), 2, 1)
    out = b.add("fori", *carry, *rest, count=len(carry), body=_program(body, following), carry=len(carry),
                start=b.pick(0, 1), trip=trip)  # fmt: skip
    out = out if isinstance(out, tuple) else (out,)
    return b.pick(list(out), [*out, x], [b.two("sub", out[0], start), *out], [*out, start])
