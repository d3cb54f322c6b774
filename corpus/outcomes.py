# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of outcomes, and what is worse in one than in another."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

RIGHT = "right"
_MOST_NOTE = 160


@dataclass(frozen=True, order=True)
class Outcome:
    """The outcome of an entry.

    outcome: "right", "recovered" after an internal error, "wrong", "refused", "error", "crash", "timeout" or "reference
    fails". programs: compiled for all
    sizes together. kernels: of the last one. seconds, reference_seconds: of the processor, all sizes together, compiles
    included, by us and by `jax.jit` or eager. note: what is wrong.
    """

    client: str
    program: str
    outcome: str
    programs: int
    kernels: int
    seconds: float
    reference_seconds: float
    note: str

    @property
    def key(self) -> tuple[str, str]:
        """The client and the program that identify the entry."""
        return self.client, self.program

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Outcome:
        """From what a table or a trial has."""
        whole = {"programs": int(row["programs"]), "kernels": int(row["kernels"])}
        times = {name: float(row[name]) for name in ("seconds", "reference_seconds")}
        return cls(**{**row, **whole, **times})


def refusal(outcome: str, error: str) -> dict[str, Any]:
    """The fields of an outcome that is not right, but for the client's and the program's names."""
    return {
        "outcome": outcome,
        "note": shortened(error),
        "programs": 0,
        "kernels": 0,
        "seconds": 0.0,
        "reference_seconds": 0.0,
    }


def shortened(text: str) -> str:
    """A text as a note of one line."""
    return " ".join(text.split())[:_MOST_NOTE]


def read_table(path: Path) -> list[Outcome]:
    """The outcomes of a table; none where there is no such file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [Outcome.from_row(row) for row in csv.DictReader(file)]


def table_text(outcomes: Iterable[Outcome]) -> str:
    """A table in the order of clients and programs; seconds have two digits."""
    text = io.StringIO()
    names = [field.name for field in fields(Outcome)]
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for outcome in sorted(outcomes):
        writer.writerow([_cell(getattr(outcome, name)) for name in names])
    return text.getvalue()


def _cell(value: Any) -> Any:
    return f"{value:.2g}" if isinstance(value, float) else value


def differences(known: Sequence[Outcome], found: Sequence[Outcome]) -> tuple[list[str], list[str]]:
    """The differences of the outcomes that were found from those that are known, and the regressions among them.

    Seconds do not count. An entry that was not run is no difference.
    """
    before = {outcome.key: outcome for outcome in known}
    changed, worse = [], []
    for outcome in sorted(found):
        old = before.get(outcome.key)
        if old is None:
            changed.append(f"{_name(outcome)}: new, {_said(outcome)}")
            continue
        if (old.outcome, old.programs, old.kernels) != (outcome.outcome, outcome.programs, outcome.kernels):
            changed.append(f"{_name(outcome)}: {_said(old)} -> {_said(outcome)}")
        if _is_worse(old, outcome):
            worse.append(changed[-1])
    return changed, worse


def _is_worse(old: Outcome, new: Outcome) -> bool:
    if old.outcome == RIGHT:
        return new.outcome != RIGHT or new.programs > old.programs
    return new.outcome == "wrong" and old.outcome != "wrong"


def _name(outcome: Outcome) -> str:
    return f"{outcome.client} {outcome.program}"


def _said(outcome: Outcome) -> str:
    counts = f"{outcome.programs} programs, {outcome.kernels} kernels" if outcome.outcome == RIGHT else outcome.note
    return f"{outcome.outcome} ({counts})"


__all__ = ["RIGHT", "Outcome", "differences", "read_table", "refusal", "table_text"]
