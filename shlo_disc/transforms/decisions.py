# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decisions that the compiler makes by choice, and what has to hold before it does.

A *pattern* is a rewrite that helps where it applies and can always be left out: a fusion, a reuse of a buffer, a loop
taken for a recurrence. What has to hold for it stands in one place, as named conditions of the pattern. All of them
must be proved: a condition answers False where it does not know.

A *decision* is one application of a pattern. Decisions are counted in the order in which they are made, so that a limit
finds the one that a fault comes from (as LLVM's `-opt-bisect-limit` does), and one of them can be left out.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from shlo_disc.errors import CompilerError, DiscError
from shlo_disc.shape_dialect.compile_state import current_compile
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.facts import Relation, listening
from shlo_disc.transforms.cost import Choice

Candidate = TypeVar("Candidate")
Subject = TypeVar("Subject")

LOGGER = logging.getLogger("shlo_disc")

PATTERNS: dict[str, Pattern] = {}
"""All patterns by name."""

OUTCOMES: Counter[tuple[str, bool]] = Counter()
"""Counts of the times that each condition, "pattern.condition", held or did not. The fuzzer's coverage is read here."""

TURNED_OFF: set[str] = set()
"""Conditions that are taken to hold unseen, "pattern.condition": for tests that have to find out."""


def _none(candidate: Any) -> Iterable[Relation]:
    return ()


class Condition(NamedTuple):
    """One precondition: its name, the name with its pattern's before it, what it says, and its test.

    missing: the relations of sizes that would make it hold for a candidate, besides those that the test asks for.
    """

    name: str
    full_name: str
    text: str
    holds: Callable[..., bool]
    missing: Callable[..., Iterable[Relation]] = _none


class Pattern(Generic[Candidate]):
    """A kind of rewrite. `name` is in kebab case, `text` says what it does in half a sentence."""

    def __init__(self, name: str, text: str):
        self.name = name
        self.text = text
        self.conditions: list[Condition] = []
        PATTERNS[name] = self

    def requires(
        self, text: str, missing: Callable[[Candidate], Iterable[Relation]] = _none
    ) -> Callable[[Callable[[Candidate], bool]], Callable[[Candidate], bool]]:
        """Makes a function of a candidate the next condition, which bears the function's name without underscores."""

        def add(holds: Callable[[Candidate], bool]) -> Callable[[Candidate], bool]:
            name = holds.__name__.strip("_").replace("_", "-")
            if any(c.name == name for c in self.conditions):
                raise ValueError(f"the pattern {self.name} has two conditions {name}")
            self.conditions.append(Condition(name, f"{self.name}.{name}", text, holds, missing))
            return holds

        return add

    def holds(self, candidate: Candidate) -> bool:
        """Tells whether all conditions hold, asked in their order up to the first that does not."""
        for condition in self.conditions:
            if condition.full_name in TURNED_OFF:
                continue
            holds = bool(condition.holds(candidate))
            OUTCOMES[condition.full_name, holds] += 1
            if not holds:
                record = current_record()
                if record is not None:
                    record.refuse(self, condition, candidate)
                return False
        return True

    def match(self, build: Callable[[Subject], Candidate | None], subject: Subject) -> Candidate | None:
        """The candidate that `build` makes of `subject`, if it makes one and all conditions hold.

        What raises does not match; with `Options(strict=True)` it is a CompilerError.
        """
        record = current_record()
        if record is not None:
            record.begin()
        try:
            candidate = build(subject)
            OUTCOMES[self.name, candidate is not None] += 1
            return candidate if candidate is not None and self.holds(candidate) else None
        except DiscError:
            raise
        except Exception as error:
            if current_compile().is_strict:
                raise CompilerError(f"the pattern {self.name} failed: {type(error).__name__}: {error}") from error
            LOGGER.warning("the pattern %s failed and is not used here: %s: %s", self.name, type(error).__name__, error)
            return None


@dataclass(frozen=True)
class Decision:
    """One decision that was made: its number, from 0 on, the pattern's name and where the program says it.

    choice: what it saves, where that is known and somebody asks for it.
    """

    number: int
    pattern: str
    place: ir.Location | None
    choice: Choice | None = None

    @property
    def location(self) -> str:
        """The place as MLIR prints it, "" where none is known."""
        return "" if self.place is None else str(self.place)


@dataclass
class Decisions:
    """Counts decisions in the order in which they come up. None is made past `limit` and at the numbers `skipped`."""

    limit: int | None = None
    skipped: frozenset[int] = frozenset()
    made: list[Decision] = field(default_factory=list)
    asked: int = 0

    @property
    def taken(self) -> int:
        """The number of decisions that were made."""
        return len(self.made)

    def take(
        self,
        pattern: str = "fusion",
        op: ir.Operation | ir.OpView | None = None,
        choice: Callable[[], Choice] | None = None,
    ) -> bool:
        """Tells whether one more may be made; it is counted. `choice`: what it chooses between."""
        if self.limit is not None and self.asked >= self.limit:
            return False
        number = self.asked
        self.asked += 1
        if number in self.skipped:
            return False
        record = current_record()
        costs = None if record is None or choice is None else choice()
        self.made.append(Decision(number, pattern, None if op is None else op.location, costs))
        if record is not None:
            record.make(self.made[-1])
        return True


class Refusal(NamedTuple):
    """A condition that did not hold, where, and the relations of sizes that were missing, if it was for them."""

    pattern: str
    condition: str
    place: ir.Location | None
    missing: tuple[Relation, ...]


@dataclass
class Record:
    """The reasons for which patterns were taken and refused, for those who ask.

    proofs: for each decision, the relations that it has stood on. open: those that were asked for in vain where none
    was proved, so that it was done in a way that serves both cases.
    """

    made: list[Decision] = field(default_factory=list)
    proofs: list[list[Relation]] = field(default_factory=list)
    open: list[list[Relation]] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    _asked: dict[Relation, bool | None] = field(default_factory=dict)

    def ask(self, relation: Relation, answer: bool | None) -> None:
        """A question for a fact was answered."""
        if relation.symbols():
            self._asked[relation] = answer

    def begin(self) -> None:
        """A pattern is tried; what was asked after the last decision was asked for its sake."""
        if self.proofs:
            self.proofs[-1] += self._proved()
            self.open[-1] += [] if self.proofs[-1] else self._unproved()
        self._asked.clear()

    def make(self, decision: Decision) -> None:
        """A decision is made."""
        self.made.append(decision)
        self.proofs.append(self._proved())
        self.open.append([])
        self._asked.clear()

    def refuse(self, pattern: Pattern[Any], condition: Condition, candidate: object) -> None:
        """A condition does not hold."""
        subjects = (getattr(candidate, name, None) for name in ("op", "call", "loop"))
        op = next((subject for subject in subjects if isinstance(subject, ir.Operation | ir.OpView)), None)
        place = None if op is None else op.location
        lacking = dict.fromkeys([*self._unproved(), *condition.missing(candidate)])
        self.refusals.append(Refusal(pattern.name, condition.name, place, tuple(lacking)))
        self._asked.clear()

    def _proved(self) -> list[Relation]:
        return [relation for relation, answer in self._asked.items() if answer]

    def _unproved(self) -> list[Relation]:
        return [relation for relation, answer in self._asked.items() if answer is None]


def current_record() -> Record | None:
    """The record that is made in this thread, inside of `recording`."""
    found = current_compile().listener
    return found if isinstance(found, Record) else None


@contextmanager
def recording() -> Iterator[Record]:
    """Inside, what patterns of this thread are taken and refused for is noted."""
    record = Record()
    with listening(record):
        yield record


def conditions_seen_one_way() -> Iterable[tuple[str, bool]]:
    """The conditions that were never seen to hold, or never seen not to: (name, the outcome that is missing)."""
    for pattern in PATTERNS.values():
        for condition in pattern.conditions:
            name = condition.full_name
            yield from ((name, outcome) for outcome in (True, False) if not OUTCOMES[name, outcome])
