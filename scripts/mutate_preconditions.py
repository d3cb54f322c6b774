# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mutation testing of the patterns' preconditions: is each of them missed when it is gone?

Each condition is taken to hold unseen, in turn, while programs of its pattern's families run in which it does not hold
(without it all others compile to the same), and then the unit tests that name the pattern, and those of --tests. A
condition whose absence nothing notices is not needed, or not tested.

    python scripts/mutate_preconditions.py --programs 500 --patterns attention,epilogue
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import shlo_disc.driver.compiler  # noqa: F401  # fills the table of patterns
from shlo_disc.transforms.decisions import PATTERNS
from tests.fuzz.near.case import COMPOSITE
from tests.fuzz.near.families import FAMILIES
from tests.fuzz.near.worker import Seed, Setup, Worker

FOUND = ("mismatch", "nan", "type", "error", "refused", "signal", "timeout")

ROOT = Path(__file__).resolve().parent.parent

TESTS_LIMIT = 300.0
"""Seconds for the unit tests of a pattern: a condition without which they do not end is missed."""

FIRST = 900_000
"""The first seed."""


_TURNED_OFF = (
    "import sys, pytest; from shlo_disc.transforms.decisions import TURNED_OFF; TURNED_OFF.add(sys.argv[1]);"
    " sys.exit(pytest.main(['-x', '-q', '-p', 'no:cacheprovider', *sys.argv[2:]]))"
)


@dataclass(frozen=True)
class Outcome:
    """The check that noticed the missing condition; "" for none. `tried`: the programs in which it had not held."""

    by: str
    tried: int
    looked_at: int
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


def tests_of(pattern: str) -> list[str]:
    """The unit tests of transforms and checkers that name a pattern, or one of its conditions."""
    files = (path for folder in ("transforms", "verify") for path in (ROOT / "tests/unit" / folder).glob("test_*.py"))
    return sorted(str(path) for path in files if re.search(rf'"{pattern}[."]', path.read_text()))


class Programs:
    """The programs in which conditions do not hold: all others compile to the same without them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._worker = Worker(Setup(xla_every=10**9, plain_every=10**9, gradients=0.3))
        self._refused: dict[tuple[str, int], frozenset[str]] = {}

    def refused(self, condition: str, families: Sequence[str]) -> Iterator[tuple[int, Seed]]:
        """The programs in which a condition does not hold, each with how many were looked at."""
        for number in range(self._most):
            family = families[number % len(families)]
            if condition in self._conditions_of(family, FIRST + number):
                yield number + 1, Seed(FIRST + number, family, "compile", turned_off=(condition,))

    def _conditions_of(self, family: str, seed: int) -> frozenset[str]:
        if (family, seed) not in self._refused:
            report = self._worker.examine(Seed(seed, family, "compile", only_decide=True)).report
            self._refused[family, seed] = frozenset(name for name, held in report.outcomes if not held)
        return self._refused[family, seed]

    def finding(self, seed: Seed) -> str:
        """The kind of finding in a program with its conditions turned off, "" for none."""
        finding = self._worker.examine(seed).report.finding
        return finding.kind if finding is not None and finding.kind in FOUND else ""

    def close(self) -> None:
        """End the process."""
        self._worker.close()


def examine(pattern: str, condition: str, programs: Programs, most: int, tests: Sequence[str]) -> Outcome:
    """Take one condition to hold, and see who notices."""
    start = time.monotonic()
    tried = looked_at = 0
    for looked_at, seed in programs.refused(condition, families_of(pattern)):
        tried += 1
        if kind := programs.finding(seed):
            return Outcome(f"{seed.family} {seed.seed}: {kind}", tried, looked_at, time.monotonic() - start)
        if tried == most:
            break
    if paths := [*tests_of(pattern), *tests]:
        command = [sys.executable, "-c", _TURNED_OFF, condition, *paths]
        if found := _failure(command):
            return Outcome(found, tried, looked_at, time.monotonic() - start)
    return Outcome("", tried, looked_at, time.monotonic() - start)


def _failure(command: Sequence[str]) -> str:
    try:
        ended = subprocess.run(command, capture_output=True, check=False, timeout=TESTS_LIMIT)  # noqa: S603  # this interpreter
    except subprocess.TimeoutExpired:
        return "a test that does not end"
    return "a test" if ended.returncode else ""


def main() -> int:
    """Exit status 1 when a condition is not missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=500, help="the most programs for a condition")
    parser.add_argument("--tries", type=int, default=40, help="the most of them in which it had not held")
    parser.add_argument("--patterns", type=lambda t: t.split(","), default=[], help="only these")
    parser.add_argument("--tests", nargs="*", default=[], help="more tests that are run where no program notices")
    parser.add_argument("--list", action="store_true", help="print the conditions with their families and leave")
    options = parser.parse_args()
    missed = total = 0
    programs = Programs(options.programs)
    for pattern, condition in conditions(options.patterns):
        if options.list:
            print(f"{condition}: {', '.join(families_of(pattern))}")
            continue
        outcome = examine(pattern, condition, programs, options.tries, options.tests)
        total += 1
        missed += not outcome.by
        said = f"found by {outcome.by}" if outcome.by else "NOT FOUND"
        print(f"{condition}: {said} ({outcome.tried} tried, {outcome.seconds:.0f} s)", flush=True)
    programs.close()
    print(f"{total - missed} of {total} conditions are missed when they are gone")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
