# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bounds of expressions of limited symbols hold at all values of these, and name none of them."""

from __future__ import annotations

import itertools

import pytest

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation
from shlo_disc.shape_dialect.symbolic.limits import NoLimit


def facts() -> Facts:
    """n, m >= 1; `a` counts some of n, `b` some of a."""
    known = Facts()
    for name in ("n", "m"):
        known.declare(name, min=1)
    known.limit("a", Expr.symbol("n"))
    known.limit("b", Expr.symbol("a"))
    return known


BOUNDED = [
    "a", "b", "4*a", "a*b", "m*a*a", "n - a", "n*m - a*m", "2*n - a - b", "64*floordiv(4*a + 63, 64)", "max(a - 3, 0)",
    "min(a, m)", "mod(a, 8)", "floordiv(a, m)", "mod(a*m, n)", "max(1, n - b)*m", "a - b", "floordiv(n - a, 2)*b",
]  # fmt: skip


@pytest.mark.parametrize("text", BOUNDED)
def test_largest_is_a_bound(text: str) -> None:
    size, known = Expr.parse(text), facts()
    largest, magnitude = known.limits.largest(size), known.limits.magnitude(size)
    assert largest.symbols() | magnitude.symbols() <= {"n", "m"}
    for n, m in itertools.product(range(1, 9), (1, 2, 5)):
        for a in range(n + 1):
            for b in range(a + 1):
                value = size.evaluate({"n": n, "m": m, "a": a, "b": b})
                assert value <= largest.evaluate({"n": n, "m": m}), (n, m, a, b)
                assert abs(value) <= magnitude.evaluate({"n": n, "m": m}), (n, m, a, b)


def test_an_expression_of_other_symbols_is_its_own_bound() -> None:
    size = Expr.parse("2*n - m")
    assert facts().limits.largest(size) == size


@pytest.mark.parametrize("text", ["floordiv(n, a)", "mod(n, b)", "a*min(a - 9, 0)"])
def test_without_a_bound(text: str) -> None:
    with pytest.raises(NoLimit):
        facts().limits.largest(Expr.parse(text))


def test_limits_are_facts() -> None:
    known = facts()
    assert known.prove(Relation.parse("a <= n")) is True
    assert known.prove(Relation.parse("b <= n")) is True
    assert known.prove(Relation.parse("a >= 0")) is True
    assert known.prove(Relation.parse("a >= 1")) is None
    assert known.copy().limits.largest(Expr.symbol("b")) == Expr.symbol("n")


def test_a_limit_of_itself() -> None:
    known = facts()
    with pytest.raises(ProgramError, match="limit of 'c' depends on it"):
        known.limit("c", Expr.parse("c + 1"))
