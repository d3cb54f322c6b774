# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that facts admit, and expressions at them."""

from __future__ import annotations

import pytest

from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation

COUNT = 64
DIVISORS = ["floordiv(h, k)", "min(h, 7)", "h - k", "mod(h, k)", "h - 2*k + 3", "k - 4", "max(k - 5, 0)"]


def facts_with(*relations: str) -> Facts:
    facts = Facts()
    facts.declare("h", 1)
    facts.declare("k", 1, 4096)
    facts.declare("m", 0, None, divisor=6, residue=2)
    for relation in relations:
        facts.add(Relation.parse(relation))
    return facts


@pytest.mark.parametrize(
    "relations",
    [(), ("h >= 3*k + 1",), ("h == 2*k",), ("h - m == 0",), ("mod(h, 8) == 0", "h <= 64"), ("floordiv(h, k) >= 2",)],
    ids=str,
)
def test_samples_satisfy_all_facts(relations: tuple[str, ...]) -> None:
    facts = facts_with(*relations)
    found = list(facts.samples(["h", "k", "m"], COUNT))
    assert len(found) >= 8 and found == list(facts.samples(["h", "k", "m"], COUNT))
    for sizes in found:
        assert sizes["h"] >= 1 and 1 <= sizes["k"] <= 4096 and sizes["m"] % 6 == 2
        assert all(Relation.parse(relation).evaluate(sizes) for relation in relations)


@pytest.mark.parametrize("divisor", DIVISORS)
@pytest.mark.parametrize("kind", ["floordiv", "mod"])
def test_values_are_those_where_no_divisor_is_zero(divisor: str, kind: str) -> None:
    e = Expr.parse(f"{kind}(h + k, {divisor}) + floordiv(k, {divisor})")
    facts = facts_with()
    by = [Expr.parse(divisor).evaluate(sizes) for sizes in facts.samples(["h", "k"], COUNT)]
    assert len(list(facts.sampled_values(e, COUNT))) == len([value for value in by if value != 0])


def test_facts_without_a_solution_nearby_have_no_samples() -> None:
    facts = facts_with("h*h == 2*k*k + 1", "h >= 5000")
    assert not list(facts.samples(["h", "k"], COUNT))


def test_sizes_that_are_written_differently_are_equal() -> None:
    facts = facts_with("mod(h, 4) == 0", "h >= k")
    for a, b in (
        ("h + max(0, h - 1)", "2*h - 1"),
        ("4*floordiv(h, 4)", "h"),
        ("min(h, 8) + max(h - 8, 0)", "h"),
        ("min(h, k) + 1", "k + 1"),
    ):
        assert facts.equal(Expr.parse(a), Expr.parse(b)), (a, b)
    assert not facts.equal(Expr.symbol("h"), Expr.symbol("k")) and facts.equal(4, Expr.const(4))
