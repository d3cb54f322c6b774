# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of 2 to 40 pieces, drawn on a pool of values."""

from __future__ import annotations

import random

from tests.fuzz.near.builder import Builder
from tests.fuzz.near.program import PIECES, SYMBOLS, Program, Rejected

WEIGHTS = {"binary": 8, "unary": 4, "reduce": 6, "einsum": 5, "along": 4, "transpose": 2, "outer": 2, "cumulative": 1,
           "slice": 2, "concat": 1, "merge": 1, "split": 1, "broadcast": 2, "mask": 1, "where": 2, "write": 1,
           "scatter": 1, "take": 1, "index": 1}  # fmt: skip
"""Relative frequency of each piece; 0.6 for others."""


def composite(rng: random.Random, dtype: str = "float32", length: int | None = None, fragments: bool = True) -> Program:
    """A random program."""
    b = Builder(rng, dtype)
    symbols = rng.sample(SYMBOLS, rng.choice((1, 2, 2, 2, 3)))
    sizes = [*symbols, *symbols, *symbols, rng.choice((1, 4, 8, 16, 17))]
    for _ in range(rng.choice((1, 2, 2, 3))):
        rank = rng.choice((2, 2, 2, 2, 3, 1))
        b.arg(*(rng.choice(sizes) for _ in range(rank)), fill=rng.choice(("normal", "normal", "ints", "positive")))
    names = [n for n, p in PIECES.items() if p.suggest is not None]
    weights = [WEIGHTS.get(n, 0.6) for n in names]
    count = length or rng.choice((2, 3, 3, 4, 4, 5, 5, 6, 6, 8, 8, 10, 12, 16, 24, 40))
    tries = 0
    while len(b.steps) < count and tries < 20 * count:
        tries += 1
        try:
            if fragments and rng.random() < 0.06:
                _fragment(b)
            else:
                PIECES[rng.choices(names, weights)[0]].suggest(b)  # type: ignore[misc]
        except Rejected:
            continue
    results = b.leaves()[-4:] or [a.id for a in b.arguments[:1]]
    more = [i for s in b.steps for i in s.outputs]
    results += rng.sample(more, min(len(more), rng.choice((0, 0, 0, 1, 2))))
    return b.finish(list(dict.fromkeys(results)))


def _fragment(b: Builder) -> None:
    """A program of a family in the middle of this one."""
    from tests.fuzz.near.families import FAMILIES

    family = b.any(list(FAMILIES.values()))
    b.reuse = 0.7
    try:
        family.build(b)
    finally:
        b.reuse = 0.0
