# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The contents of a record of decisions: the facts that were asked for, and for whose sake."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation, listening
from shlo_disc.transforms.decisions import PATTERNS, Decisions, Pattern, recording


def relation(text: str) -> Relation:
    return Relation.parse(text)


@pytest.fixture
def facts() -> Facts:
    found = Facts()
    found.declare("s", 1, 48)
    return found


@pytest.fixture
def pattern(facts: Facts) -> Iterator[Pattern[str]]:
    """Holds for the text of a relation that is proved."""
    made = Pattern[str]("recorded", "something is done")

    @made.requires("the relation is proved")
    def _is_proved(text: str) -> bool:
        return facts.prove(relation(text)) is True

    yield made
    del PATTERNS["recorded"]


def test_proofs_and_what_was_missing(pattern: Pattern[str], facts: Facts) -> None:
    decisions = Decisions()
    with recording() as record:
        for text in ("s >= 1", "mod(s, 2) == 0", "s >= 49", "s <= 50"):
            if pattern.match(lambda found: found, text):
                assert decisions.take(pattern.name)
                facts.prove(relation("s <= 99"))  # on the way of doing it
    assert [d.number for d in record.made] == [0, 1] == [d.number for d in decisions.made]
    assert [[str(r) for r in proofs] for proofs in record.proofs] == [["s >= 1", "s <= 99"], ["s <= 50"]]
    assert [(r.pattern, r.condition, r.place) for r in record.refusals] == [("recorded", "is-proved", None)] * 2
    assert [[str(r) for r in refusal.missing] for refusal in record.refusals] == [["mod(s, 2) == 0"], []]  # or untrue


def test_what_a_decision_asked_for_in_vain(pattern: Pattern[str], facts: Facts) -> None:
    decisions = Decisions()
    with recording() as record:
        for text in ("mod(s, 2) == 0", "s <= 9"):
            assert decisions.take(pattern.name)
            facts.prove(relation(text))
            record.begin()
        facts.prove(relation("s >= 1"))
        assert decisions.take(pattern.name)
        facts.prove(relation("s <= 9"))
        record.begin()
    assert [[str(r) for r in relations] for relations in record.open] == [["mod(s, 2) == 0"], ["s <= 9"], []]


def test_nothing_is_noted_outside(pattern: Pattern[str], facts: Facts) -> None:
    with recording() as record:
        pass
    assert pattern.match(lambda found: found, "mod(s, 2) == 0") is None
    assert not record.refusals and not record.made


def test_listeners_hear_answers_that_are_remembered(facts: Facts) -> None:
    heard: list[tuple[str, bool | None]] = []

    class Hearing:
        def ask(self, relation: Relation, answer: bool | None) -> None:
            heard.append((str(relation), answer))

    with listening(Hearing()):
        for _ in range(2):
            facts.prove(relation("s <= 48"))
            facts.prove(relation("s >= 49"))
    facts.prove(relation("s <= 47"))
    assert heard == [("s <= 48", True), ("s >= 49", False)] * 2
