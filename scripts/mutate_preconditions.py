# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mutation testing of the patterns' preconditions: is each of them missed when it is gone?

Each condition is taken to hold unseen, in turn, while programs of its pattern's families run, and the tests that are
named with --tests. A condition whose absence nothing notices is not needed, or not tested.

    python scripts/mutate_preconditions.py --programs 500 --patterns attention,epilogue
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import shlo_disc.compiler  # noqa: F401  # fills the table of patterns
from shlo_disc.transforms.decisions import PATTERNS
from tests.fuzz.near.case import COMPOSITE
from tests.fuzz.near.families import FAMILIES
from tests.fuzz.near.worker import Seed, Setup, Worker

FOUND = ("mismatch", "nan", "type", "error", "signal", "timeout")

_TURNED_OFF = (
    "import sys, pytest; from shlo_disc.transforms.decisions import TURNED_OFF; TURNED_OFF.add(sys.argv[1]);"
    " sys.exit(pytest.main(['-x', '-q', '-p', 'no:cacheprovider', *sys.argv[2:]]))"
)


@dataclass(frozen=True)
class Outcome:
    """What noticed that a condition was gone; "" for nothing."""

    condition: str
    by: str
    programs: int
    seconds: float


def families_of(pattern: str) -> list[str]:
    """The families whose programs are for a pattern; all of them where none says so."""
    words = set(pattern.split("-"))
    found = [f.name for f in FAMILIES.values() if any(set(p.split("-")) & words for p in f.patterns)]
    return found or [*FAMILIES, COMPOSITE]


def conditions(patterns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The name of each pattern, and of each of its conditions with the pattern's before it."""
    for pattern in PATTERNS.values():
        if not patterns or pattern.name in patterns:
            yield from ((pattern.name, f"{pattern.name}.{c.name}") for c in pattern.conditions)


def examine(pattern: str, condition: str, programs: int, tests: Sequence[str]) -> Outcome:
    """Take one condition to hold, and see who notices."""
    start = time.monotonic()
    if tests:
        command = [sys.executable, "-c", _TURNED_OFF, condition, *tests]
        if subprocess.run(command, capture_output=True, check=False).returncode:  # noqa: S603  # this interpreter
            return Outcome(condition, "a test", 0, time.monotonic() - start)
    worker = Worker(Setup(xla_every=10**9, plain_every=10**9, turned_off=(condition,), gradients=0.3))
    families = families_of(pattern)
    try:
        for number in range(programs):
            family = families[number % len(families)]
            finding = worker.examine(Seed(900_000 + number, family, "compile")).report.finding
            if finding is not None and finding.kind in FOUND:
                by = f"{family} {900_000 + number}: {finding.kind}"
                return Outcome(condition, by, number + 1, time.monotonic() - start)
        return Outcome(condition, "", programs, time.monotonic() - start)
    finally:
        worker.close()


def main() -> int:
    """Exit status 1 when a condition is not missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=500, help="the most programs for a condition")
    parser.add_argument("--patterns", type=lambda t: t.split(","), default=[], help="only these")
    parser.add_argument("--tests", nargs="*", default=[], help="tests that are run first, as pytest takes them")
    parser.add_argument("--list", action="store_true", help="print the conditions with their families and leave")
    options = parser.parse_args()
    missed = total = 0
    for pattern, condition in conditions(options.patterns):
        if options.list:
            print(f"{condition}: {', '.join(families_of(pattern))}")
            continue
        outcome = examine(pattern, condition, options.programs, options.tests)
        total += 1
        missed += not outcome.by
        said = f"found by {outcome.by} ({outcome.programs} programs)" if outcome.by else "NOT FOUND"
        print(f"{condition}: {said}, {outcome.seconds:.0f} s", flush=True)
    print(f"{total - missed} of {total} conditions are missed when they are gone")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
