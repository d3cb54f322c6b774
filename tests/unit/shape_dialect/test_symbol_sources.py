# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Symbols that are solved from the sizes of arguments."""

from __future__ import annotations

import random

import pytest
from jax import export
from jax._src.export import shape_poly

from shlo_disc.runtime.size_steps import evaluate
from shlo_disc.shape_dialect.dialect.symbol_sources import SymbolSource, steps_of, symbol_sources
from shlo_disc.shape_dialect.symbolic.expr import Expr

SHAPES: dict[str, tuple[str, ...]] = {
    "prefill": ("s; 16", "s + p; 16"),
    "cache first": ("s + p", "s"),
    "difference": ("p - s", "s"),
    "multiple": ("2*b + 1", "b + c"),
    "quotient of a solved one": ("b", "floordiv(b, 2) + c"),
    "remainder of a solved one": ("c + mod(b, 3)", "b"),
    "product of solved ones": ("b", "s", "b*s + 3*c"),
    "maximum of solved ones": ("b; s", "max(b, s) + c; min(b, s) + d"),
    "chain": ("a + b", "b + c", "c + d", "d"),
    "only checked": ("b", "2*b + 1", "floordiv(b, 2)"),
    "sum and difference": ("a + b", "a - b"),
    "three of three": ("a + b + c", "a + b", "b + c"),
    "two of two": ("3*a + 2*b", "2*a + 3*b"),
    "with a remainder": ("a + b + mod(c, 3)", "c", "a - b"),
    "more than are needed": ("a + b", "a - b", "a + 2*b"),
}
UNSOLVED = {
    "product": (("a*b", "a"), {"b"}),
    "the same twice": (("a + b", "2*a + 2*b"), {"a", "b"}),
    "quotient": (("floordiv(s, 2)",), {"s"}),
    "one of two": (("s", "a + b"), {"a", "b"}),
}


def shapes_of(texts: tuple[str, ...]) -> list[tuple[Expr, ...]]:
    return [tuple(Expr.parse(dim) for dim in text.split(";")) for text in texts]


def solve(sources: tuple[SymbolSource, ...], sizes: list[tuple[int, ...]]) -> dict[str, int]:
    """The symbols' values, as a call solves them."""
    values: dict[str, int] = {}
    names = [source.name for source in sources]
    for source in sources:
        steps = steps_of(source.less, names) if source.less.terms else []
        rest = source.offset + evaluate(steps, sizes, list(values.values()))
        values[source.name], remainder = divmod(sizes[source.argument][source.dim] - rest, source.scale)
        assert remainder == 0
    return values


@pytest.mark.parametrize("name", SHAPES)
def test_solved_from_sizes(name: str) -> None:
    shapes = shapes_of(SHAPES[name])
    sources = symbol_sources(shapes)
    names = {symbol for dims in shapes for dim in dims for symbol in dim.symbols()}
    assert {source.name for source in sources} == names
    rng = random.Random(0)
    for _ in range(50):
        values = {symbol: rng.choice((1, 2, 3, 7, 16, 129)) for symbol in sorted(names)}
        sizes = [tuple(dim.evaluate(values) for dim in dims) for dims in shapes]
        assert solve(sources, sizes) == values


@pytest.mark.parametrize("name", UNSOLVED)
def test_what_sizes_leave_open(name: str) -> None:
    texts, names = UNSOLVED[name]
    shapes = shapes_of(texts)
    every = {symbol for dims in shapes for dim in dims for symbol in dim.symbols()}
    assert every - {source.name for source in symbol_sources(shapes)} == names


def test_all_that_jax_solves_is_solved() -> None:
    """Random systems: what `jax.export` solves is solved here."""
    rng = random.Random(1)
    solved_by_jax = 0
    for _ in range(150):
        texts = [_random_size(rng) for _ in range(rng.choice((1, 2, 3, 4)))]
        shapes = [(Expr.parse(text),) for text in texts]
        names = {symbol for (dim,) in shapes for symbol in dim.symbols()}
        equations = [
            shape_poly._DimEquation(aval_dim_expr=dim, dim_name=f"x{i}")
            for i, dim in enumerate(export.symbolic_shape(", ".join(texts)))
            if not isinstance(dim, int)
        ]
        try:
            shape_poly._solve_dim_equations(equations, [])
        except ValueError:
            continue
        solved_by_jax += 1
        assert {source.name for source in symbol_sources(shapes)} == names, texts
    assert solved_by_jax > 20


def _random_size(rng: random.Random) -> str:
    names = rng.sample("abcd", rng.choice((1, 1, 2, 3)))
    terms = [f"{rng.choice((1, 1, 2, 3))}*{name}" for name in names]
    if rng.random() < 0.3:
        a, b = rng.choice("abcd"), rng.choice("abcd")
        terms.append(rng.choice((f"floordiv({a}, 2)", f"mod({a}, 3)", f"{a}*{b}", f"max({a}, {b})")))
    return " + ".join([*terms, str(rng.choice((0, 0, 1, 5)))])
